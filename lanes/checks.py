"""System checks of the settings of hosts and model servers."""

import os
import pwd
import shlex
import shutil
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Complaint

from wire.setting_names import misspelt

LLAMA_SERVER = "slotserve.E011"
PORT_RANGE = "slotserve.E012"
MARGINS = "slotserve.E010"
RUN_AS = "slotserve.E013"
SILENCE = "slotserve.E014"
COMMANDS = "slotserve.E015"
MISSPELT = "slotserve.W016"
COMMAND_SETTINGS = (
    "SLOTSERVE_VLLM",
    "SLOTSERVE_SGLANG",
    "SLOTSERVE_COMFYUI",
    "SLOTSERVE_TRAINER",
    "SLOTSERVE_COMMANDS",
)


def check_names(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """Each variable that looks like a setting is one."""
    hint = "Correct its name, or unset it: docs/settings.md lists all."
    return [Complaint(words, hint=hint, id=MISSPELT) for words in misspelt(os.environ)]


def check_llama_server(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """SLOTSERVE_LLAMA_SERVER, when set, names a program."""
    named = settings.SLOTSERVE_LLAMA_SERVER
    if not named or shutil.which(named):
        return []
    words = f"SLOTSERVE_LLAMA_SERVER={named} is not a program that can be run."
    hint = "Give the path of llama-server, or unset it to use the one on PATH or the built-in one."
    return [Error(words, hint=hint, id=LLAMA_SERVER)]


def check_commands(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """Settings that name programs can be split into words."""
    return [
        Error(
            f"{name} has a quote that is not closed: {getattr(settings, name)}",
            hint="Write it as in a shell, such as /opt/vllm/bin/vllm serve.",
            id=COMMANDS,
        )
        for name in COMMAND_SETTINGS
        if not _is_command(getattr(settings, name))
    ]


def check_port_range(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """The range of ports for model servers has ports in it."""
    first, last = settings.SLOTSERVE_PORT_FIRST, settings.SLOTSERVE_PORT_LAST
    if first <= last <= 65535:
        return []
    words = f"SLOTSERVE_PORT_FIRST={first} and SLOTSERVE_PORT_LAST={last} are no range of ports."
    hint = "Give a first port that is not above the last, and a last one of 65535 or less."
    return [Error(words, hint=hint, id=PORT_RANGE)]


def check_run_as(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """SLOTSERVE_RUN_AS, when set, names a user of this machine."""
    named = settings.SLOTSERVE_RUN_AS
    try:
        if named:
            pwd.getpwnam(named)
    except KeyError:
        words = f"SLOTSERVE_RUN_AS={named} is not a user of this machine."
        hint = "Make the user, or unset it to run model servers as the worker's own user."
        return [Error(words, hint=hint, id=RUN_AS)]
    return []


def check_margins(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """A drain and a stop fit into the buffer, or a booked model would not be loaded in time."""
    drain, stop = settings.SLOTSERVE_DRAIN_SECONDS, settings.SLOTSERVE_STOP_TIMEOUT_SECONDS
    buffer = settings.SLOTSERVE_BUFFER_SECONDS
    if drain + stop <= buffer:
        return []
    words = (
        f"SLOTSERVE_DRAIN_SECONDS={drain:g} and SLOTSERVE_STOP_TIMEOUT_SECONDS={stop:g} are "
        f"together more than SLOTSERVE_BUFFER_SECONDS={buffer:g}."
    )
    hint = f"Raise the buffer to {drain + stop:g} or more, or shorten the drain or the stop."
    return [Error(words, hint=hint, id=MARGINS)]


def check_silence(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """A host is asked several times before it counts as unreachable."""
    silent, tick = settings.SLOTSERVE_HOST_SILENT_SECONDS, settings.SLOTSERVE_TICK_SECONDS
    if silent >= 4 * tick:
        return []
    words = (
        f"SLOTSERVE_HOST_SILENT_SECONDS={silent:g} is less than four times "
        f"SLOTSERVE_TICK_SECONDS={tick:g}: hosts would count as unreachable between two looks."
    )
    return [Error(words, hint=f"Give {4 * tick:g} or more.", id=SILENCE)]


def _is_command(text: str) -> bool:
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True
