from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("lanes", "0028_weeks_of_lanes")]

    operations: ClassVar = [
        migrations.AddIndex(
            model_name="runtime",
            index=models.Index(fields=["lane", "ended_at"], name="lanes_runtime_by_end"),
        ),
    ]
