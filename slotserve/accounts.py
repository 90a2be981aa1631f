"""How accounts come to be: by an administrator, unless sign-up is opened."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
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
