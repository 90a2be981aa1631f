"""Many publishers at once, beside changes: one row, no number twice, the newest facts win."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import pytest
from django.db import connections

from gateway import publish
from gateway.edge.table import decode_head
from gateway.models import TableState
from lanes import ticks
from lanes.models import Lane
from tests import builders
from wire.edges import TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer, read_table_keys

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.valkey]
PUBLISHERS = 4
ROUNDS = 8


def number_and_close(_: object = None) -> int:
    try:
        return publish.number(is_new=True)[0]
    finally:
        connections.close_all()


def change_and_publish(name: str) -> None:
    try:
        for turn in range(ROUNDS):
            Lane.objects.filter(slug=name).update(enabled=bool(turn % 2))
            publish.publish()
    finally:
        connections.close_all()


def test_the_first_row_is_made_once_and_no_number_is_given_twice() -> None:
    with ThreadPoolExecutor(PUBLISHERS) as pool:
        versions = list(pool.map(number_and_close, repeat(None, PUBLISHERS * ROUNDS)))
    assert len(set(versions)) == PUBLISHERS * ROUNDS
    assert TableState.objects.get().version == max(versions)


def test_after_a_race_of_publishers_the_table_shows_the_newest_facts(valkey: str) -> None:
    names = [builders.lane().slug for _ in range(PUBLISHERS)]
    with ThreadPoolExecutor(PUBLISHERS) as pool:
        list(pool.map(change_and_publish, names))
    held = ticks.valkey().hgetall(TABLE_HEAD)
    head = decode_head(
        held[b"payload"],  # type: ignore[arg-type]
        held[b"signature"].decode(),  # type: ignore[union-attr]
        Sealer(read_table_keys()),
    )
    assert head.version == TableState.objects.get().version
    parts = publish.encode_facts(builders.NOON).parts
    assert ticks.valkey().hgetall(TABLE_PARTS) == {n.encode(): p for n, p in parts.items()}
    ticks.valkey().close()
