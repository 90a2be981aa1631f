"""The way to the provider of the single sign-on, and back."""

import logging

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from requests import RequestException

from slotserve.accounts import tell_sign_on_failed
from slotserve.single_sign_on import CheckedProvider

log = logging.getLogger(__name__)


def leave(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Off to the provider, or back to the log-in when it does not answer as it should."""
    try:
        answer: HttpResponse = login(request, provider_id)
    except RequestException as error:
        return _back(request, provider_id, error)
    return answer


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from the provider: logged in, or at the log-in with what to do."""
    try:
        view = OAuth2CallbackView.adapter_view(CheckedProvider(request, provider_id))
        answer: HttpResponse = view(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except RequestException as error:  # of the description, which is read before all else
        return _back(request, provider_id, error)
    return answer


def _back(request: HttpRequest, provider_id: str, error: RequestException) -> HttpResponse:
    log.warning("single sign-on does not work provider=%s reason=%s", provider_id, error)
    tell_sign_on_failed(request, error)
    return redirect("account_login")
