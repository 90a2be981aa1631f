"""Where what an entry of the audit trail is about can be seen, as long as it is there."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from bookings.models import Booking, Policy
from lanes.models import AuditEntry, Host, Lane, Preset, Subject
from slotserve.member_list import members

# Of each subject: its rows, the column that its page is named by, and the page.
_PLACES: Mapping[str, tuple[QuerySet[Any], str, str]] = {
    Subject.LANE: (Lane.objects.all(), "slug", "lane-history"),
    Subject.PRESET: (Preset.objects.filter(current__isnull=False), "slug", "preset"),
    Subject.HOST: (Host.objects.all(), "key", "edit-host"),
    Subject.BOOKING: (Booking.objects.all(), "pk", "booking"),
    Subject.MEMBER: (members(), "pk", "edit-member"),
    Subject.POLICY: (Policy.objects.all(), "pk", "edit-policy"),
}


def links_of(entries: Iterable[AuditEntry]) -> dict[int, str]:
    """By an entry's number, the page of what it is about; a query for each subject among them."""
    wanted: dict[str, dict[int, int]] = {}
    for entry in entries:
        if entry.subject in _PLACES and entry.subject_id_then is not None:
            wanted.setdefault(entry.subject, {})[entry.pk] = entry.subject_id_then
    return {
        pk: pages[about]
        for subject, abouts in wanted.items()
        if (pages := _pages(subject, set(abouts.values())))
        for pk, about in abouts.items()
        if about in pages
    }


def _pages(subject: str, pks: set[int]) -> dict[int, str]:
    rows, column, page = _PLACES[subject]
    found = rows.filter(pk__in=pks).values_list("pk", column)
    return {pk: reverse(page, args=[name]) for pk, name in found}
