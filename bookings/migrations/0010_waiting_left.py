"""Who was the last to leave the waitlist is found without reading all of it."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("bookings", "0009_waitlist")]

    operations: ClassVar = [
        migrations.AddIndex(
            "waiting",
            models.Index(
                fields=["left_at"],
                condition=models.Q(left_at__isnull=False),
                name="bookings_waiting_left",
            ),
        ),
    ]
