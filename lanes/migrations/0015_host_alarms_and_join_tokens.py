from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lanes', '0014_llama_server'),
    ]

    operations = [
        migrations.AlterField(
            model_name='host',
            name='alarms',
            field=models.JSONField(db_default=[], default=list, editable=False, help_text='Codes of the troubles that are not over yet. Written by the beat.'),
        ),
        migrations.AddField(
            model_name='host',
            name='alarm_times',
            field=models.JSONField(db_default={}, default=dict, editable=False, help_text='Of each alarm: since when, and since when it is well. Written by the beat.'),
        ),
        migrations.AddField(
            model_name='jointoken',
            name='machine',
            field=models.CharField(db_default='', default='', help_text='SHA-256 of what the machine that used it says of itself: it may ask again.', max_length=64),
        ),
        migrations.AddField(
            model_name='jointoken',
            name='revoked_at',
            field=models.DateTimeField(null=True),
        ),
    ]
