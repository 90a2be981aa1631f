"""The web process as an ASGI application."""

from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any

import django
from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections
from django.http import HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from slotserve.database import pooled
from slotserve.garbage import settle
from slotserve.logs import hide_from_access_log
from slotserve.reading_settings import settings_or_exit

settings_or_exit()
settings.DATABASES["default"] = pooled(
    settings.DATABASES["default"], settings.SLOTSERVE_DATABASE_POOL
)
django.setup(set_prefix=False)
hide_from_access_log()


class Handler(ASGIHandler):
    """Django's, but a request that cannot be made into one of Django's is a 400, not a crash."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Each request has a thread of its own; with it goes its database connection, at once, to
        the pool if there is one."""
        async with ThreadSensitiveContext():
            try:
                await super().__call__(scope, receive, send)
            finally:
                _let_thread_go()

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        """With a charset in its Content-Type Django reads the query here, and may refuse it."""
        try:
            return super().create_request(scope, body_file)
        except SuspiciousOperation:
            return None, HttpResponseBadRequest(_JSON, content_type="application/json")

    async def send_response(
        self, response: HttpResponseBase, send: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        """A stream keeps no thread: a page that listens costs a connection and some memory."""
        if response.streaming:
            _let_thread_go()
        await super().send_response(response, send)


def _let_thread_go() -> None:
    """The one that this request's synchronous parts ran in; what comes later gets another.

    With it goes its database connection.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    thread = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if thread is not None:
        thread.submit(connections.close_all)
        thread.shutdown(wait=False)


_JSON = b'{"code": "bad_request", "detail": "This request could not be read."}'
application = Handler()
reverse("overview")  # reads all addresses, and with them the modules of all pages
settle()
