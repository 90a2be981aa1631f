"""SlotServe: book time on shared GPUs."""

from slotserve.celery import app as celery_app

__all__ = ["celery_app"]
