"""allauth's forms of security keys, which refuse whatever is no credential."""

from typing import Any

from allauth.mfa.webauthn import forms as allauth_forms
from django import forms
from django.core.exceptions import ValidationError


class CredentialField(forms.JSONField):
    """JSON. A number of thousands of digits is JSON too, and none that Python reads."""

    def to_python(self, value: Any) -> Any:
        """What it says; ValidationError where it cannot be read."""
        try:
            return super().to_python(value)
        except (ValueError, RecursionError) as error:
            raise ValidationError(
                self.error_messages["invalid"], "invalid", {"value": ""}
            ) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What a refused form shows again: nothing of what cannot be read."""
        try:
            return super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return None


class _Careful(forms.Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["credential"] = CredentialField(widget=forms.HiddenInput)


class AddWebAuthnForm(_Careful, allauth_forms.AddWebAuthnForm):  # type: ignore[misc]
    """Add a key."""


class AuthenticateWebAuthnForm(_Careful, allauth_forms.AuthenticateWebAuthnForm):  # type: ignore[misc]
    """A key as the second factor."""


class LoginWebAuthnForm(_Careful, allauth_forms.LoginWebAuthnForm):  # type: ignore[misc]
    """Log in by a passkey alone."""


class ReauthenticateWebAuthnForm(_Careful, allauth_forms.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    """A key to confirm who one is."""
