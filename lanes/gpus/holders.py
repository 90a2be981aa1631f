"""Who the processes on a card are: user, command, and the lane whose server they belong to."""

import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath

import psutil

from lanes import processes, records
from lanes.gpus.readings import CardProcess, Holder

MOST_CHARACTERS = 60
_INTERPRETERS = ("python", "perl", "ruby", "node", "bash", "sh", "java")


def identify(found: Iterable[CardProcess], lanes: Mapping[int, str]) -> tuple[Holder, ...]:
    """The processes of one card, by their numbers; `lanes` are this host's, by primary key."""
    sessions = _sessions(lanes)
    return tuple(_holder(each, lanes, sessions) for each in found)


def command_of(arguments: list[str], fallback: str) -> str:
    """The program, and the script or module that an interpreter runs. Other arguments stay
    unsaid: they may hold secrets."""
    program = PurePath(arguments[0]).name if arguments and arguments[0] else fallback
    if not program.startswith(_INTERPRETERS) or len(arguments) < 2:
        return program[:MOST_CHARACTERS]
    if arguments[1] == "-m" and len(arguments) > 2:
        return f"{program} -m {arguments[2]}"[:MOST_CHARACTERS]
    script = "" if arguments[1].startswith("-") else PurePath(arguments[1]).name
    return f"{program} {script}".strip()[:MOST_CHARACTERS]


def _holder(
    told: CardProcess, lanes: Mapping[int, str], sessions: Mapping[int, tuple[int, str]]
) -> Holder:
    stat = processes.stat(told.pid)
    if stat is None:
        return Holder(told.pid, memory_bytes=told.memory_bytes, is_compute=told.is_compute)
    user, command = _names(told.pid)
    return Holder(
        pid=told.pid,
        ticks=stat.ticks,
        user=user,
        command=command,
        memory_bytes=told.memory_bytes,
        is_compute=told.is_compute,
        lane=_lane(stat, lanes, sessions),
    )


def _lane(
    stat: processes.Stat, lanes: Mapping[int, str], sessions: Mapping[int, tuple[int, str]]
) -> str:
    """By the marks in its environment; where that cannot be read, by its session."""
    names = processes.environment(stat.pid)
    if names.get(processes.INSTALLATION) == records.installation_id():
        pk = names.get(processes.LANE, "")
        if pk.isdigit():
            return lanes.get(int(pk), f"lane {pk}")
    since, lane = sessions.get(stat.session, (0, ""))
    return lane if lane and stat.ticks >= since else ""


def _sessions(lanes: Mapping[int, str]) -> dict[int, tuple[int, str]]:
    """The sessions of this host's living servers: since when, and whose."""
    found = {}
    for pk, slug in lanes.items():
        record = records.read_record(pk)
        if record is None or not record.is_server_alive:
            continue
        if record.pid is not None and record.ticks is not None:
            found[record.pid] = (record.ticks, slug)
    return found


def _names(pid: int) -> tuple[str, str]:
    """User and command; what cannot be read is empty."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return _user(process), command_of(process.cmdline(), process.name())
    except (psutil.Error, OSError):
        return "", ""


def _user(process: psutil.Process) -> str:
    try:
        return process.username()
    except (psutil.Error, KeyError):
        return f"user {os.stat(f'/proc/{process.pid}').st_uid}"
