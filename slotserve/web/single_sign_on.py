"""The way to the provider of the single sign-on, and back."""

import logging

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.internal.flows.reauthentication import resume_request
from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import login
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from requests import RequestException

from slotserve import confirming
from slotserve.accounts import tell_sign_on_failed
from slotserve.single_sign_on import CheckedProvider

log = logging.getLogger(__name__)


def leave(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Off to the provider, or back to the log-in when it does not answer as it should."""
    try:
        answer: HttpResponse = login(request, provider_id)
    except RequestException as error:
        return _back(request, provider_id, error)
    return _lead(request, answer)


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


@login_required
def confirm(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Ask to show at the provider who one is; back from there, on to what asked for it."""
    methods = get_account_adapter().get_reauthentication_methods(request.user)
    if request.path not in {each["url"] for each in methods}:
        raise Http404
    if request.method == "POST":
        return _leave_to_confirm(request, provider_id)
    if confirming.is_recent(request):
        resumed: HttpResponse | None = resume_request(request)
        return resumed or redirect("mfa_index")
    query = urlencode({"next": get_next_redirect_url(request) or ""})
    others = [each for each in methods if each["url"] != request.path]
    alternatives = [{**each, "url": f"{each['url']}?{query}"} for each in others]
    provider = get_adapter().get_provider(request, provider_id)
    shown = {"provider": provider, "reauthentication_alternatives": alternatives, "query": query}
    return render(request, "account/confirm_by_sign_on.html", shown)


def _leave_to_confirm(request: HttpRequest, provider_id: str) -> HttpResponse:
    try:
        provider = get_adapter().get_provider(request, provider_id)
        answer: HttpResponse = provider.redirect(
            request,
            AuthProcess.REDIRECT,
            next_url=request.get_full_path(),
            auth_params={"prompt": "login"},  # a session that is open there shows nothing
            **{confirming.STATE: request.user.pk},
        )
    except RequestException as error:
        return _back(request, provider_id, error)
    return _lead(request, answer)


def _lead(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """A page that goes on to the provider by itself.

    Browsers hold `form-action 'self'` against redirects that answer a form, too.
    """
    address = answer.get("Location", "")
    if not address.startswith(("http://", "https://")):
        return answer
    page = render(request, "account/leaving.html", {"address": address})
    page["Refresh"] = f"0; url={address}"
    return page


def _back(request: HttpRequest, provider_id: str, error: RequestException) -> HttpResponse:
    log.warning("single sign-on does not work provider=%s reason=%s", provider_id, error)
    tell_sign_on_failed(request, error)
    return redirect("account_login")
