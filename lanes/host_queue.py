"""A worker takes messages of its host while it is the host, and none otherwise.

Two that took from one queue would each take what the other needs: the host would fall silent.
"""

import logging
import threading
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from lanes import host_place, ticks

log = logging.getLogger(__name__)
SOON = 1.0  # seconds to the next try when the database did not answer


class HostQueue(bootsteps.StartStopStep):
    """Part of the worker's consumer: started before the first message is taken, and again whenever
    the broker was lost. Other queues of the worker are served all the while."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **words: Any) -> None:
        super().__init__(consumer, **words)
        self._queue = ticks.host_queue(settings.SLOTSERVE_HOST_KEY)
        self._is_asked = self._queue in consumer.app.amqp.queues.consume_from
        self._ended = threading.Event()
        self._is_told = False

    def start(self, consumer: Any) -> None:
        """Decide now, then again and again beside the consumer, whom no question may hold up."""
        if not self._is_asked:
            return
        self._ended = threading.Event()
        is_ours = self._ask()
        self._take(consumer, self._ended, is_ours=bool(is_ours))
        keeping = threading.Thread(
            target=self._keep, args=(consumer, self._ended, is_ours), daemon=True
        )
        keeping.start()

    def stop(self, _consumer: Any) -> None:
        """The broker is lost, or the worker ends."""
        self._ended.set()

    def _keep(self, consumer: Any, ended: threading.Event, is_ours: bool | None) -> None:
        while not ended.wait(_pause(is_ours)):
            is_ours = self._ask()
            consumer.call_soon(self._take, consumer, ended, is_ours=bool(is_ours))
        close_old_connections()

    def _ask(self) -> bool | None:
        """Whether this worker is the host; None: the database does not say."""
        try:
            close_old_connections()
            is_ours = host_place.hold()
            if not is_ours and not self._is_told:
                host_place.say_waiting()
            self._is_told = not is_ours
        except DatabaseError as error:
            log.warning("not known whether this worker is the host: %s", error)
            return None
        return is_ours

    def _take(self, consumer: Any, ended: threading.Event, *, is_ours: bool) -> None:
        """In the consumer's thread alone."""
        if ended.is_set() or (self._queue in consumer.app.amqp.queues.consume_from) == is_ours:
            return
        if is_ours:
            consumer.add_task_queue(self._queue)
        else:
            consumer.cancel_task_queue(self._queue)


def _pause(is_ours: bool | None) -> float:
    return SOON if is_ours is None else float(settings.SLOTSERVE_HOST_SILENT_SECONDS) / 4
