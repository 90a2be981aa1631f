"""Pages of lists."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.settings import api_settings

from slotserve.api.bodies import no_such

PAGES = ("limit", "offset")


class Pages(LimitOffsetPagination):
    """`?limit=` (100, at most 500) and `?offset=`.

    A view's `filters` names what else may be asked of its list; other parameters are refused.
    """

    default_limit = 100
    max_limit = 500

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: Any = None
    ) -> list[Any] | None:
        """The rows of one page; ValidationError for a parameter that nobody reads."""
        known = (*getattr(view, "filters", ()), *PAGES)
        unknown = set(request.query_params) - {*known, api_settings.URL_FORMAT_OVERRIDE}
        if unknown:
            words = {name: no_such("parameter", name, known) for name in sorted(unknown)}
            raise ValidationError(words)
        return super().paginate_queryset(queryset, request, view)
