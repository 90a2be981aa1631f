"""The trial request of a test load: a few tokens, asked by the host whose server it is."""

import http.client
import json
import threading
import time
from dataclasses import dataclass
from typing import Any

from lanes import clock, ticks
from lanes.models import Phase, Runtime
from lanes.models.trying import TestLoad
from wire.sealing import Sealer, read_table_keys

SECONDS = 90.0
MOST_BYTES = 2**20
MOST_TOKENS = 16
MOST_RATE = 10**6  # tokens a second; more is no rate
PROMPT = "Count from one to twenty in words: one, two, three,"
ABLE = "completion"
_begun: set[int] = set()  # a host has one worker
_begun_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it; a note says why there are no tokens."""

    tokens: int | None = None
    tokens_per_second: float | None = None
    note: str = ""


def run(test_pk: int) -> None:
    """Ask the server of this test load, unless that goes on, and write down what came of it."""
    with _begun_lock:
        if test_pk in _begun:
            return
        _begun.add(test_pk)
    try:
        _run(test_pk)
    finally:
        _begun.discard(test_pk)


def _run(test_pk: int) -> None:
    test = TestLoad.objects.filter(pk=test_pk, ended_at=None, trial_ended_at=None).first()
    if test is None or test.trial_asked_at is None:
        return
    alive = Runtime.objects.filter(lane=test.lane_id, revision=test.revision_id, ended_at=None)
    runtime = alive.filter(phase=Phase.READY).select_related("revision__preset").first()
    if runtime is None:
        return
    trial = ask(runtime)
    TestLoad.objects.filter(pk=test_pk, trial_ended_at=None).update(
        trial_ended_at=clock.database_now(),
        tokens=trial.tokens,
        tokens_per_second=trial.tokens_per_second,
        trial_note=trial.note,
    )
    ticks.request_plan()


def ask(runtime: Runtime) -> Trial:
    """One short completion; a server that makes none is not asked."""
    if ABLE not in runtime.capabilities:
        return Trial(note="no-completions")
    key = Sealer(read_table_keys()).open(runtime.sealed_key)
    body = {"model": runtime.revision.preset.slug, "prompt": PROMPT, "max_tokens": MOST_TOKENS}
    began = time.monotonic()
    try:
        status, answer = _post(runtime, key or "", json.dumps(body).encode())
    except (OSError, http.client.HTTPException, ValueError):
        return Trial(note="no-answer")
    if status != http.client.OK:
        return Trial(note=f"status-{status}")
    return read(answer, time.monotonic() - began)


def read(answer: bytes, seconds: float) -> Trial:
    """Tokens and their rate: the server's own for writing them, else over the whole request."""
    try:
        told: Any = json.loads(answer)
        tokens = int(told["usage"]["completion_tokens"])
    except (ValueError, TypeError, KeyError):
        return Trial(note="no-count")
    timings = told.get("timings")
    rate = timings.get("predicted_per_second") if isinstance(timings, dict) else None
    if isinstance(rate, int | float) and 0 < rate < MOST_RATE:
        return Trial(tokens, float(rate))
    return Trial(tokens, tokens / max(seconds, 0.001))


def _post(runtime: Runtime, key: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(runtime.address, runtime.port, timeout=SECONDS)
    try:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", body, headers)
        with connection.getresponse() as response:
            return response.status, response.read(MOST_BYTES)
    finally:
        connection.close()
