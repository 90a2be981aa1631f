"""Locks that are taken in one order: one administrator's edit at a time, and lanes by key."""

from collections.abc import Collection

from lanes.models import Host, Lane


def one_edit_at_a_time() -> None:
    """Until the transaction ends, no other edit of hosts' files, presets or lanes goes on.

    Names and aliases, and cards of lanes, are rules over several rows that no constraint can
    hold. Take it before any other lock. Rows that only refer to a host are not held up.
    """
    list(Host.objects.order_by("pk").select_for_update(no_key=True).values_list("pk"))


def lock_lane(lane: Lane) -> Lane | None:
    """The lane as it is now, locked before what hangs on it, as whoever deletes it does."""
    return next(iter(lock_lanes([lane.pk])), None)


def lock_lanes(pks: Collection[int]) -> list[Lane]:
    """The lanes that exist, as they are now, locked by primary key before what hangs on them."""
    return list(Lane.objects.select_for_update(no_key=True).filter(pk__in=pks).order_by("pk"))
