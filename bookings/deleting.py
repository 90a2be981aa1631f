"""Deleting lanes, hosts and presets, and archiving presets, unless something is in the way."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from bookings.models import OCCUPYING, Booking
from lanes import audit, clock, ticks
from lanes.catalogue.forgetting import take_back
from lanes.locking import one_edit_at_a_time
from lanes.models import Host, Lane, ManualChoice, ModelFile, Order, Preset, Runtime, Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import marked, said, together

SHOWN = 10  # of each kind, in words


@dataclass(frozen=True, slots=True)
class InTheWay(Refusal):
    """What must be gone first: model servers that run, bookings that are not over."""

    runtime_ids: tuple[int, ...] = ()
    booking_ids: tuple[int, ...] = ()


def delete_lane(lane: Lane, *, actor: User) -> Refusal | None:
    """Delete a lane that has no model server and was never booked.

    Refusals: not_administrator; in_use (InTheWay); has_history: its past bookings are kept.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        one_edit_at_a_time()
        list(Order.objects.select_for_update().filter(lane=lane))  # first, as the planner does
        Lane.objects.select_for_update().get(pk=lane.pk)
        refusal = _in_the_way(str(lane), Q(lane=lane), Q(lane=lane))
        if refusal:
            return refusal
        if Booking.objects.filter(lane=lane).exists():
            return Refusal(
                "has_history",
                said(
                    "{lane} has been booked, and past bookings are kept: disable it instead.",
                    lane=str(lane),
                ),
            )
        Runtime.objects.filter(lane=lane).delete()
        audit.note("lane.deleted", actor, audit.About(Subject.LANE, lane.pk, lane.name))
        lane.delete()
        ticks.plan_soon()
    return None


def delete_host(host: Host, *, actor: User) -> Refusal | None:
    """Delete a host without lanes, with its cards and the files no preset uses.

    Refusals: not_administrator; in_use (InTheWay, through its lanes, or its lanes and presets).
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        one_edit_at_a_time()
        Host.objects.select_for_update().get(pk=host.pk)
        refusal = _in_the_way(str(host), Q(lane__host=host), Q(lane__host=host))
        if refusal:
            return refusal
        lanes = [str(lane) for lane in Lane.objects.filter(host=host)]
        presets = Preset.objects.filter(revisions__model_file__host=host).distinct()
        if lanes or presets:
            held = [
                *_part(marked("lanes {names}"), lanes),
                *_part(marked("presets {names}"), [str(p) for p in presets]),
            ]
            return InTheWay(
                "in_use",
                said(
                    "{host} still has {names}: delete them first.",
                    host=str(host),
                    names=_both(held),
                ),
            )
        ModelFile.objects.filter(host=host).delete()
        audit.note("host.deleted", actor, audit.About(Subject.HOST, host.pk, host.name))
        host.delete()
    return None


def delete_preset(preset: Preset, *, actor: User) -> Refusal | None:
    """Delete a preset that neither runs, is wanted, nor was ever booked.

    Refusals: not_administrator; in_use (InTheWay); has_history (InTheWay): its past bookings,
    which are kept, are listed.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        one_edit_at_a_time()
        Preset.objects.select_for_update().get(pk=preset.pk)
        refusal = _in_the_way(str(preset), Q(revision__preset=preset), Q(preset=preset))
        refusal = refusal or _wanted(preset) or _past(preset)
        if refusal:
            return refusal
        Runtime.objects.filter(revision__preset=preset).delete()
        ManualChoice.objects.filter(preset=preset).delete()
        Preset.objects.filter(pk=preset.pk).update(current=None)
        audit.note("preset.deleted", actor, _audited(preset))
        preset.delete()
        ModelFile.objects.filter(forgotten_at__isnull=False, revisions=None).delete()
    return None


def archive_preset(preset: Preset, *, actor: User) -> Refusal | None:
    """Offer a preset no more; its name, revisions and past bookings are kept. Again: nothing.

    Refusals: not_administrator; in_use (InTheWay), as for deleting.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        one_edit_at_a_time()
        # Who books or chooses it holds his lane from the check to the end.
        list(Lane.objects.select_for_update(no_key=True).order_by("pk"))
        refusal = _in_the_way(str(preset), Q(revision__preset=preset), Q(preset=preset))
        refusal = refusal or _wanted(preset)
        if refusal:
            return refusal
        living = Preset.objects.filter(pk=preset.pk, archived_at=None)
        if living.update(archived_at=clock.database_now()):
            audit.note("preset.archived", actor, _audited(preset))
        ticks.plan_soon()
    return None


def bring_back_preset(preset: Preset, *, actor: User) -> Refusal | None:
    """Offer an archived preset again, and its model with it. Refusals: not_administrator."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        one_edit_at_a_time()
        archived = Preset.objects.filter(pk=preset.pk).exclude(archived_at=None)
        if archived.update(archived_at=None):
            audit.note("preset.brought_back", actor, _audited(preset))
        if preset.current:
            take_back(preset.current.model_file)
        ticks.plan_soon()
    return None


def _audited(preset: Preset) -> audit.About:
    return audit.About(Subject.PRESET, preset.pk, preset.slug)


def _in_the_way(name: str, runtimes: Q, bookings: Q) -> InTheWay | None:
    """The refusal that lists running servers and bookings that are not over, if there are any."""
    alive = list(Runtime.objects.filter(runtimes, ended_at=None).select_related("lane"))
    future = list(
        Booking.objects.filter(
            bookings, state__in=OCCUPYING, end__gt=clock.database_now()
        ).select_related("lane")
    )
    if not alive and not future:
        return None
    held = [
        *_part(
            marked("a model server {names}"),
            [f"on {runtime.lane} ({runtime.phase})" for runtime in alive],
        ),
        *_part(marked("bookings {names}"), [str(booking) for booking in future]),
    ]
    return InTheWay(
        "in_use",
        said("{name} still has {names}: these must end first.", name=name, names=_both(held)),
        runtime_ids=tuple(runtime.pk for runtime in alive),
        booking_ids=tuple(booking.pk for booking in future),
    )


def _wanted(preset: Preset) -> InTheWay | None:
    """The refusal that lists lanes which want the preset, if there are any."""
    chosen = ManualChoice.objects.filter(preset=preset, ended_at=None)
    ordered = Order.objects.filter(target__preset=preset)
    defaults = [str(lane) for lane in preset.default_of.all()]
    held = [
        *_part(marked("the default of {names}"), defaults),
        *_part(
            marked("chosen on {names}"),
            [str(choice.lane) for choice in chosen.select_related("lane")],
        ),
        *_part(
            marked("ordered on {names}"),
            [str(order.lane) for order in ordered.select_related("lane")],
        ),
    ]
    return (
        InTheWay("in_use", said("{preset} is {names}.", preset=str(preset), names=_both(held)))
        if held
        else None
    )


def _past(preset: Preset) -> InTheWay | None:
    """The refusal that lists the bookings it was for, newest first, if there are any."""
    booked = Booking.objects.filter(Q(preset=preset) | Q(pinned_revision__preset=preset))
    past = list(booked.select_related("lane").order_by("-start"))
    if not past:
        return None
    (listed,) = _part(marked("bookings {names}"), [str(booking) for booking in past])
    words = said(
        "{preset} has been booked, and past bookings are kept: archive it instead. {listed}.",
        preset=str(preset),
        listed=listed,
    )
    return InTheWay("has_history", words, booking_ids=tuple(booking.pk for booking in past))


def _part(what: str, names: list[str]) -> list[str]:
    """`what` is a marked text with a place for {names}."""
    if not names:
        return []
    shown = ", ".join(names[:SHOWN])
    if len(names) > SHOWN:
        shown = said("{names} and {count} more", names=shown, count=len(names) - SHOWN)
    return [said(what, names=shown)]


def _both(parts: list[str]) -> str:
    """Some parts as one: "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    first = together(", ", parts[:-1])
    return said("{first} and {last}", first=first, last=parts[-1])
