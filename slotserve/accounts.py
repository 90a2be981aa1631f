"""How accounts come to be, and whom a single sign-on's word makes them."""

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import Provider
from allauth.socialaccount.providers.base.constants import AuthError
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from requests import RequestException, Session

from gateway.browser_tokens import end_session
from lanes import audit, clock
from lanes.refusals import Refusal
from slotserve import confirming, invitations
from slotserve.members import about_member
from slotserve.models import Invitation
from slotserve.single_sign_on import CheckedProvider, UnfitProviderError, limited_session

log = logging.getLogger(__name__)
SESSION_KEY = "invitation"  # the secret of the link that was followed


def tell_sign_on_failed(request: HttpRequest, error: Exception | None) -> None:
    """A message on the next page of what to do about it."""
    if isinstance(error, UnfitProviderError):
        words = _(
            "The single sign-on gave an answer that cannot be used: log in by password, and tell "
            "an administrator. The web server's log says what is wrong."
        )
    elif isinstance(error, RequestException):
        words = _("The single sign-on does not answer: try again, or log in by password.")
    else:
        words = _("The single sign-on did not log you in: begin anew, or log in by password.")
    messages.error(request, words)


class ClosedSignup(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter with sign-up closed unless SLOTSERVE_OPEN_SIGNUP says otherwise."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": gettext_lazy(
            "No account has this name or e-mail and this password."
        )
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Whether a stranger may make an account."""
        return bool(settings.SLOTSERVE_OPEN_SIGNUP)

    def is_safe_url(self, url: str) -> bool:
        """Whether people may be led there; nobody is led to what is no address."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def set_password(self, user: User, password: str) -> None:
        """Write the password alone: the person may be removed, or lose rights, meanwhile."""
        user.set_password(password)
        user.save(update_fields=["password"])

    def login(self, request: HttpRequest, user: User) -> None:
        """Log in, all factors shown; of administrators it is noted."""
        super().login(request, user)
        if user.is_staff:
            audit.note("member.logged_in", user, about_member(user))

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """allauth's, and the single sign-on for whom it lets in: ahead of a code by e-mail."""
        found: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        at = sum(each["id"] != "reauthenticate_by_code" for each in found)
        return [*found[:at], *confirming.methods(user), *found[at:]]

    def is_reauthentication_required(self, *, app: str, **wish: Any) -> bool:
        """Unless she came back from the single sign-on just now."""
        is_asked = super().is_reauthentication_required(app=app, **wish)
        return bool(is_asked) and not confirming.is_recent(self.request)

    def logout(self, request: HttpRequest) -> None:
        """Log out, and end what the session's pages may call."""
        session_key = request.session.session_key
        super().logout(request)
        if session_key:
            end_session(session_key)


class VerifiedPeople(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Single sign-on: only addresses that both sides have verified make somebody a member."""

    def is_open_for_signup(self, request: HttpRequest, login: SocialLogin) -> bool:
        """Where sign-up is open, and for who was invited with an address that is verified."""
        if settings.SLOTSERVE_OPEN_SIGNUP:
            return True
        found = invitations.find(request.session.get(SESSION_KEY, ""), clock.database_now())
        if isinstance(found, Refusal):
            return False
        verified = {each.email.lower() for each in login.email_addresses if each.verified}
        return found.email.lower() in verified if found.email else bool(verified)

    def pre_social_login(self, request: HttpRequest, login: SocialLogin) -> None:
        """Who left to confirm who she is does so by coming back as herself."""
        confirming.note_return(request, login)

    def get_requests_session(self) -> Session:
        """Providers are other machines: what they answer is limited."""
        return limited_session()

    def get_provider(self, *args: Any, **wish: Any) -> Provider:
        """A provider whose answers are looked at before they are used."""
        found = super().get_provider(*args, **wish)
        if isinstance(found, OpenIDConnectProvider):
            found.oauth2_adapter_class = CheckedProvider
        return found

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Provider,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """To the log-in with what to do, unless somebody thought better of it at the provider."""
        if error == AuthError.CANCELLED:
            return
        log.warning("single sign-on does not work reason=%s", exception or error)
        tell_sign_on_failed(request, exception)
        raise ImmediateHttpResponse(redirect("account_login"))

    def save_user(self, request: HttpRequest, login: SocialLogin, form: Any = None) -> User:
        """Make the account, and use the invitation up that it is made by."""
        now = clock.database_now()
        found = invitations.find(request.session.get(SESSION_KEY, ""), now)
        with transaction.atomic():
            if isinstance(found, Invitation) and invitations.claim(found, now) is not None:
                raise PermissionDenied("This invitation was used at the same moment.")
            person: User = super().save_user(request, login, form)
            if isinstance(found, Invitation):
                invitations.equip(person, found)
        request.session.pop(SESSION_KEY, None)
        return person

    def authenticate_by_email(self, login: SocialLogin) -> tuple[User, str] | None:
        """The member whose verified address this is, and the address.

        An address that a member merely typed here does not count: she would share her account,
        tokens and all, with whoever owns it.
        """
        for address in login.email_addresses:
            if address.verified and self.can_authenticate_by_email(login, address.email):
                known = EmailAddress.objects.filter(email__iexact=address.email, verified=True)
                owner = known.select_related("user").first()
                if owner is not None:
                    return owner.user, address.email
        return None
