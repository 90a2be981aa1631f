from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0003_state_and_original_end"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='booking',
            name='bookings_state_known',
        ),
        migrations.AddField(
            model_name='booking',
            name='asked_at',
            field=models.DateTimeField(help_text='Since when it waits for approval, or last did.', null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='first_request_at',
            field=models.DateTimeField(help_text='The first request in its time that was answered; the gateway tells.', null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='lapse',
            field=models.CharField(blank=True, choices=[('late_cancel', 'Cancelled late'), ('no_show', 'Nobody came')], db_default='', default='', help_text='Quotas count it whole: it was cancelled late, or nobody came.', max_length=11),
        ),
        migrations.AlterField(
            model_name='booking',
            name='state',
            field=models.CharField(choices=[('pending', 'Waiting for approval'), ('confirmed', 'Confirmed'), ('rejected', 'Rejected'), ('cancelled', 'Cancelled'), ('expired', 'Never approved')], default='confirmed', max_length=9),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(fields=['owner', 'original_end'], name='bookings_of_owner_by_end'),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('pending', 'confirmed', 'rejected', 'cancelled', 'expired'))), name='bookings_state_known', violation_error_message='There is no such state of a booking.'),
        ),
    ]
