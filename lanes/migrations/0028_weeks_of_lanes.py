"""A week of each lane's cards, in stretches of five minutes."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('lanes', '0027_words_of_troubles'),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='LaneStretch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot', models.PositiveSmallIntegerField(help_text='Of the week in UTC, 0 to 2015.')),
                ('minute', models.DateTimeField(help_text='When it began.')),
                ('samples', models.PositiveSmallIntegerField(help_text='Of its minutes together.')),
                ('used_bytes', models.BigIntegerField(help_text='The most that was in use, on all cards.')),
                ('outside_bytes', models.BigIntegerField(help_text='The most of it that no lane held.')),
                ('utilisation', models.FloatField(help_text='Mean percent over its minutes.', null=True)),
                ('power_watts', models.FloatField(help_text='Mean over its minutes, of all cards.', null=True)),
                ('lane', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='stretches', to='lanes.lane')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('lane', 'slot'), name='lanes_stretch_once'), models.CheckConstraint(condition=models.Q(('slot__lt', 2016)), name='lanes_stretch_of_a_week')],
            },
        ),
    ]
