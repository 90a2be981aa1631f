"""From what is known of a failure to its cause. Pure."""

import re
import signal
from collections.abc import Sequence

from lanes.failures.causes import LONGEST, Cause, Evidence, FailureWords, Kind, Pattern
from lanes.failures.common import ADVICE, PATTERNS
from wire.words import Words, cut, said

MOST_QUOTED = 200  # characters of a log that stand within a sentence
_ERROR_LINE = re.compile(
    r"^(?:\S+ )?(?:error|fatal(?: error)?):? (.+)$|^((?:[\w.]+\.)?\w*(?:Error|Exception): .+)$",
    re.IGNORECASE,
)
_FOLDERS = re.compile(r"(?<![\w:/.~-])/(?:[^/\s'\"]+/)+")  # of whole paths
_NAMED = re.compile(r"\b([Tt]his|a|newer|installed) \{program\}")
_NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")

SIGNALS: dict[int, tuple[Kind, str]] = {
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
    is_whole = reason.endswith(".") and not reason[:1].islower()
    sentence = reason if is_whole else f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
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
    sentence = said(
        "The kernel killed it: the host, or the limit it runs under, had no memory left."
    )
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
    program = words.program
    if _NAMED.search(text):
        program = program.removeprefix("the ")  # "the program", of which nobody knows the name
    elif text.startswith("{program}") and program.startswith("the "):
        program = f"The {program[4:]}"
    values = {"any": next(filter(None, groups), ""), "program": program}
    named = {name: value for name, value in values.items() if f"{{{name}}}" in text}
    return said(text, *groups, **named) if text else ""


def _too_late(cause: Cause | None, lines: list[str], words: FailureWords, seconds: float) -> Cause:
    """It lives, but was not ready in time."""
    if cause is None:
        late = said("It did not become ready within {seconds:g} s.", seconds=seconds)
        return Cause(Kind.TIMEOUT, late, _last_error(lines, words))
    late = said(
        "It did not become ready within {seconds:g} s: {why}", seconds=seconds, why=cause.sentence
    )
    return Cause(cause.kind, late, cause.line, cause.advice)


def _ended(evidence: Evidence, lines: list[str], words: FailureWords) -> Cause:
    """What is left when no line names a cause."""
    number = _signal_number(evidence.exit_status)
    line = _last_error(lines, words)
    if evidence.memory_kills:
        killed = said(
            "The kernel killed a process beside it: there was no memory left on the host."
        )
        if number == signal.SIGKILL:
            killed = said("The kernel killed it: there was no memory left on the host.")
        return Cause(Kind.HOST_MEMORY, killed, line)
    if number in SIGNALS:
        kind, sentence = SIGNALS[number]
        return Cause(kind, _filled(sentence, words), line)
    # No word of a line that nobody knows: it may hold somebody's prompt.
    ending = _ending(number, evidence.exit_status)
    if line:
        sentence = said("{ending}; the last error in its log may say why.", ending=ending)
    else:
        sentence = said("{ending} and its log names no error.", ending=ending)
    return Cause(Kind.UNKNOWN, sentence, line)


def _signal_number(exit_status: int | None) -> int:
    """The signal that ended it, or 0. Shells and containers say 128 + n for signal n."""
    if exit_status is None:
        return 0
    if exit_status < 0:
        return -exit_status
    return exit_status - 128 if 128 < exit_status < 160 else 0


def _ending(number: int, exit_status: int | None) -> Words:
    if number:
        return said("It was ended by signal {number}", number=number)
    if exit_status is None:
        return said("It does not answer")
    return said("It ended with status {status}", status=exit_status)


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
    return Cause(
        cause.kind, cut(cause.sentence, LONGEST), cause.line[:LONGEST], cut(advice, LONGEST)
    )
