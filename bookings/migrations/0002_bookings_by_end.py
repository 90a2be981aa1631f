from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="booking",
            index=models.Index(fields=["lane", "state", "end"], name="bookings_by_end"),
        ),
    ]
