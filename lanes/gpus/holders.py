"""Who the processes on a card are: user, command, and the lane whose server they belong to."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import PurePath

import psutil

from lanes import processes, records
from lanes.containers import notes
from lanes.containers.launching import note_of
from lanes.gpus.readings import CardProcess, Holder

MOST_CHARACTERS = 60
_KEY = re.compile(r"[0-9]{1,18}")
_INTERPRETERS = ("python", "perl", "ruby", "node", "bash", "sh", "java")


@dataclass(frozen=True, slots=True)
class _Server:
    """By what a lane's server is known where its environment cannot be read."""

    lane: str
    since: int  # kernel ticks: nothing that is older is of it
    leaders: frozenset[int]  # of its session, and of its container's; none when it has ended
    container: str  # empty: it is in none

    def has(self, stat: processes.Stat, kin: Set[int], inside: Set[str]) -> bool:
        """Whether this process is one of it; `kin` are its session and whom it descends from."""
        return self.container in inside or (stat.ticks >= self.since and bool(self.leaders & kin))


def identify(found: Iterable[CardProcess], lanes: Mapping[int, str]) -> tuple[Holder, ...]:
    """The processes of one card, by their numbers; `lanes` are this host's, by primary key."""
    servers = _servers(lanes)
    return tuple(_holder(each, lanes, servers) for each in found)


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


def _holder(told: CardProcess, lanes: Mapping[int, str], servers: Sequence[_Server]) -> Holder:
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
        lane=_marked(told.pid, lanes) or _served(stat, servers),
    )


def _marked(pid: int, lanes: Mapping[int, str]) -> str:
    """The lane by the marks in its environment: where that can be read, and was not written over
    by a program that gives itself a title."""
    names = processes.environment(pid)
    if names.get(processes.INSTALLATION) != records.installation_id():
        return ""
    pk = names.get(processes.LANE, "")
    return lanes.get(int(pk), f"lane {pk}") if _KEY.fullmatch(pk) else ""


def _served(stat: processes.Stat, servers: Sequence[_Server]) -> str:
    """The lane by the container it is in, its session or whom it descends from."""
    inside = notes.containers_of(processes.control_groups(stat.pid))
    kin = {stat.session, *(step.pid for step in processes.ancestry(stat))}
    return next((server.lane for server in servers if server.has(stat, kin, inside)), "")


def _servers(lanes: Mapping[int, str]) -> list[_Server]:
    """What is known of this host's newest servers."""
    found = []
    for pk, slug in lanes.items():
        record = records.read_record(pk)
        if record is not None:
            note = note_of(pk) if record.is_container else notes.Note()
            pids = {record.pid or 0, note.pid} - {0} if record.is_server_alive else set()
            found.append(_Server(slug, record.ticks or 0, frozenset(pids), note.container))
    return found


def _names(pid: int) -> tuple[str, str]:
    """User and command; what cannot be read is empty."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return _user(process), _plain(command_of(process.cmdline(), process.name()))
    except (psutil.Error, OSError):
        return "", ""


def _plain(text: str) -> str:
    """A process may call itself anything; halves of characters no database keeps."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _user(process: psutil.Process) -> str:
    try:
        return process.username()
    except (psutil.Error, KeyError):
        return f"user {os.stat(f'/proc/{process.pid}').st_uid}"
