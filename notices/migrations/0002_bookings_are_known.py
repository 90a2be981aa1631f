from django.db import migrations
from django.utils import timezone


def note_bookings(apps, schema_editor):
    """What was booked before is no news: nobody is told of it when this is installed."""
    database = schema_editor.connection.alias  # a backup is brought up to date beside our own
    bookings = apps.get_model("bookings", "Booking").objects.using(database)
    entries, now = apps.get_model("notices", "Entry").objects.using(database), timezone.now()
    rows = bookings.values_list("pk", "lane_id", "preset_id", "start", "end", "state")
    entries.bulk_create(
        [
            entries.model(
                booking_id=pk,
                lane_id_then=lane,
                preset_id_then=preset,
                start=start,
                end=end,
                state=state,
                changed_at=now,
            )
            for pk, lane, preset, start, end, state in rows.iterator()
        ],
        batch_size=100,
        ignore_conflicts=True,
    )


class Migration(migrations.Migration):
    dependencies = [("notices", "0001_initial")]

    operations = [migrations.RunPython(note_bookings, migrations.RunPython.noop)]
