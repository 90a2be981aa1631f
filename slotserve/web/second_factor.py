"""Administrators without a second factor are led to set one up, where the site asks for that."""

from collections.abc import Callable

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
OPEN_TO_ALL = ("/accounts/", "/i18n/", "/ready/", "/static/")
CODE = "second_factor_needed"


class ForAdministrators:
    """With SLOTSERVE_MFA_FOR_ADMINISTRATORS: account pages alone, until there is a factor.

    Sessions only: what an API token may do was decided when it was made.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The page, or the way to the pages of second factors."""
        if not settings.SLOTSERVE_MFA_FOR_ADMINISTRATORS or not _is_kept_out(request):
            return self.get_response(request)
        words = _("Administrators need a second factor here: set up an authenticator app or key.")
        if request.path.startswith("/api/"):
            return JsonResponse({"code": CODE, "detail": words}, status=403)
        messages.warning(request, words)
        page = reverse("mfa_index")
        is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(page) if is_fragment else redirect(page)


def _is_kept_out(request: HttpRequest) -> bool:
    if request.path.startswith(OPEN_TO_ALL) or not request.user.is_staff:
        return False
    return not Authenticator.objects.filter(user=request.user, type__in=FACTORS).exists()
