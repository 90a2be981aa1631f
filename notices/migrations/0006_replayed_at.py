"""What somebody has sent again is news for another day."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("notices", "0005_owner_of_entries")]

    operations: ClassVar = [
        migrations.AddField(
            "delivery",
            "replayed_at",
            models.DateTimeField(null=True, help_text="When somebody had it sent again."),
        ),
    ]
