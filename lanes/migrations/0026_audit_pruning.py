from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lanes', '0024_maintenance'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditPruning',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('before', models.DateTimeField()),
            ],
        ),
    ]
