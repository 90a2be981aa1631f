from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lanes", "0003_booking_preset_is_text")]

    operations = [
        migrations.AddIndex(
            model_name="runtime",
            index=models.Index(fields=["lane", "-id"], name="lanes_runtime_newest"),
        ),
    ]
