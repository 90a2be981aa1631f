"""Who calls: a token in the Authorization header, or the browser's session."""

from django.contrib.auth.models import User
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from gateway import tokens
from gateway.models import ApiToken
from lanes import clock

SCHEME = "bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer ss_…`; never in a query string."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The token's owner and the token; None when there is no such header."""
        header = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not header or header[0].lower() != SCHEME:
            return None
        now = clock.database_now()
        token = tokens.find(header[1], now) if len(header) == 2 else None
        if token is None:
            raise exceptions.AuthenticationFailed(
                "This token is not known, has expired or was revoked: make a new one on the "
                "tokens page.",
                code="invalid_api_key",
            )
        tokens.touch(token, now)
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return "Bearer"
