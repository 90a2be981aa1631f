"""Talking to the provider of the single sign-on, whatever it answers.

Its description, tokens and words about a person come from another machine: they may be huge, slow,
of another form, or of another provider. What cannot be used ends as UnfitProviderError.
"""

import time
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter

MOST_BYTES = 2**20  # descriptions have some 10 KB
MOST_SECONDS = 10.0  # for one answer
SILENT_SECONDS = 5.0
CHUNK = 2**14
LONGEST_UID = 191  # as the column holds it
WANTED = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
CLAIMS = ("email", "preferred_username", "name", "given_name", "family_name")
LONGEST_CLAIM = 150


class UnfitProviderError(RequestException):
    """The provider answered, but not as one does; the text is for the log."""


class _Limited(HTTPAdapter):
    """Reads no more of an answer, and no longer, than an honest one needs."""

    def send(self, request: PreparedRequest, *more: Any, **wish: Any) -> Response:
        """The answer, read to its end."""
        ends = time.monotonic() + MOST_SECONDS
        answer = super().send(request, *more, **{**wish, "stream": True})
        content = bytearray()
        for chunk in answer.iter_content(CHUNK):
            content += chunk
            if len(content) > MOST_BYTES or time.monotonic() > ends:
                answer.close()
                raise UnfitProviderError(f"the answer of {request.url} is too large or too slow")
        whole = Response()
        for name in ("status_code", "headers", "url", "reason", "encoding", "request"):
            setattr(whole, name, getattr(answer, name))
        whole.raw = BytesIO(bytes(content))
        return whole


def limited_session() -> Session:
    """For every call of the single sign-on."""
    session = Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Limited())
    session.request = partial(session.request, timeout=SILENT_SECONDS)  # type: ignore[method-assign]
    return session


def why_unfit(config: Mapping[str, Any], address: str) -> str:
    """What is wrong with a provider's description, which was read at this address. Pure."""
    for name in WANTED:
        if not _is_address(config.get(name)):
            return f"its description has no address as {name}"
    issuer = address.partition("/.well-known/")[0]
    told = str(config.get("issuer"))[:LONGEST_CLAIM]
    if told.rstrip("/") != issuer.rstrip("/"):
        return (
            f"SLOTSERVE_OIDC_URL must be the provider's issuer: it is {issuer!r}, the description "
            f"there says {told!r}; see docs/accounts.md"
        )
    return ""


class CheckedProvider(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """allauth's OpenID Connect, which trusts a provider to answer in form."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's description; RequestException, also when it is unfit."""
        if not hasattr(self, "_openid_config"):
            provider = self.get_provider()
            overrides = provider.app.settings.get("openid_configuration_overrides", {})
            config = _read(provider.server_url) | overrides
            why = why_unfit(config, provider.server_url)
            if why:
                raise UnfitProviderError(why)
            self._openid_config = config
        found: dict[str, Any] = self._openid_config
        return found

    def get_access_token_data(self, *args: Any, **wish: Any) -> Mapping[str, Any]:
        """The token's answer, an object."""
        try:
            told = super().get_access_token_data(*args, **wish)
        except (KeyError, TypeError) as error:  # no content type, or a number as its answer
            raise UnfitProviderError("its tokens are not in form") from error
        if not isinstance(told, Mapping) or not isinstance(told.get("access_token"), str):
            raise UnfitProviderError("its tokens are not in form")
        kept = {name: told[name] for name in ("access_token", "id_token") if told.get(name)}
        return {name: str(value) for name, value in kept.items()}

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **wish: Any
    ) -> SocialLogin:
        """Who it is."""
        try:
            return super().complete_login(request, app, token, **wish)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, RequestException):
                raise
            raise UnfitProviderError("its words about a person are not in form") from error

    def _fetch_user_info(self, access_token: str) -> dict[str, Any]:
        return self._claims(super()._fetch_user_info(access_token))

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        return self._claims(super()._decode_id_token(app, id_token))

    def _claims(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What of it is used, as the columns hold it."""
        name = self.get_provider().app.settings.get("uid_field", "sub")
        uid = str(told[name]) if isinstance(told[name], str | int) else ""
        if not uid.isprintable() or not 0 < len(uid) <= LONGEST_UID:
            raise UnfitProviderError("its number of a person is none")
        found = {claim: _plain(told.get(claim)) for claim in CLAIMS}
        is_verified = told.get("email_verified") in (True, "true", "True")
        return {**found, "email_verified": is_verified, name: uid}


def _read(address: str) -> dict[str, Any]:
    try:
        with get_adapter().get_requests_session() as session:
            answer = session.get(address)
            answer.raise_for_status()
            found = answer.json()
    except (ValueError, RecursionError) as error:  # no JSON, or led to no address
        raise UnfitProviderError(f"its description cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnfitProviderError("its description is no JSON object")
    return found


def _is_address(value: object) -> bool:
    try:
        return isinstance(value, str) and urlsplit(value).scheme in {"http", "https"}
    except ValueError:
        return False


def _plain(value: object) -> str:
    text = value if isinstance(value, str) and len(value) <= LONGEST_CLAIM else ""
    return text if text.isprintable() else ""
