"""Making presets and giving them new revisions."""

from dataclasses import dataclass
from typing import Any, Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q

from lanes import audit, ticks
from lanes.catalogue.forgetting import take_back
from lanes.locking import one_edit_at_a_time
from lanes.models import Lane, ModelFile, Preset, PresetRevision, Subject
from lanes.preset_content import Content, PresetWish, content_of, fields_of, read
from lanes.preset_names import taken
from lanes.refusals import Refusal
from lanes.services import tell_lanes
from lanes.validation import not_administrator, refusal_of
from wire.words import kept_of, said


@dataclass(frozen=True, slots=True)
class SavedPreset:
    """The preset's newest revision, and what this save left out of it."""

    revision: PresetRevision
    notes: tuple[str, ...]


def draft(
    slug: str, model_file: ModelFile, **wish: Unpack[PresetWish]
) -> tuple[PresetRevision, tuple[str, ...]] | Refusal:
    """The revision that saving this would make, unsaved, and notes on what it leaves out."""
    found = read(model_file, wish)
    if isinstance(found, Refusal):
        return found
    content, notes = found
    preset = Preset(slug=slug, name=wish.get("name") or slug)
    return PresetRevision(preset=preset, number=0, notes=notes, **fields_of(content)), tuple(notes)


@transaction.atomic
def save_draft(
    preset: Preset, model_file: ModelFile, *, actor: User, **wish: Unpack[PresetWish]
) -> SavedPreset | Refusal:
    """A revision for a test load, which nothing else runs: the current one, or the newest draft,
    when it says the same. Refusals: those of `save_preset`."""
    if not actor.is_staff:
        return not_administrator()
    found = read(model_file, wish)
    if isinstance(found, Refusal):
        return found
    content, notes = found
    one_edit_at_a_time()
    refusal = _moved(preset, model_file) or taken(preset.slug, content.aliases)
    if refusal:
        return refusal
    known = preset.current if _says(preset.current, content) else _draft_of(preset, content)
    made = known or _made(preset, content, notes, actor, is_draft=True)
    return SavedPreset(made, tuple(notes))


@transaction.atomic
def save_preset(
    *, slug: str, model_file: ModelFile, actor: User | None, **wish: Unpack[PresetWish]
) -> SavedPreset | Refusal:
    """Make this preset, or a new revision when anything but its display name differs.

    `actor` None is SlotServe itself.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    found = read(model_file, wish)
    if isinstance(found, Refusal):
        return found
    content, notes = found
    one_edit_at_a_time()
    preset = Preset.objects.filter(slug=slug).first() or Preset(slug=slug)
    before = _audited(preset) if preset.pk else audit.NOTHING
    preset.name = wish.get("name") or preset.name or slug
    refusal = refusal_of(preset) or _moved(preset, model_file) or taken(slug, content.aliases)
    if refusal:
        return refusal
    preset.save()
    newest = _newest(preset, content, notes, actor)
    audit.note(
        "preset.changed" if before else "preset.made",
        actor,
        audit.About(Subject.PRESET, preset.pk, preset.slug),
        before=before,
        after=_audited(preset),
    )
    return SavedPreset(newest, tuple(notes))


def _audited(preset: Preset) -> audit.Facts:
    return {"name": preset.name, "revision": preset.current.number if preset.current else None}


def as_said(preset: Preset) -> dict[str, Any]:
    """The newest revision in the words of `save_preset`, without slug and actor."""
    if preset.current is None:
        return {"name": preset.name}
    return {"name": preset.name, **fields_of(content_of(preset.current))}


def _moved(preset: Preset, model_file: ModelFile) -> Refusal | None:
    """A preset stays on its host: lanes, choices and bookings of that host name it."""
    if preset.current is None or preset.current.model_file.host_id == model_file.host_id:
        return None
    home = preset.current.model_file.host.name
    return Refusal(
        "wrong_host",
        said(
            "{preset} stays on {home}: make a new preset for this file.",
            preset=preset.slug,
            home=home,
        ),
    )


def _newest(
    preset: Preset, content: Content, notes: list[str], actor: User | None
) -> PresetRevision:
    """The current revision when it says the same, else a new one, made current."""
    current = preset.current
    if current is not None and _says(current, content):
        return current
    made = _draft_of(preset, content) or _made(preset, content, notes, actor, is_draft=False)
    PresetRevision.objects.filter(pk=made.pk).update(is_draft=False)
    preset.current = made
    preset.save(update_fields=["current"])
    take_back(content.model_file)
    lanes = Lane.objects.filter(Q(default_preset=preset) | Q(order__target__preset=preset))
    what = said("made revision {number} of {preset}", number=made.number, preset=preset.slug)
    tell_lanes(lanes.distinct(), actor, what)
    ticks.plan_soon()
    return made


def _made(
    preset: Preset, content: Content, notes: list[str], actor: User | None, *, is_draft: bool
) -> PresetRevision:
    newest = preset.revisions.aggregate(newest=Max("number"))["newest"]
    return PresetRevision.objects.create(
        preset=preset,
        number=(newest or 0) + 1,
        notes=[kept_of(note) or note for note in notes],
        created_by=actor,
        is_draft=is_draft,
        **fields_of(content),
    )


def _draft_of(preset: Preset, content: Content) -> PresetRevision | None:
    """The newest revision, if it is a draft that says this: what was tested is what is saved."""
    newest = preset.revisions.order_by("-number").first()
    return newest if newest and newest.is_draft and _says(newest, content) else None


def _says(revision: PresetRevision | None, content: Content) -> bool:
    return revision is not None and content_of(revision) == content
