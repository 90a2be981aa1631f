"""Hosts and lanes: what administrators and the first start write.

`actor` is who asks; None is SlotServe itself, at its first start.
"""

from collections.abc import Iterable
from typing import TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction

from lanes import audit, audit_words, clock, ticks
from lanes.archived import archived_objection
from lanes.events import add_event
from lanes.gpus import inventory, nvml
from lanes.gpus.readings import Inventory
from lanes.locking import one_edit_at_a_time
from lanes.models import Gpu, Host, Lane, Preset, Subject
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of
from wire.words import said, together


class LaneWish(TypedDict, total=False):
    """What may be said of a lane; what is left out stays, or takes the model's default."""

    slug: str
    name: str
    host: Host
    gpus: Iterable[Gpu]
    default_preset: Preset | None
    enabled: bool
    needs_approval: bool
    restart_on_owner_change: bool


def register_host(key: str, name: str) -> Host | Refusal:
    """This machine as a host, with the GPUs its driver shows. Again: cards are brought up to date.

    A card that is no longer seen stays, since lanes may name it; an administrator's name stays.
    """
    cards = nvml.read()  # before any lock: opening the driver can take seconds
    with transaction.atomic():
        return _registered(key, name, cards)


def _registered(key: str, name: str, cards: Inventory) -> Host | Refusal:
    if not Host.objects.filter(key=key).exists():
        refusal = refusal_of(Host(key=key, name=name))
        if refusal:
            return refusal
    host, _ = Host.objects.get_or_create(key=key, defaults={"name": name})
    inventory.register(host, cards)
    return host


@transaction.atomic
def save_lane(lane: Lane | None, *, actor: User | None, **wish: Unpack[LaneWish]) -> Lane | Refusal:
    """Make a lane (None) or change one; its short name and its host stay what they are."""
    if actor is not None and not actor.is_staff:
        return not_administrator()
    one_edit_at_a_time()
    row = (
        Lane.objects.select_for_update(of=("self",)).filter(pk=lane.pk).first() if lane else Lane()
    )
    if row is None:
        return Refusal("not_found", said("This lane has been deleted meanwhile."))
    before = audit.facts_of(row, Subject.LANE) if lane else audit.NOTHING
    gpus = list(wish["gpus"]) if "gpus" in wish else None
    refusal = _fixed_for_good(row, wish) if lane else None
    changed = _take_over(row, wish)
    refusal = refusal or refusal_of(row) or _misplaced(row, gpus)
    if refusal is None and row.default_preset:
        refusal = archived_objection(row.default_preset)
    if refusal:
        return refusal
    row.save()
    if gpus is not None and set(gpus) != set(row.gpus.all()):
        row.gpus.set(gpus)
        changed.append("gpus")
    if not lane:
        _tell(row, actor, said("made this lane"))
    elif changed:
        names = audit_words.FIELDS[Subject.LANE]
        what = together(", ", (said(names[each]) for each in changed))
        _tell(row, actor, said("changed {what}", what=what))
    audit.note(
        "lane.changed" if lane else "lane.made",
        actor,
        audit.About(Subject.LANE, row.pk, row.name),
        before=before,
        after=audit.facts_of(row, Subject.LANE),
    )
    ticks.plan_soon()
    return row


def tell_lanes(lanes: Iterable[Lane], actor: User | None, what: str) -> None:
    """One event for each of these lanes: who did what, in the past tense."""
    for lane in lanes:
        _tell(lane, actor, what)


def _tell(lane: Lane, actor: User | None, what: str) -> None:
    who = actor.get_username() if actor else "SlotServe"
    words = said("{actor} {what}.", actor=who, what=what)
    add_event(lane, clock.database_now(), "edit", words, actor=actor)


def _fixed_for_good(row: Lane, wish: LaneWish) -> Refusal | None:
    if wish.get("slug", row.slug) != row.slug:
        return Refusal(
            "invalid",
            said("A lane keeps its short name, {lane}: programs call it by that.", lane=row.slug),
        )
    if "host" in wish and wish["host"] != row.host:
        return Refusal(
            "wrong_host",
            said("{lane} stays on {host}: make a new lane.", lane=row.name, host=row.host.name),
        )
    return None


def _take_over(row: Lane, wish: LaneWish) -> list[str]:
    """Set what was said; the names of what is different now."""
    said = {name: value for name, value in wish.items() if name != "gpus"}
    changed = []
    for name, value in said.items():
        if name == "host" or getattr(row, name) != value:
            setattr(row, name, value)
            changed.append(name)
    row.name = row.name or row.slug
    return [name for name in changed if name not in {"slug", "host"}]


def _misplaced(row: Lane, gpus: list[Gpu] | None) -> Refusal | None:
    """A lane's GPUs and default are its host's, and no card is in two lanes: each lane runs a
    model server of its own, and neither leaves room for another's."""
    host = row.host
    for gpu in gpus or ():
        if gpu.host_id != host.pk:
            return Refusal(
                "wrong_host", said("{gpu} is not a GPU of {host}.", gpu=str(gpu), host=host.name)
            )
        other = gpu.lanes.exclude(pk=row.pk).first()
        if other:
            return Refusal(
                "gpu_taken",
                said("{gpu} belongs to the lane {other} already.", gpu=str(gpu), other=other.slug),
            )
    preset = row.default_preset
    if preset and (preset.current is None or preset.current.model_file.host_id != host.pk):
        return Refusal(
            "wrong_host",
            said("The model of {preset} is not on {host}.", preset=preset.slug, host=host.name),
        )
    return None
