"""What reaches for the network inside a transaction is found out."""

import contextlib
import socket
from collections.abc import Callable

import pytest
import redis
from django.db import transaction

from lanes import ticks
from notices import posting
from tests import no_network

pytestmark = [pytest.mark.django_db, pytest.mark.valkey, pytest.mark.usefixtures("valkey")]


def by_name() -> object:
    return socket.getaddrinfo("127.0.0.1", 80)


def by_valkey() -> object:
    return ticks.valkey().ping()


def by_webhook() -> object:
    with pytest.raises(posting.PostError):
        posting.post("http://localhost/", b"", {})
    return True


@pytest.mark.parametrize("reach", [by_name, by_valkey, by_webhook])
def test_it_is_found_out_in_a_transaction_and_let_alone_outside(
    reach: Callable[[], object],
) -> None:
    with no_network.refused() as came:
        assert reach()
        assert came == []
        with transaction.atomic(), contextlib.suppress(OSError, redis.RedisError):
            reach()
        assert came


def test_what_waits_for_the_commit_is_let_through() -> None:
    with no_network.refused() as came:
        with transaction.atomic():
            transaction.on_commit(by_valkey)
        assert came == []
