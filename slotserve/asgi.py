"""The web process as an ASGI application."""

from collections.abc import Mapping
from typing import IO, Any

import django
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpResponseBadRequest
from django.http.response import HttpResponseBase

from slotserve.reading_settings import settings_or_exit

settings_or_exit()
django.setup(set_prefix=False)


class Handler(ASGIHandler):
    """Django's, but a request that cannot be made into one of Django's is a 400, not a crash."""

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        """With a charset in its Content-Type Django reads the query here, and may refuse it."""
        try:
            return super().create_request(scope, body_file)
        except SuspiciousOperation:
            return None, HttpResponseBadRequest(_JSON, content_type="application/json")


_JSON = b'{"code": "bad_request", "detail": "This request could not be read."}'
application = Handler()
