"""allauth's forms to log in and for lost passwords, with the product's words."""

from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from allauth.account.forms import ResetPasswordForm as AllauthResetPasswordForm
from django.conf import settings
from django.utils.translation import gettext as _

from slotserve import account_mail


class LoginForm(AllauthLoginForm):  # type: ignore[misc]
    """Log in by name or e-mail address and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name or e-mail")
        self.fields["remember"].label = _("Stay logged in on this device")

    @property
    def is_signup_open(self) -> bool:
        """Whether strangers may make accounts."""
        return bool(settings.SLOTSERVE_OPEN_SIGNUP)


class ResetPasswordForm(AllauthResetPasswordForm):  # type: ignore[misc]
    """Ask for a link to choose a new password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail")

    @property
    def is_mail_sent(self) -> bool:
        """Whether a mail would leave this installation."""
        return account_mail.is_sent()
