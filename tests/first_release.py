"""`python -m tests.first_release`: a database as the first release made it, with something in it.

A program of its own, on the empty database of DATABASE_URL: migrations turn a process's tables.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import django

OURS = ("lanes", "bookings", "gateway")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def main() -> None:
    """Migrate as far as the first release went, and write a row or two of each kind."""
    django.setup()
    from django.apps import apps  # noqa: PLC0415 - after django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415

    for app in OURS:
        call_command("migrate", app, "0001", verbosity=0)
    loader = MigrationLoader(None)
    others = loader.migrated_apps - set(OURS)
    for app in sorted(each.label for each in apps.get_app_configs() if each.label in others):
        call_command("migrate", app, verbosity=0)
    nodes = [(app, "0001_initial") for app in OURS]
    fill(loader.project_state(nodes).apps.get_model)


def fill(model: Any) -> None:
    """Through the models of then."""
    owner = model("auth", "User").objects.create(username="owner")
    host = model("lanes", "Host").objects.create(key="gpu1", name="gpu1")
    lane = model("lanes", "Lane").objects.create(slug="big", name="Big", host=host)
    file = model("lanes", "ModelFile").objects.create(host=host, path="/m/q.gguf", name="q.gguf")
    preset = model("lanes", "Preset").objects.create(slug="q", name="Q")
    revision = model("lanes", "PresetRevision").objects.create(
        number=1, preset=preset, model_file=file, arguments=["-c", "4096"]
    )
    model("lanes", "Preset").objects.update(current=revision)
    model("lanes", "Order").objects.create(
        lane=lane, target=revision, ordered_at=NOON, decided_at=NOON, sentence="Q is the default"
    )
    model("gateway", "ApiToken").objects.create(owner_id=owner.pk, digest="d", created_at=NOON)
    model("gateway", "UsageRecord").objects.create(
        request_id="r", at=NOON, status=200, duration_ms=1.0
    )
    for number in range(2):
        start, end = NOON + number * HOUR, NOON + (number + 1) * HOUR
        model("bookings", "Booking").objects.create(
            lane=lane,
            owner_id=owner.pk,
            preset=preset,
            state="confirmed",
            start=start,
            end=end,
            original_end=end,
            created_at=NOON,
            confirmed_at=NOON,
            purpose=f"thesis {number}",
        )


if __name__ == "__main__":
    main()
