from django.db import migrations, models


def words(model, what='the trouble was'):
    field = models.JSONField(help_text=f'What {what} made of: wire.words.', null=True, blank=True)
    return migrations.AddField(model_name=model, name='words', field=field)


class Migration(migrations.Migration):

    dependencies = [
        ('lanes', '0026_audit_pruning'),
    ]

    operations = [
        words('modelfolder'),
        words('modelfile'),
        words('llamaserver'),
        words('hostgpus'),
        words('gpustate'),
        words('hostreport', 'they were'),
    ]
