import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("bookings", "0004_lapses_and_expired"),
        ("lanes", "0017_model_kind_other"),
    ]

    operations = [
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('may_book', models.BooleanField(blank=True, null=True)),
                ('may_book_gpu', models.BooleanField(blank=True, null=True)),
                ('preset_choice', models.CharField(blank=True, choices=[('any', 'Every preset'), ('listed', 'Only those ticked below')], default='', max_length=6)),
                ('grid_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('min_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('max_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('notice_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('ahead_days', models.PositiveIntegerField(blank=True, null=True)),
                ('day_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                ('week_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                ('bookings_ahead', models.PositiveIntegerField(blank=True, null=True)),
                ('approval', models.CharField(blank=True, choices=[('never', 'None'), ('gpu', 'Those of the whole GPU'), ('beyond', 'Those longer than so many hours'), ('always', 'All')], default='', max_length=6)),
                ('approval_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                ('pending_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                ('no_show_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('late_cancel_minutes', models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={
                'ordering': ['lane__name', 'group__name', 'pk'],
            },
        ),
        migrations.AddField(
            model_name='policy',
            name='group',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='auth.group'),
        ),
        migrations.AddField(
            model_name='policy',
            name='lane',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='lanes.lane'),
        ),
        migrations.AddField(
            model_name='policy',
            name='presets',
            field=models.ManyToManyField(blank=True, related_name='policies', to='lanes.preset'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(fields=('lane', 'group'), name='bookings_policy_of_both', violation_error_message='There are rules for this lane and group already.'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(condition=models.Q(('group', None)), fields=('lane',), name='bookings_policy_of_lane'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(condition=models.Q(('lane', None)), fields=('group',), name='bookings_policy_of_group'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(models.Value(1), condition=models.Q(('group', None), ('lane', None)), name='bookings_policy_of_all'),
        ),
    ]
