"""What the OpenAPI schema says of tokens. Imported by urls, so that the generator knows it."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.permissions import AllowAny

from slotserve.api.authentication import SCHEME, TokenAuthentication


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema names it."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """HTTP bearer."""
        return {"type": "http", "scheme": SCHEME}


class SchemaView(SpectacularAPIView):
    """The schema, for everybody: it tells nothing of this installation."""

    permission_classes = (AllowAny,)
