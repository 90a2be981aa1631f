from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0005_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="booking",
            name="decision_comment",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="What was said by whoever approved or rejected it.",
                max_length=300,
            ),
        ),
    ]
