"""Data for tests, by role: owner, member, stranger (must see nothing), administrator."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from bookings.models import Booking
from lanes.models import Gpu, Host, Lane, ModelFile, Preset, PresetRevision

_serial = count(1)
NOON = datetime(2030, 1, 15, 12, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    """Noon plus some minutes."""
    return NOON + timedelta(minutes=minutes)


def person(name: str = "owner", **fields: Any) -> User:
    """A member of this name, made once."""
    user, _ = get_user_model().objects.get_or_create(username=name, defaults=fields)
    return user


def administrator() -> User:
    """A member who may administer."""
    return person("administrator", is_staff=True, is_superuser=True)


def host(key: str = "test-host") -> Host:
    """A host of this key, made once."""
    return Host.objects.get_or_create(key=key, defaults={"name": key})[0]


def gpu(**fields: Any) -> Gpu:
    """A card of the test host."""
    number = next(_serial)
    fields.setdefault("host", host())
    return Gpu.objects.create(uuid=f"GPU-{number}", name="Test GPU", **fields)


def lane(slug: str | None = None, **fields: Any) -> Lane:
    """A lane of the test host."""
    slug = slug or f"lane-{next(_serial)}"
    fields.setdefault("host", host())
    return Lane.objects.create(slug=slug, name=slug, **fields)


def model_file(**fields: Any) -> ModelFile:
    """A registered file of 100 MB that need not exist."""
    number = next(_serial)
    fields.setdefault("host", host())
    fields.setdefault("path", f"/models/{number}.gguf")
    fields.setdefault("size_bytes", 100_000_000)
    return ModelFile.objects.create(name=f"model-{number}", **fields)


def revision(preset: Preset, **fields: Any) -> PresetRevision:
    """A next revision of the preset, made its current one."""
    number = preset.revisions.count() + 1
    if "model_file" not in fields:
        fields["model_file"] = preset.current.model_file if preset.current else model_file()
    made = PresetRevision.objects.create(preset=preset, number=number, **fields)
    preset.current = made
    preset.save(update_fields=["current"])
    return made


def preset(slug: str | None = None, **fields: Any) -> Preset:
    """A preset with one revision; the fields are the revision's."""
    slug = slug or f"preset-{next(_serial)}"
    made = Preset.objects.create(slug=slug, name=slug)
    revision(made, **fields)
    return made


def booking(**fields: Any) -> Booking:
    """A confirmed booking straight into the table (services have tests of their own)."""
    fields.setdefault("start", at(0))
    fields.setdefault("end", fields["start"] + timedelta(hours=1))
    fields.setdefault("original_end", fields["end"])
    fields.setdefault("created_at", fields["start"] - timedelta(days=1))
    if fields.get("state", "confirmed") == "confirmed":
        fields.setdefault("confirmed_at", fields["created_at"])
    if "lane" not in fields:
        fields["lane"] = lane()
    if "owner" not in fields:
        fields["owner"] = person()
    if fields.get("kind", "model") == "model" and "preset" not in fields:
        fields["preset"] = preset()
    return Booking.objects.create(**fields)
