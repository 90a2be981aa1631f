"""bin/up's Valkey: what waits in it outlives a kill, and what it kept hurts nobody."""

import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from gateway import publish, usage
from gateway.models import UsageRecord
from lanes import ticks
from slotserve.stack.folder import DataFolder
from slotserve.stack.parts import Options, Product
from tests import builders
from tests.usage_cast import CALL
from wire.edges import TABLE_HEAD, USAGE_STREAM
from wire.usage import encode_usage

pytestmark = pytest.mark.valkey


class StackValkey:
    """Valkey as bin/up starts it."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.client = redis.Redis.from_url(product.redis_url)
        self.process = subprocess.Popen(product.valkey().argv, stdout=subprocess.DEVNULL)
        self._wait()

    def kill_and_restart(self) -> None:
        """kill -9, and what the supervisor does then."""
        self._wait(lambda: self.client.info("persistence")["aof_buffer_length"] == 0)
        self.process.kill()
        self.process.wait()
        self.client.close()
        self.process = subprocess.Popen(self.product.valkey().argv, stdout=subprocess.DEVNULL)
        self._wait()

    def end(self) -> None:
        """TERM: it writes down what it holds."""
        self.client.close()
        self.process.terminate()
        self.process.wait(60)

    def _wait(self, is_so: Callable[[], object] | None = None) -> None:
        """Until it answers, or is so; a busy disk may hold up what is written."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(redis.RedisError):
                if (is_so or self.client.ping)():
                    return
            time.sleep(0.01)
        raise TimeoutError("Valkey did not answer within 60 s")


@pytest.fixture
def stack(
    tmp_path: Path, settings: object, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StackValkey]:
    folder = DataFolder.open(tmp_path / 'data "with" spaces')
    folder.close()
    with tempfile.TemporaryDirectory(prefix="ssv-") as runtime:
        options = Options(folder.path, 1, 2, has_demo=False)
        started = StackValkey(Product(options, folder, Path(runtime)))
        monkeypatch.setattr(settings, "REDIS_URL", started.product.redis_url)
        monkeypatch.setattr(ticks, "_client", None)
        yield started
        ticks.valkey().close()
        started.end()


@pytest.mark.django_db
def test_usage_that_waits_outlives_a_kill(stack: StackValkey) -> None:
    for _ in range(3):
        stack.client.xadd(USAGE_STREAM, encode_usage(CALL))  # type: ignore[arg-type]
    stack.kill_and_restart()
    assert stack.client.xlen(USAGE_STREAM) == 3
    assert usage.ingest() == usage.Ingested(entries=3)
    assert UsageRecord.objects.count() == 1


@pytest.mark.django_db
def test_usage_that_was_taken_in_does_not_come_back(stack: StackValkey) -> None:
    stack.client.xadd(USAGE_STREAM, encode_usage(CALL))  # type: ignore[arg-type]
    usage.ingest()
    stack.kill_and_restart()
    assert usage.ingest() == usage.Ingested()


@pytest.mark.django_db
def test_a_table_that_was_kept_is_replaced_by_the_first_publication(stack: StackValkey) -> None:
    publish.publish()
    stack.kill_and_restart()
    kept = stack.client.hget(TABLE_HEAD, "version")
    builders.lane("made-meanwhile")
    assert publish.publish()
    assert int(stack.client.hget(TABLE_HEAD, "version") or 0) > int(kept or 0) > 0


def test_marks_of_ticks_and_locks_that_were_kept_end_by_themselves(stack: StackValkey) -> None:
    stack.client.set("ss:tick:plan", "1", ex=ticks.PENDING_SECONDS)
    stack.client.set(usage.LOCK, "1", ex=usage.LOCK_SECONDS)
    stack.kill_and_restart()
    assert 0 < int(stack.client.ttl("ss:tick:plan")) <= ticks.PENDING_SECONDS
    assert 0 < int(stack.client.ttl(usage.LOCK)) <= usage.LOCK_SECONDS


def test_what_it_keeps_is_its_owners_alone(stack: StackValkey) -> None:
    folder = stack.product.folder.valkey
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.aof"))
    assert stack.client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
