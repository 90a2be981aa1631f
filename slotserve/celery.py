"""The Celery application: JSON, ids only, threads pool, one beat entry for all lanes."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")

app = Celery("slotserve")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
