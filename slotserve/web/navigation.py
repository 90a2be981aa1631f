"""The main navigation: a page that is to be in it adds one line here."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from lanes.version import code_version


@dataclass(frozen=True, slots=True)
class Place:
    """One link. `below` are the names of pages that belong under it, `prefix` their addresses."""

    words: Promise
    page: str  # the name of its address
    below: frozenset[str] = frozenset()
    prefix: str = ""
    is_for_staff: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A place as one page shows it."""

    words: Promise
    address: str
    is_here: bool  # this very page
    is_around: bool  # this page or one below it


PLACES = (
    Place(_("Lanes"), "overview", frozenset({"lane", "log"})),
    Place(_("Calendar"), "calendar", frozenset({"calendar-booking", "move-booking"})),
    Place(_("Models"), "catalogue", frozenset({"preset"})),
    Place(_("Playground"), "playground"),
    Place(_("Usage"), "usage", prefix="/usage/"),
    Place(_("My bookings"), "bookings", frozenset({"extend", "wait"}), prefix="/bookings/"),
    Place(_("Tokens"), "tokens", frozenset({"slot-token"})),
    Place(_("Administration"), "administration", prefix="/administration/", is_for_staff=True),
)
# In the menu of the person.
OWN_PLACES = (
    Place(_("Preferences"), "preferences"),
    Place(_("Change password"), "account_change_password"),
    Place(_("Second factors and passkeys"), "mfa_index"),
    Place(_("API"), "api-docs"),
)


def frame(request: HttpRequest) -> dict[str, Any]:
    """For templates: the links of this reader, and what the footer says."""
    user = getattr(request, "user", None)
    shown = {"version": code_version().partition("+")[0], "site_zone": settings.TIME_ZONE}
    if user is None or not user.is_authenticated:
        return shown
    return shown | {
        "navigation": _links(PLACES, request, is_staff=user.is_staff),
        "own_navigation": _links(OWN_PLACES, request, is_staff=user.is_staff),
    }


def _links(places: tuple[Place, ...], request: HttpRequest, *, is_staff: bool) -> list[Link]:
    match = request.resolver_match
    here = match.url_name if match else None
    return [
        Link(
            words=place.words,
            address=address,
            is_here=here == place.page,
            is_around=here == place.page
            or here in place.below
            or bool(place.prefix and request.path.startswith(place.prefix)),
        )
        for place in places
        if (address := _address(place.page)) and (is_staff or not place.is_for_staff)
    ]


@cache
def _address(page: str) -> str:
    """Empty while there is no such page."""
    try:
        return reverse(page)
    except NoReverseMatch:
        return ""
