"""Celery's way to the supervisor. Doubled, late or lost deliveries change nothing.

A worker that is not its host takes nothing from the queue (`lanes.host_queue`); what it had taken
when it lost its place comes with the next beat.
"""

from celery import shared_task

from lanes import host_place, llama_probing, log_reading, supervisor, ticks, trial
from lanes import worker_lock as worker_lock  # a worker that knows these tasks holds it
from lanes.catalogue import hashing, scanning


@shared_task(name=ticks.LOOK_TASK)
def look(lane_pk: int, key: str) -> None:
    """Look at one lane of this worker's host."""
    ticks.taken_up(key)
    if host_place.is_ours():
        supervisor.look(lane_pk)


@shared_task(name="slotserve.look_host")
def look_host(host_key: str) -> None:
    """Look at every lane of this worker's host."""
    if host_place.is_ours():
        supervisor.look_host(host_key)


@shared_task(name=ticks.LOG_TASK)
def put_log_pages(run: int, page: int, key: str) -> None:
    """Put pages of a run's log where the web reads them; who asks meanwhile waits for these."""
    try:
        if host_place.is_ours():
            log_reading.put_pages(run, page)
    finally:
        ticks.taken_up(key)


@shared_task(name=ticks.SCAN_TASK)
def scan_models(host_key: str, key: str) -> None:
    """Look through the folders of this worker's host; again soon when there was no time for all."""
    ticks.taken_up(key)
    if not host_place.is_ours():
        return
    if scanning.scan_host(host_key):
        ticks.request_scan(host_key)
    ticks.request_hash(host_key)


@shared_task(name=ticks.PROBE_TASK)
def probe_programs(host_key: str, key: str) -> None:
    """Ask this worker's llama-server which flags it takes, if that is due."""
    ticks.taken_up(key)
    if host_place.is_ours():
        llama_probing.probe_host(host_key)


@shared_task(name=ticks.TRIAL_TASK)
def try_model(test: int, key: str) -> None:
    """Send a test load's trial request to the server of this worker's host."""
    ticks.taken_up(key)
    if host_place.is_ours():
        trial.run(test)


@shared_task(name=ticks.HASH_TASK)
def hash_models(host_key: str, key: str) -> None:
    """Hash models of this worker's host for about a second; the next step follows by itself."""
    ticks.taken_up(key)
    delay = hashing.hash_step(host_key) if host_place.is_ours() else None
    if delay is not None:
        ticks.request_hash(host_key, delay=delay)
