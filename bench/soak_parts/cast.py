"""Who and what a soak is about: members with tokens, lanes, presets, slots back to back.

Imported once Django is set up.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.contrib.auth.models import User

from bench.soak_parts.judge import Slot
from bookings import services
from bookings.models import Booking, Kind
from gateway import tokens
from lanes.models import Host, Lane, ModelFile, Preset, PresetRevision

MEMBERS = ("ada", "bob", "eve", "kim")
LANES = ("left", "right")
PRESETS = ("small", "middle", "large")
FREE_EVERY, GPU_EVERY = 3, 7  # of the slots


@dataclass(frozen=True, slots=True)
class Turns:
    """Slots of one length from a moment on."""

    first: datetime
    seconds: float
    count: int


def set_up(hosts: Sequence[Host], folder: Path) -> dict[str, str]:
    """Members with a token each, lanes on these hosts in turn, with a default and presets of
    the host; the tokens by member."""
    presets = {host.pk: [_make_preset(host, folder, slug) for slug in PRESETS] for host in hosts}
    for number, slug in enumerate(LANES):
        host = hosts[number % len(hosts)]
        default = presets[host.pk][0]
        Lane.objects.create(slug=slug, name=slug, host=host, default_preset=default)
    keys = {}
    for name in MEMBERS:
        user = User.objects.create(username=name)
        made = tokens.create_token(
            owner=user, name="soak", scopes=["inference"], lanes=[], expires_at=None
        )
        assert isinstance(made, tuple), made
        keys[name] = made[1]
    return keys


def book_all(turns: Turns) -> list[Slot]:
    """The slots of all lanes that are not left free, booked."""
    return [
        _book(Lane.objects.get(slug=slug), number, offset, turns)
        for offset, slug in enumerate(LANES)
        for number in range(turns.count)
        if number % FREE_EVERY
    ]


def preset_names() -> list[str]:
    """Of all hosts."""
    return list(Preset.objects.order_by("pk").values_list("slug", flat=True))


def _slug(host: Host, name: str) -> str:
    return name if Host.objects.order_by("pk").first() == host else f"{name}-{host.key}"


def _make_preset(host: Host, folder: Path, name: str) -> Preset:
    """A preset of an empty file."""
    slug = _slug(host, name)
    path = folder / f"{slug}.gguf"
    path.touch()
    file = ModelFile.objects.create(host=host, path=str(path), name=slug, size_bytes=0)
    preset = Preset.objects.create(slug=slug, name=slug)
    preset.current = PresetRevision.objects.create(preset=preset, number=1, model_file=file)
    preset.save()
    return preset


def _book(lane: Lane, number: int, offset: int, turns: Turns) -> Slot:
    """One slot: its member and preset go round, each at its own pace."""
    start = turns.first + timedelta(seconds=(number + offset / 2) * turns.seconds)
    end = start + timedelta(seconds=turns.seconds)
    owner = User.objects.get(username=MEMBERS[(number + offset) % len(MEMBERS)])
    is_gpu = number % GPU_EVERY == 0
    wanted = _slug(lane.host, PRESETS[(number + offset) % len(PRESETS)])
    preset = None if is_gpu else Preset.objects.get(slug=wanted)
    kind = Kind.GPU if is_gpu else Kind.MODEL
    made = services.book(owner=owner, lane=lane, kind=kind, preset=preset, start=start, end=end)
    if not isinstance(made, Booking):
        sys.exit(f"{lane} {start}: {made.words}")
    return Slot(lane.slug, owner.username, start.timestamp(), end.timestamp())
