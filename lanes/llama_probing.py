"""Which flags this host's llama-server takes: asked of itself, once for each file that it is.

The answer makes starts surer and presets clearer, and nothing waits for it: a program that hangs,
says nothing or is not there is told of as such, and started as ever. A script stays the same file
when the build that it starts is replaced: so each worker asks once, and again when arguments were
not taken.
"""

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from subprocess import SubprocessError

from django.conf import settings

from lanes import clock, short_programs, starting
from lanes.engines import llama_cpp, llama_help
from lanes.failures.causes import Kind
from lanes.known_programs import identity
from lanes.models import Engine, Host, LlamaServer, PresetFailure
from wire.words import kept_of, marked, said

log = logging.getLogger(__name__)
SECONDS = 10.0  # for each of two questions
MOST_BYTES = 2**19  # a help of 2026 has 50 KB
WORDS = 300
AGAIN = timedelta(minutes=10)  # after trouble
_asking = threading.Lock()
_asked_here: set[int] = set()  # hosts whose program this process has asked


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said of itself, or why it is not known."""

    version: str = ""
    flags: tuple[str, ...] = ()
    trouble: str = ""


def is_due(host: Host) -> bool:
    """Whether the host's program may be another than was asked, or did not answer a while ago."""
    known = LlamaServer.objects.filter(host=host).first()
    if known is None or host.pk not in _asked_here or known.identity != identity():
        return True
    if known.trouble:
        return clock.database_now() - known.asked_at >= AGAIN
    return _refused_arguments(host, known)


def _refused_arguments(host: Host, known: LlamaServer) -> bool:
    """Whether it did not take its arguments since it was asked."""
    of_host = PresetFailure.objects.filter(lane__host=host, failed_at__gt=known.asked_at)
    own = of_host.filter(revision__engine=Engine.LLAMA_CPP, revision__image="")
    return own.filter(failure_kind=Kind.ARGUMENT, count__gt=0).exists()


def probe_host(host_key: str) -> None:
    """Ask this worker's llama-server if that is due, and note down what it said."""
    host = Host.objects.filter(key=host_key).first()
    if host is None or host_key != settings.SLOTSERVE_HOST_KEY:
        return
    if not _asking.acquire(blocking=False):
        return
    try:
        if is_due(host):
            now = clock.database_now()  # before: what fails meanwhile was started with less known
            _note(host, identity(), ask(llama_cpp.program()), now)
    finally:
        _asking.release()


def ask(program: Sequence[str]) -> Answer:
    """Its flags, and its version if it says that."""
    told = _say(program, "--help")
    if isinstance(told, Answer):
        return told
    flags = llama_help.flags_of(told)
    if not flags:
        return Answer(trouble=said("its --help names no flags"))
    version = _say(program, "--version")
    name = llama_help.version_of(version) if isinstance(version, str) else ""
    return Answer(name, tuple(sorted(flags)))


def _say(program: Sequence[str], question: str) -> str | Answer:
    """What it writes when it is asked so, as a server's user with a server's variables."""
    environment = {**llama_cpp.host_environment(), "CUDA_VISIBLE_DEVICES": ""}
    try:
        child = short_programs.start((*program, question), environment, starting.as_user())
    except (OSError, ValueError, SubprocessError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return Answer(trouble=said("it cannot be started: {why}", why=why))
    output = short_programs.finish(child, seconds=SECONDS, most=MOST_BYTES)
    if output.status is None:
        text = marked("it did not end within {seconds:g} s when asked for {question}")
        return Answer(trouble=said(text, seconds=SECONDS, question=question))
    if output.is_cut:
        text = marked("it wrote more than {most} bytes when asked for {question}")
        return Answer(trouble=said(text, most=MOST_BYTES, question=question))
    return output.text.decode(errors="replace")


def _note(host: Host, asked: str, answer: Answer, now: datetime) -> None:
    told = {
        "identity": asked,
        "version": answer.version,
        "flags": list(answer.flags),
        "trouble": answer.trouble[:WORDS],
        "words": kept_of(answer.trouble),
        "asked_at": now,
    }
    LlamaServer.objects.update_or_create(host=host, defaults=told)
    _asked_here.add(host.pk)
    if answer.trouble:
        log.warning("llama-server not known host=%s reason=%s", host.key, answer.trouble)
    else:
        log.info("llama-server asked host=%s version=%s", host.key, answer.version)
