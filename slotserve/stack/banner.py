"""What bin/up says when everything runs: addresses, login, a request to paste."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from slotserve.stack.parts import ROOT, Options
from wire.env import read_secret


@dataclass(frozen=True, slots=True)
class FirstStart:
    """What setting up did. Password and token are there only when they were made now."""

    administrator: str
    password: str = ""
    token: str = ""
    model: str = ""
    notes: tuple[str, ...] = ()


def read_report(path: Path) -> FirstStart:
    """Setting up's report."""
    raw = json.loads(path.read_text())
    return FirstStart(**{**raw, "notes": tuple(raw["notes"])})


def secrets_made(report: FirstStart) -> str:
    """What is shown only once; empty when nothing was made."""
    lines = []
    if report.password:
        lines.append(f"  Administrator {report.administrator}, password {report.password}")
    if report.token:
        lines.append(f"  Demo token    {report.token}")
    return "\n".join(lines)


def banner(options: Options, report: FirstStart) -> str:
    """The whole of it."""
    lines = ["", "SlotServe runs.", "", f"  Pages  {options.web_url}/   {_login(report)}"]
    lines += [f"  API    {options.gateway_url}/v1", "", *_example(options, report), ""]
    lines += [f"  {note}" for note in report.notes]
    return "\n".join([*lines, f"  Everything is kept in {options.data}. Ctrl-C stops it.", ""])


def _login(report: FirstStart) -> str:
    if report.password:
        return f"log in as {report.administrator}, password {report.password} (shown only now)"
    return f"log in as {report.administrator}"


def _example(options: Options, report: FirstStart) -> list[str]:
    """A request with the demo token, or how to get a token."""
    if not report.token:
        command = f"{_python()} manage.py create_token {report.administrator}"
        folder = "" if options.data == ROOT / "var" else f"SLOTSERVE_DATA={_quoted(options.data)} "
        more = " (with the DATABASE_URL of this bin/up)" if read_secret("DATABASE_URL") else ""
        return [f"  A new token: {folder}{command}{more}"]
    model = report.model or "auto"
    question = [{"role": "user", "content": "Say hello."}]
    body = {"model": model, "max_tokens": 40, "stream": True, "messages": question}
    return [
        "  Try it (the token is shown only now):",
        "",
        f"curl {options.gateway_url}/v1/chat/completions \\",
        f"  -H 'Authorization: Bearer {report.token}' \\",
        "  -H 'Content-Type: application/json' \\",
        f"  -d '{json.dumps(body)}'",
    ]


def _python() -> str:
    python = Path(sys.executable)
    return _quoted(python.relative_to(ROOT) if python.is_relative_to(ROOT) else python)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
