"""Unknown addresses below /api/ answer in JSON, like everything else there."""

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


@extend_schema(exclude=True)
class NotFoundView(APIView):
    """404 for any method."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Nothing to check: there is nothing here."""

    def http_method_not_allowed(  # type: ignore[override]
        self, request: Request, *args: object, **kwargs: object
    ) -> Response:
        """The one answer."""
        words = "There is nothing at this address: see /api/v1/docs/."
        return Response({"code": "not_found", "detail": words}, status=status.HTTP_404_NOT_FOUND)
