"""SEQUENCE rises when a booking is transferred, too."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("notices", "0003_confirm_links")]

    operations: ClassVar = [
        migrations.AddField("entry", "owner_id_then", models.BigIntegerField(null=True)),
    ]
