"""From what is known of a failure to its cause. Pure."""

import re
import signal
from collections.abc import Sequence

from lanes.failures.causes import LONGEST, Cause, Evidence, FailureWords, Kind, Pattern
from lanes.failures.common import ADVICE, PATTERNS

MOST_QUOTED = 200  # characters of a log that stand within a sentence
_ERROR_LINE = re.compile(
    r"^(?:\S+ )?(?:error|fatal(?: error)?):? (.+)$|^((?:[\w.]+\.)?\w*(?:Error|Exception): .+)$",
    re.IGNORECASE,
)
_FOLDERS = re.compile(r"(?<![\w:/.~-])/(?:[^/\s'\"]+/)+")  # of whole paths
_NAMED = re.compile(r"\b([Tt]his|a|newer|installed) \{program\}")
_NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")

_SIGNALS: dict[int, tuple[Kind, str]] = {
    signal.SIGILL: (
        Kind.INSTRUCTION,
        "This {program} needs instructions that the processor lacks (SIGILL).",
    ),
    signal.SIGKILL: (
        Kind.HOST_MEMORY,
        "It was killed without a word in its log; most likely the host ran out of memory.",
    ),
    signal.SIGSEGV: (Kind.CRASH, "{program} crashed (SIGSEGV)."),
    signal.SIGABRT: (Kind.CRASH, "{program} gave up (SIGABRT)."),
    signal.SIGBUS: (
        Kind.FILE_BROKEN,
        "Reading the model file failed (SIGBUS): the disk may be full, gone or broken.",
    ),
}


def read_cause(evidence: Evidence, words: FailureWords) -> Cause:
    """The kernel's own line; else what the log names; else what kernel and exit status say.

    A server that was given up alive failed for what its log names, or for want of an answer.
    """
    lines = _lines(evidence.log_tail, words)
    cause = _killed(evidence) or _named(lines, words)
    if evidence.waited is not None:
        return _finished(_too_late(cause, lines, words, evidence.waited), words)
    return _finished(cause or _ended(evidence, lines, words), words)


def named_cause(log_tail: str, words: FailureWords) -> Cause | None:
    """What the log names, whatever else is known; None: it names nothing."""
    cause = _named(_lines(log_tail, words), words)
    return _finished(cause, words) if cause else None


def stated_cause(
    kind: Kind, reason: str, words: FailureWords, *, line: str = "", advice: str = ""
) -> Cause:
    """A cause that no log had to name, such as that a probe found."""
    sentence = f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
    return _finished(Cause(kind, sentence, line, advice), words)


def without_folders(text: str) -> str:
    """The text with the names of files alone: their folders are in the line it was read in."""
    if text.startswith("/"):
        return text.rstrip("/").rpartition("/")[2]
    return _FOLDERS.sub("", text)


def _lines(log_tail: str, words: FailureWords) -> list[str]:
    lines = [_NOT_TEXT.sub("", line).strip() for line in log_tail.splitlines()]
    if words.harmless is None:
        return lines
    return [line for line in lines if not words.harmless.search(line)]


def _killed(evidence: Evidence) -> Cause | None:
    if not evidence.killed_line:
        return None
    sentence = "The kernel killed it: the host, or the limit it runs under, had no memory left."
    return Cause(Kind.HOST_MEMORY, sentence, evidence.killed_line)


def _named(lines: list[str], words: FailureWords) -> Cause | None:
    """What the first pattern says that any line has, the last such line counting."""
    for one in (*words.patterns, *PATTERNS, *words.late_patterns):
        for line in reversed(lines):
            found = one.expression.search(line)
            if found:
                return _said(one, found, words)
    return None


def _said(one: Pattern, found: re.Match[str], words: FailureWords) -> Cause:
    groups = [without_folders(group or "")[:MOST_QUOTED] for group in found.groups()]
    return Cause(
        one.kind,
        _filled(one.sentence, words, groups),
        found.string,
        _filled(one.advice, words, groups),
    )


def _filled(text: str, words: FailureWords, groups: Sequence[str] = ()) -> str:
    """The text with the program's name and what was found in the line; {any}: the first group
    that has something."""
    first = next(filter(None, groups), "")
    bare = words.program.removeprefix("the ")  # "the program", of which nobody knows the name
    text = _NAMED.sub(lambda found: f"{found[1]} {bare}", text)
    said = text.format(*groups, any=first, program=words.program)
    return f"The {said[4:]}" if said.startswith("the ") else said


def _too_late(cause: Cause | None, lines: list[str], words: FailureWords, seconds: float) -> Cause:
    """It lives, but was not ready in time."""
    late = f"It did not become ready within {seconds:g} s"
    if cause is None:
        return Cause(Kind.TIMEOUT, f"{late}.", _last_error(lines, words))
    return Cause(cause.kind, f"{late}: {cause.sentence}", cause.line, cause.advice)


def _ended(evidence: Evidence, lines: list[str], words: FailureWords) -> Cause:
    """What is left when no line names a cause."""
    number = _signal_number(evidence.exit_status)
    line = _last_error(lines, words)
    if evidence.memory_kills:
        who = "it" if number == signal.SIGKILL else "a process beside it"
        sentence = f"The kernel killed {who}: there was no memory left on the host."
        return Cause(Kind.HOST_MEMORY, sentence, line)
    if number in _SIGNALS:
        kind, sentence = _SIGNALS[number]
        return Cause(kind, _filled(sentence, words), line)
    # No word of a line that nobody knows: it may hold somebody's prompt.
    more = "; the last error in its log may say why." if line else " and its log names no error."
    return Cause(Kind.UNKNOWN, _ending(number, evidence.exit_status) + more, line)


def _signal_number(exit_status: int | None) -> int:
    """The signal that ended it, or 0. Shells and containers say 128 + n for signal n."""
    if exit_status is None:
        return 0
    if exit_status < 0:
        return -exit_status
    return exit_status - 128 if 128 < exit_status < 160 else 0


def _ending(number: int, exit_status: int | None) -> str:
    if number:
        return f"It was ended by signal {number}"
    if exit_status is None:
        return "It does not answer"
    return f"It ended with status {exit_status}"


def _last_error(lines: list[str], words: FailureWords) -> str:
    """The last line that says it is an error; empty when there is none."""
    for line in reversed(lines):
        if (words.error_lines and words.error_lines.search(line)) or _ERROR_LINE.search(line):
            return line
    return ""


def _finished(cause: Cause, words: FailureWords) -> Cause:
    """With an advice, and cut to what the columns hold."""
    by_engine = {Kind.GPU_MEMORY: words.gpu_memory, Kind.HOST_MEMORY: words.host_memory}
    advice = cause.advice or by_engine.get(cause.kind) or ADVICE[cause.kind]
    advice = advice if cause.advice else _filled(advice, words)
    return Cause(cause.kind, cause.sentence[:LONGEST], cause.line[:LONGEST], advice[:LONGEST])
