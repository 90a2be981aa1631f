"""How accounts come to be, and whom a single sign-on's word makes them."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from gateway.browser_tokens import end_session


class ClosedSignup(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter with sign-up closed unless SLOTSERVE_OPEN_SIGNUP says otherwise."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Whether a stranger may make an account."""
        return bool(settings.SLOTSERVE_OPEN_SIGNUP)

    def logout(self, request: HttpRequest) -> None:
        """Log out, and end what the session's pages may call."""
        session_key = request.session.session_key
        super().logout(request)
        if session_key:
            end_session(session_key)


class VerifiedPeople(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Single sign-on: only addresses that both sides have verified make somebody a member."""

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
