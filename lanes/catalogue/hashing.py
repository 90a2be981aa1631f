"""SHA-256 of models, a step of about a second at a time, slowly and never while a model loads.

Each step goes on where the last one ended. Files that are done are kept; a worker that was
restarted begins the file it was at anew, since no library can put such a half-done sum aside.
"""

import hashlib
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import F, Q, QuerySet

from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.grouping import FileSeen, Found
from lanes.catalogue.looking import GoneError, Looker
from lanes.catalogue.opening import opened
from lanes.models import ModelFile, Phase, Runtime

log = logging.getLogger(__name__)
STEP_SECONDS = 1.0
LEAST_PAUSE = 0.05
WAIT_FOR_LOAD = 2.0
SKIPPED_SECONDS = 300.0  # a model that could not be read
CHUNK = 2**20
MEGABYTE = 10**6


@dataclass(slots=True)
class _UnderWay:
    """One file that is being hashed."""

    model_pk: int
    fingerprint: str
    path: str
    offset: int = 0
    sum: Any = field(default_factory=hashlib.sha256)


@dataclass(slots=True)
class _State:
    lock: threading.Lock = field(default_factory=threading.Lock)
    under_way: _UnderWay | None = None
    skipped: dict[int, float] = field(default_factory=dict)  # models, until when


_state = _State()


def hash_step(host_key: str) -> float | None:
    """Hash for about a second; seconds until the next step, None when there is nothing to do."""
    if not settings.SLOTSERVE_HASH_MBPS or host_key != settings.SLOTSERVE_HOST_KEY:
        return None
    if not _state.lock.acquire(blocking=False):
        return None  # a step is under way, and it asks for the next
    try:
        return _step(host_key)
    finally:
        _state.lock.release()


def to_hash(host_key: str) -> QuerySet[ModelFile]:
    """Models of the host that have changed since they were hashed."""
    is_stale = Q(is_hashed=False) | ~Q(digests_of=F("fingerprint"))
    waiting = ModelFile.objects.filter(is_stale, host__key=host_key, missing_since=None, trouble="")
    return waiting.exclude(fingerprint="").exclude(parts=0).order_by("pk")


def _step(host_key: str) -> float | None:
    loading = Runtime.objects.filter(lane__host__key=host_key, ended_at=None, phase=Phase.STARTING)
    later = [pk for pk, until in _state.skipped.items() if until > time.monotonic()]
    model = to_hash(host_key).exclude(pk__in=later).first()
    if model is None:
        _state.under_way = None
        return None
    if loading.exists():
        return WAIT_FOR_LOAD
    began = time.monotonic()
    try:
        _work_on(model, Looker().look(model.path))
    except (GoneError, UnreadableError) as error:
        log.info("model not hashed path=%s reason=%s", model.path, error)
        _skip(model)
    return max(LEAST_PAUSE, STEP_SECONDS - (time.monotonic() - began))


def _work_on(model: ModelFile, found: Found) -> None:
    """Go on with the model's next file that has no digest yet."""
    if found.fingerprint != model.fingerprint:
        _skip(model)  # changed since; the next scan gives it another one
        return
    done = dict(model.digests) if model.digests_of == model.fingerprint else {}
    waiting = [each for each in found.files if each.name not in done]
    if waiting:
        digest = _some_of(model, waiting[0])
        if digest is None:
            return
        done[waiting[0].name] = digest
    _write(model, done, is_hashed=len(waiting) <= 1)


def _some_of(model: ModelFile, file: FileSeen) -> str | None:
    """Read on for a step's time or share; the digest when the file is at its end."""
    work = _state.under_way
    if work is None or (work.model_pk, work.fingerprint, work.path) != (*_key(model), file.path):
        work = _state.under_way = _UnderWay(model.pk, model.fingerprint, file.path)
    share = work.offset + int(settings.SLOTSERVE_HASH_MBPS * MEGABYTE * STEP_SECONDS)
    ends_at = time.monotonic() + STEP_SECONDS
    begin = work.offset
    with opened(file.path) as source:
        while work.offset < share and time.monotonic() < ends_at:
            piece = source.read_at(work.offset, CHUNK)
            if not piece:
                return str(work.sum.hexdigest())
            work.sum.update(piece)
            work.offset += len(piece)
        source.let_go(begin, work.offset - begin)
    return None


def _write(model: ModelFile, digests: dict[str, str], *, is_hashed: bool) -> None:
    rows = ModelFile.objects.filter(pk=model.pk, fingerprint=model.fingerprint)
    rows.update(digests=digests, digests_of=model.fingerprint, is_hashed=is_hashed)
    if is_hashed:
        log.info("model hashed path=%s", model.path)


def _skip(model: ModelFile) -> None:
    _state.skipped[model.pk] = time.monotonic() + SKIPPED_SECONDS


def _key(model: ModelFile) -> tuple[int, str]:
    return model.pk, model.fingerprint
