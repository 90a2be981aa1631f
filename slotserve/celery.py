"""The Celery application: JSON, ids only, threads pool, one beat entry for all lanes."""

import os
import warnings

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_init
from kombu.transport.redis import Channel, Transport

from slotserve import garbage
from slotserve.reading_settings import settings_or_exit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")
# Celery would make Django's checks and say nothing of what they find; they load every page, which
# takes a worker and beat 15 MB and a second each.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

# A host's worker may be root so that model servers can be somebody else (SLOTSERVE_RUN_AS).
warnings.filterwarnings("ignore", r"\s*You're running the worker with superuser", SecurityWarning)

# What was taken and not begun is not put back: when the broker is lost kombu fails at that, which
# ended the worker, and the next beat asks for everything anew.
Channel.do_restore = False

# Seconds for which a worker waits for a message until it asks anew: longer than from beat to beat,
# so that a worker with nothing to do wakes for the beat alone.
Transport.brpop_timeout = 4

app = Celery("slotserve")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.on_configure.connect(lambda **_: settings_or_exit(), weak=False)
app.steps["consumer"].add("lanes.host_queue:HostQueue")  # by name: it needs the apps
app.autodiscover_tasks()
worker_init.connect(lambda **_: garbage.settle(), weak=False)
