"""Pages of lists."""

from rest_framework.pagination import LimitOffsetPagination


class Pages(LimitOffsetPagination):
    """`?limit=` (100, at most 500) and `?offset=`."""

    default_limit = 100
    max_limit = 500
