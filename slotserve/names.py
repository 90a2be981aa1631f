"""What names a request's reader is shown: read once, for its view, its templates and its JSON."""

from collections.abc import Collection
from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from rest_framework.request import Request

from bookings.names import Names, names_for


def names_of(request: HttpRequest | Request) -> Names:
    """Of somebody who is logged in."""
    kept: Names | None = getattr(request, "names_shown", None)
    if kept is None:
        kept = names_for(cast(User, request.user))
        request.names_shown = kept  # type: ignore[union-attr]
    return kept


def meet(request: HttpRequest, names: Collection[str]) -> None:
    """These people are no strangers to the reader of this answer."""
    request.names_shown = names_of(request).meeting(names)  # type: ignore[attr-defined]
