"""System checks of hosts' settings."""

import sys

import pytest
from django.core.checks.registry import registry
from pytest_django import Settings

from lanes import checks


@pytest.mark.parametrize("named", ["/nowhere/llama-server", __file__, "no-such-program"])
def test_a_llama_server_that_is_no_program_is_an_error(settings: Settings, named: str) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = named
    assert [error.id for error in checks.check_llama_server(None)] == ["slotserve.E011"]


@pytest.mark.parametrize("named", ["", sys.executable, "sh"])
def test_a_program_or_none_is_fine(settings: Settings, named: str) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = named
    assert checks.check_llama_server(None) == []


def test_a_command_with_an_open_quote_is_an_error_that_names_its_setting(
    settings: Settings,
) -> None:
    assert checks.check_commands(None) == []
    settings.SLOTSERVE_SGLANG = "python -m 'sglang"
    (error,) = checks.check_commands(None)
    assert (error.id, "SLOTSERVE_SGLANG" in error.msg) == ("slotserve.E015", True)


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (2000, 1999, ["slotserve.E012"]),
        (65000, 65536, ["slotserve.E012"]),
        (2000, 2000, []),
        (2000, 65535, []),
    ],
)
def test_the_range_of_ports_must_have_ports(
    settings: Settings, first: int, last: int, found: list[str]
) -> None:
    settings.SLOTSERVE_PORT_FIRST, settings.SLOTSERVE_PORT_LAST = first, last
    assert [error.id for error in checks.check_port_range(None)] == found


@pytest.mark.parametrize(
    ("named", "found"), [("", []), ("nobody", []), ("no such user", ["slotserve.E013"])]
)
def test_servers_run_as_a_user_that_exists(
    settings: Settings, named: str, found: list[str]
) -> None:
    settings.SLOTSERVE_RUN_AS = named
    assert [error.id for error in checks.check_run_as(None)] == found


def test_the_checks_run_with_all_others() -> None:
    ours = {
        checks.check_llama_server,
        checks.check_port_range,
        checks.check_margins,
        checks.check_run_as,
    }
    assert ours <= set(registry.get_checks())
