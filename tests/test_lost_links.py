"""Connections to PostgreSQL and Valkey that notice a lost machine or link."""

import socket
from typing import Any

import psycopg
import pytest
import redis
from django.db import connection

from slotserve.broker import keepalive_options, transport_options
from slotserve.database import postgres_options


def test_both_sides_of_a_database_connection_are_told() -> None:
    options = postgres_options({})
    assert options["keepalives_idle"] == 5
    assert "tcp_keepalives_idle=5" in str(options["options"])
    assert "idle_in_transaction_session_timeout" in str(options["options"])


def test_what_the_address_says_goes_before() -> None:
    options = postgres_options({"options": "", "sslmode": "require", "connect_timeout": 30})
    assert (options["options"], options["sslmode"], options["connect_timeout"]) == (
        "",
        "require",
        30,
    )


@pytest.mark.django_db
def test_postgres_takes_them() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite")
    with connection.cursor() as cursor:
        cursor.execute("show idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("1min",)
    raw = connection.connection
    assert isinstance(raw, psycopg.Connection)
    assert raw.info.get_parameters()["tcp_user_timeout"] == "15000"


def test_workers_of_a_valkey_on_the_network_hear_of_a_lost_link() -> None:
    assert "socket_keepalive_options" not in transport_options("unix:///tmp/v.sock?db=0")
    options = transport_options("redis://10.0.0.1:6379/0")
    assert options["socket_keepalive_options"] == keepalive_options()


def test_this_system_takes_the_options_of_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        pool = redis.ConnectionPool(
            port=port, socket_keepalive=True, socket_keepalive_options=keepalive_options()
        )
        made: Any = pool.make_connection()
        connected = made._connect()
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        connected.close()
