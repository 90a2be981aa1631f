"""The route table's order: numbers, renewals, two publishers, emptied Valkey, restored backup."""

import time
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis.client import PubSub

from gateway import publish, store
from gateway.edge.table import (
    Head,
    decode_head,
    decode_lane,
    decode_presets,
    decode_tokens,
    digest_of,
)
from gateway.models import TableState
from lanes import clock, ticks
from tests import builders
from tests.conftest import ValkeyServer
from wire.edges import TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer, read_table_keys

pytestmark = [pytest.mark.django_db, pytest.mark.valkey]
ALWAYS = {"tokens", "slot-tokens", "shares", "presets", "catalogue", "maintenance"}


@pytest.fixture(autouse=True)
def _close(valkey: str) -> object:
    yield
    ticks.valkey().close()


def head() -> Head:
    held = hash_at(TABLE_HEAD)
    sealer = Sealer(read_table_keys())
    return decode_head(held[b"payload"], held[b"signature"].decode(), sealer)


def parts() -> dict[str, bytes]:
    return {name.decode(): payload for name, payload in hash_at(TABLE_PARTS).items()}


def hash_at(key: str) -> dict[bytes, bytes]:
    return cast(dict[bytes, bytes], ticks.valkey().hgetall(key))


def store_late(numbered: tuple[int, publish.Encoded]) -> bool:
    version, table = numbered
    late = Head(version, table.read_at.timestamp(), 0.0, table.digests)
    return store.store(late, table.parts, Sealer(read_table_keys()), is_new=False)


def test_a_table_can_be_read_as_it_was_published() -> None:
    lane = builders.lane("fast")
    builders.preset("qwen", aliases=["q"])
    assert publish.publish()
    held = parts()
    assert head().parts == {name: digest_of(payload) for name, payload in held.items()}
    assert decode_lane(held["lane:fast"]).slug == lane.slug
    assert decode_presets(held["presets"]) == {"qwen": "qwen", "q": "qwen"}
    assert decode_tokens(held["tokens"]) == {}


def test_the_head_tells_the_databases_clock_from_valkeys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert publish.publish()
    assert abs(head().clock_offset) < 0.5  # the same machine
    now = clock.database_now()
    monkeypatch.setattr(clock, "database_now", lambda: now + timedelta(minutes=1))
    assert publish.publish()
    assert 50 < head().clock_offset <= 60


def test_the_version_is_the_databases_clock_in_milliseconds() -> None:
    before = clock.database_now().timestamp() * 1000
    publish.publish()
    assert before - 1 <= head().version <= clock.database_now().timestamp() * 1000


def test_unchanged_facts_renew_the_confirmation_only() -> None:
    publish.publish()
    first, sent = head(), ticks.valkey().info("commandstats")["cmdstat_hset"]["calls"]
    assert publish.publish()
    second = head()
    assert (second.version, second.parts) == (first.version, first.parts)
    assert second.confirmed_at > first.confirmed_at
    assert ticks.valkey().info("commandstats")["cmdstat_hset"]["calls"] == sent + 1  # the head


def test_unchanged_facts_are_renewed_without_writing_to_the_database() -> None:
    publish.publish()
    with CaptureQueriesContext(connection) as queries:
        assert publish.publish()
    assert {query["sql"].split()[0] for query in queries} <= {"SELECT", "WITH"}


def test_changed_facts_get_a_higher_version_and_send_what_changed() -> None:
    builders.lane("old")
    publish.publish()
    first = head()
    builders.lane("new")
    publish.publish()
    second = head()
    assert second.version > first.version
    assert second.parts["lane:old"] == first.parts["lane:old"]
    assert set(parts()) == {*ALWAYS, "lane:old", "lane:new"}


def test_a_deleted_lane_leaves_the_table() -> None:
    lane = builders.lane("gone")
    publish.publish()
    lane.delete()
    publish.publish()
    assert "lane:gone" not in head().parts
    assert "lane:gone" not in parts()


def test_each_stored_table_is_announced() -> None:
    listener: PubSub = ticks.valkey().pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    try:
        listener.subscribe(TABLE_CHANNEL)
        listener.get_message(timeout=1)
        publish.publish()
        message = listener.get_message(timeout=30)
        assert message is not None
        assert message["data"] == str(head().version).encode()
    finally:
        listener.close()


def test_the_table_of_a_late_publisher_never_wins() -> None:
    late = publish.number()
    lane = builders.lane("newer")
    publish.publish()
    assert not store_late(late)
    assert f"lane:{lane.slug}" in parts()


def test_two_publishers_of_the_same_new_facts_give_them_one_number() -> None:
    publish.publish()
    builders.lane("newer")
    first, second = publish._number_locked(is_new=False), publish._number_locked(is_new=False)
    assert first[0] == second[0]


def test_facts_read_before_another_number_was_given_get_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = publish.encode_facts

    def overtaken(now: datetime) -> publish.Encoded:
        table = encode(now)
        monkeypatch.setattr(publish, "encode_facts", encode)
        builders.lane("meanwhile")
        first.append(publish.number()[0])
        return table

    first: list[int] = []
    monkeypatch.setattr(publish, "encode_facts", overtaken)
    version, table = publish.number(is_new=True)
    assert version > first[0]
    assert "lane:meanwhile" in table.parts


def test_a_publisher_that_others_always_overtake_locks_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "_take_number", lambda *_: False)
    version, table = publish.number()
    assert (version, table.digest) == TableState.objects.values_list("version", "digest").get()


def test_an_older_confirmation_of_the_same_table_never_wins() -> None:
    late = publish.number()
    publish.publish()
    confirmed_at = head().confirmed_at
    assert not store_late(late)
    assert head().confirmed_at == confirmed_at


def test_an_emptied_valkey_gets_everything_though_nothing_changed() -> None:
    builders.lane("fast")
    publish.publish()
    before = head(), parts()
    ticks.valkey().flushdb()
    assert publish.publish()
    assert head().version > before[0].version
    assert parts() == before[1]


def test_a_lost_part_is_sent_again() -> None:
    publish.publish()
    ticks.valkey().hdel(TABLE_PARTS, "tokens")
    assert publish.publish()
    assert "tokens" in parts()


def test_a_head_that_is_not_one_is_replaced() -> None:
    ticks.valkey().hset(TABLE_HEAD, mapping={"version": "x", "payload": "{"})
    assert publish.publish()
    assert head().version > 0


def test_a_restored_backup_is_outranked_once_and_then_takes_over() -> None:
    publish.publish()
    backup = TableState.objects.values("version", "digest").get()
    lane = builders.lane("after-the-backup")
    publish.publish()
    newer = head()
    lane.delete()  # the database as it was, with the same facts and the old number
    TableState.objects.update(**backup)
    assert publish.publish()
    assert head().version > newer.version
    assert "lane:after-the-backup" not in parts()


def test_a_new_database_beside_a_held_table_takes_over_by_the_clock() -> None:
    publish.publish()
    first = head().version
    TableState.objects.all().delete()
    assert publish.publish()
    assert head().version > first


def test_a_clock_that_was_set_back_still_publishes(monkeypatch: pytest.MonkeyPatch) -> None:
    publish.publish()
    first, now = head(), clock.database_now()
    monkeypatch.setattr(clock, "database_now", lambda: now - timedelta(hours=1))
    assert publish.publish()
    assert head().version == first.version + 1
    assert head().confirmed_at == (now - timedelta(hours=1)).timestamp()


def test_edges_take_the_table_of_an_emptied_valkey_though_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish.publish()
    held, now = head(), clock.database_now()
    ticks.valkey().flushdb()  # so it knows of no later confirmation, but edges do
    monkeypatch.setattr(clock, "database_now", lambda: now - timedelta(hours=1))
    assert publish.publish()
    assert (head().version, head().confirmed_at) > (held.version, held.confirmed_at)
    assert head().clock_offset < -3_000


class Looks:
    """The database's clock, half a minute ahead, as a busy machine reads it."""

    def __init__(self, ahead: float, late: list[float]) -> None:
        self.ahead, self.late = ahead, late  # seconds that pass before each of the first answers

    def now(self) -> datetime:
        late = self.late.pop(0) if self.late else 0.0
        return datetime.fromtimestamp(time.time() + self.ahead + late, UTC)


@pytest.mark.parametrize(
    "late",
    [
        [0.0, 20.0],  # after Valkey has told the time, nothing runs for twenty seconds
        [-20.0, 0.0],  # and before
        [-20.0, 20.0, 0.0, 8.0],
    ],
)
def test_a_slow_answer_does_not_shift_the_edges_clock(
    monkeypatch: pytest.MonkeyPatch, late: list[float]
) -> None:
    monkeypatch.setattr(clock, "database_now", Looks(30.0, late).now)
    assert abs(store.clock_offset() - 30.0) < 5


@pytest.mark.parametrize("readings", [1, 2, 3])
@pytest.mark.parametrize("later", [-40.0, 90.0], ids=["back", "on"])
def test_a_clock_that_is_set_between_two_readings_tells_the_later_time(
    monkeypatch: pytest.MonkeyPatch, readings: int, later: float
) -> None:
    looks = Looks(30.0, [0.0, 5.0])  # so that one look is not close enough

    def now() -> datetime:
        nonlocal readings
        if readings == 0:
            looks.ahead = later
        readings -= 1
        return looks.now()

    monkeypatch.setattr(clock, "database_now", now)
    assert abs(store.clock_offset() - later) < 5


def test_without_valkey_it_says_so_and_answers_false(
    valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey_server.stop()
    assert not publish.publish()
    assert "Valkey does not answer" in caplog.text


def test_a_valkey_that_comes_back_gets_the_table(valkey_server: ValkeyServer) -> None:
    publish.publish()
    version = head().version
    valkey_server.stop()
    publish.publish()
    valkey_server.start()
    assert publish.publish()
    assert head().version > version


def test_a_valkey_that_dies_in_between_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise redis.ConnectionError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "store", fail)
        assert not publish.publish()
    assert publish.publish()
    assert set(parts()) == ALWAYS
