from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0009_token_of_a_booking")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="usageprogress",
            name="kept_from",
            field=models.DateField(
                help_text="Days before it are not worked out again: their requests are forgotten.",
                null=True,
            ),
        ),
    ]
