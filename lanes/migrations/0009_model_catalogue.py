import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lanes', '0008_failure_facts_and_notices'),
    ]

    operations = [
        migrations.AddField(
            model_name='modelfile',
            name='architecture',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='context_length',
            field=models.BigIntegerField(blank=True, help_text='Tokens it was trained for.', null=True),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='digests',
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text='SHA-256 of each file that holds weights, by name.'),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='digests_of',
            field=models.CharField(blank=True, db_default='', default='', help_text='The fingerprint that they belong to.', max_length=32),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='fingerprint',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of names, sizes, times and inodes when its headers were read; empty: to read.', max_length=32),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='has_chat_template',
            field=models.BooleanField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='is_hashed',
            field=models.BooleanField(db_default=False, default=False, help_text="Whether all of that fingerprint's are there."),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='kind',
            field=models.CharField(choices=[('gguf', 'GGUF'), ('huggingface', 'Hugging Face folder')], db_default='gguf', default='gguf', max_length=20),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='missing_since',
            field=models.DateTimeField(blank=True, help_text='It is not there any more.', null=True),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='parameters',
            field=models.BigIntegerField(blank=True, help_text='Weights in all.', null=True),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='parts',
            field=models.PositiveIntegerField(db_default=1, default=1, help_text='Files that hold its weights.'),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='projector_path',
            field=models.CharField(blank=True, db_default='', default='', help_text='For images or sound.', max_length=1024),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='quantisation',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='trouble',
            field=models.CharField(blank=True, db_default='', default='', max_length=500),
        ),
        migrations.AddField(
            model_name='modelfile',
            name='vocabulary_size',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='ModelFolder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(max_length=1024)),
                ('added_at', models.DateTimeField(auto_now_add=True)),
                ('scanned_at', models.DateTimeField(blank=True, help_text='When it was last looked through.', null=True)),
                ('found', models.PositiveIntegerField(db_default=0, default=0, help_text='Models seen then.')),
                ('trouble', models.CharField(blank=True, db_default='', default='', max_length=1000)),
                ('host', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='model_folders', to='lanes.host')),
            ],
            options={
                'ordering': ['path'],
            },
        ),
        migrations.AddField(
            model_name='modelfile',
            name='folder',
            field=models.ForeignKey(blank=True, help_text='Where it was found; empty: it was registered by hand.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='model_files', to='lanes.modelfolder'),
        ),
        migrations.AddConstraint(
            model_name='modelfolder',
            constraint=models.UniqueConstraint(fields=('host', 'path'), name='lanes_modelfolder_once', violation_error_message='This folder is looked through already.'),
        ),
    ]
