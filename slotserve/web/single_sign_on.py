"""The way to the provider of the single sign-on."""

import logging

from allauth.socialaccount.providers.openid_connect.views import login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from requests import RequestException

log = logging.getLogger(__name__)


def leave(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Off to the provider, or back to the log-in when it does not answer."""
    try:
        answer: HttpResponse = login(request, provider_id)
    except RequestException as error:
        log.warning("single sign-on does not answer provider=%s reason=%s", provider_id, error)
        words = _("The single sign-on does not answer: try again, or log in by password.")
        messages.error(request, words)
        return redirect("account_login")
    return answer
