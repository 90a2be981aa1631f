from django.db import migrations, models
from django.db.models import Q

# The mail's columns stay in the table: workers that run the code before this one still fill them.
KEPT_COLUMNS = [
    migrations.RemoveIndex(model_name="notice", name="lanes_notice_mail"),
    migrations.RemoveField(model_name="notice", name="mail_from"),
    migrations.RemoveField(model_name="notice", name="mail_attempts"),
]


class Migration(migrations.Migration):
    dependencies = [("lanes", "0018_words")]

    operations = [
        migrations.AddField(
            model_name="notice",
            name="booking_id_for",
            field=models.BigIntegerField(null=True, help_text="The booking it is about."),
        ),
        migrations.AddField(
            model_name="notice",
            name="routed_at",
            field=models.DateTimeField(
                null=True,
                help_text="Since when it waits to be sent by the ways that its person chose.",
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="words",
            field=models.JSONField(
                null=True,
                help_text="What sentence and advice were made of, by these names: wire.words.",
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                fields=["at"], condition=Q(routed_at=None), name="lanes_notice_unrouted"
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                fields=["booking_id_for"],
                condition=Q(booking_id_for__isnull=False),
                name="lanes_notice_booking",
            ),
        ),
        migrations.RunSQL(
            "UPDATE lanes_notice SET routed_at = at WHERE mail_from IS NULL",
            migrations.RunSQL.noop,
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX IF EXISTS lanes_notice_mail",
                    "CREATE INDEX lanes_notice_mail ON lanes_notice (mail_from) "
                    "WHERE mail_from IS NOT NULL",
                )
            ],
            state_operations=KEPT_COLUMNS,
        ),
    ]
