"""Confirming who one is by the single sign-on, for pages that ask for it again."""

import time
from typing import Any

from allauth.account import app_settings
from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

METHOD = "socialaccount"
STATE = "confirms"  # whom the way to the provider is to confirm, beside allauth's own state


def methods(user: User | AnonymousUser) -> list[dict[str, Any]]:
    """The configured providers that this member is connected to, in allauth's form."""
    apps: Any = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    if not apps or not user.is_authenticated:
        return []
    known = set(SocialAccount.objects.filter(user=user).values_list("provider", flat=True))
    return [
        {
            "id": f"reauthenticate_by_{app['provider_id']}",
            "description": _("Use %(name)s") % {"name": app["name"]},
            "url": reverse("confirm-by-sign-on", args=[app["provider_id"]]),
        }
        for app in apps
        if app["provider_id"] in known
    ]


def is_recent(request: HttpRequest) -> bool:
    """Whether she came back from the provider as herself just now."""
    records = get_authentication_records(request, request.user)
    times = [
        each["at"] for each in records if each["method"] == METHOD and each.get("reauthenticated")
    ]
    return bool(times) and time.time() - times[-1] < app_settings.REAUTHENTICATION_TIMEOUT


def note_return(request: HttpRequest, login: SocialLogin) -> None:
    """Note that she confirmed, if that is what she left for; else say whose account it is not.

    An address that matches is not enough: the account must be connected already.
    """
    wanted = login.state.get(STATE)
    if wanted is None:
        return
    is_connected = bool(login.account.pk) and login.account.user_id == wanted
    if request.user.is_authenticated and request.user.pk == wanted and is_connected:
        record_authentication(request, request.user, METHOD, reauthenticated=True)
    else:
        messages.error(request, _("That is another account of the single sign-on than yours."))
