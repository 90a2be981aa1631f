"""System checks of the settings of accounts."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

NO_CLIENT = "slotserve.E030"


def check_single_sign_on(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """A provider knows this site by a client id: without one each log-in there would fail."""
    provider: dict[str, Any] = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {})
    if all(app["client_id"] for app in provider.get("APPS", ())):
        return []
    words = "SLOTSERVE_OIDC_URL is set, but SLOTSERVE_OIDC_CLIENT_ID is not."
    hint = "Register this site with the provider and set the id it gives, or unset the URL."
    return [Error(words, hint=hint, id=NO_CLIENT)]
