"""bin/join's own half: asking the pages, and the file with the settings."""

import http.server
import json
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotserve.joining import __main__ as program
from slotserve.joining import environment_file, unit
from slotserve.joining.asking import JoinError, ask
from wire.host_settings import TOLD_TO_HOSTS
from wire.setting_names import NAMES

TOLD = {
    "host": {"key": "gpu1", "name": "GPU one", "address": "10.0.0.5"},
    "version": "1",
    "environment": {
        "DATABASE_URL": "postgres://u:p@10.0.0.1/slotserve",
        "REDIS_URL": "redis://u:p@10.0.0.1/0",
        "SLOTSERVE_HOST_KEY": "gpu1",
    },
}


def told_with(**environment: str) -> dict[str, object]:
    return {**TOLD, "environment": {**TOLD["environment"], **environment}}  # type: ignore[dict-item]


OF_THIS_MACHINE = sorted(
    {f"SLOTSERVE_{name}" for name in (*NAMES, "LLAMA_SERVER_FILE", "OF_NOBODY")} - {*TOLD_TO_HOSTS}
)


class Pages(http.server.BaseHTTPRequestHandler):
    """What answers is set by each test."""

    answer: tuple[int, object] = (200, TOLD)
    asked: list[tuple[str, Any]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Pages.asked.append((self.path, json.loads(body)))
        status, said = Pages.answer
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "https://elsewhere.example/")
        self.end_headers()
        self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    Pages.asked, Pages.answer = [], (200, TOLD)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_token_is_exchanged_in_the_body_never_in_the_address(pages: str) -> None:
    told = ask(f"{pages}/", "sj_token")
    assert (told.key, told.address) == ("gpu1", "10.0.0.5")
    said = {"token": "sj_token", "machine": "", "addresses": []}
    assert Pages.asked == [("/api/v1/hosts/join/", said)]


def test_what_a_host_is_told_passes(pages: str) -> None:
    told = told_with(**dict.fromkeys(set(TOLD_TO_HOSTS) - {*TOLD["environment"]}, "x"))
    Pages.answer = (200, told)
    assert set(ask(pages, "sj_token").environment) == {*TOLD_TO_HOSTS}


ANSWERS: list[tuple[int, object, str]] = [
    (403, {"code": "bad_join_token", "detail": "This join token has expired."}, "has expired"),
    (404, b"<html>", "answered 404"),
    (302, b"", "leads to https://elsewhere.example/"),
    (200, b"<html>", "is not a SlotServe"),
    (200, [], "is not a SlotServe"),
    (200, {"host": "x", "version": "1", "environment": {}}, "is not a SlotServe"),
    (200, {**TOLD, "environment": {}}, "is not a SlotServe"),
    (200, told_with(SLOTSERVE_HOST_KEY="another"), "is not a SlotServe"),
    (200, told_with(LD_PRELOAD="/tmp/theirs.so"), "sets 'LD_PRELOAD', which no host needs"),
    (200, told_with(PYTHONPATH="/tmp"), "sets 'PYTHONPATH', which no host needs"),
    *(
        (200, told_with(**{name: "/tmp/theirs"}), f"sets '{name}', which no host needs")
        for name in OF_THIS_MACHINE
    ),
    (200, b"[" * 2**19, "is not a SlotServe"),
    (400, b"[" * 2**19, "answered 400"),
    (400, {"detail": "\x1b]0;mine\x07no\r\nroot@host:~# "}, "^[^\x00-\x1f]*no[^\x00-\x1f]*$"),
    (400, {"detail": "x" * 2**20}, "answered 400|^x{500}$"),
]


@pytest.mark.parametrize(("status", "said", "words"), ANSWERS)
def test_what_goes_wrong_is_one_sentence(pages: str, status: int, said: object, words: str) -> None:
    Pages.answer = (status, said)
    with pytest.raises(JoinError, match=words):
        ask(pages, "sj_token")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://8.8.8.8", "plain HTTP to a public address"),
        ("ftp://10.0.0.1", "no address of SlotServe's pages"),
        ("gpu.example.org", "no address of SlotServe's pages"),
        ("http://127.0.0.1:9", "cannot be reached"),
        ("http://nobody.invalid", "is not known here"),
    ],
)
def test_an_address_that_cannot_be_asked_is_explained(url: str, words: str) -> None:
    with pytest.raises(JoinError, match=words):
        ask(url, "sj_token")


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "https://h:99999", "https://h:x/", "https://a b", f"http://{'a' * 70}.de"],
)
def test_what_is_no_address_is_said_in_a_sentence(url: str) -> None:
    with pytest.raises(JoinError, match="is no address of SlotServe's pages"):
        ask(url, "sj_token")


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 " + b"x" * 2**17,
        b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
def test_who_speaks_no_sound_http_is_told_of_in_a_sentence(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_say, args=(server, said))
        thread.start()
        with pytest.raises(JoinError, match=r"is not a SlotServe|cannot be reached|answered 400"):
            ask(f"http://127.0.0.1:{server.getsockname()[1]}", "sj_token")
        thread.join()


def _say(server: socket.socket, said: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(said)


texts = st.text(st.characters(exclude_characters="'", exclude_categories=["Cc", "Cs"]))


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True), texts, max_size=4))
def test_the_file_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("file") / "environment"
    environment_file.write(path, said)
    assert environment_file.read(path) == said
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_shell_reads_the_file_alike(tmp_path: Path) -> None:
    path = tmp_path / "environment"
    value = 'redis://u:p"$HOME`id`\\n%@10.0.0.1/0'
    environment_file.write(path, {"REDIS_URL": value})
    script = f'set -a; . {shlex.quote(str(path))}; printf %s "$REDIS_URL"'
    assert (
        subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        == value
    )


@pytest.mark.parametrize("value", ["a'b", "a\nb", "a\0b"])
def test_what_no_file_can_hold_is_said_before_it_is_written(tmp_path: Path, value: str) -> None:
    path = tmp_path / "environment"
    with pytest.raises(environment_file.EnvironmentFileError, match="REDIS_URL"):
        environment_file.write(path, {"REDIS_URL": value})
    assert not path.exists()


def test_settings_that_are_there_are_not_asked_for_again(
    pages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    looks = iter([1, 0])
    done: Any = type("Done", (), {})

    def run(argv: list[str], **_: object) -> object:
        done.returncode = next(looks)
        return done

    monkeypatch.setattr(subprocess, "run", run)
    words = [pages, "sj_token", "--data", str(tmp_path), "--no-start"]
    words += ["--llama-server", sys.executable]
    assert program.main(words) == 1
    assert "give the same command again" in capsys.readouterr().err
    assert program.main(words) == 0
    assert len(Pages.asked) == 1
    assert "-Q host.gpu1" in capsys.readouterr().out
    kept = environment_file.read(tmp_path / "environment")
    assert kept["SLOTSERVE_LLAMA_SERVER"] == sys.executable
    assert kept["SLOTSERVE_DATA"] == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["environment"]


@pytest.fixture
def _looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Database and Valkey answer from here."""
    done: Any = type("Done", (), {"returncode": 0})
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


# what is wrong with this machine -> the flags, and what is said
UNFIT: list[tuple[list[str], str]] = [
    (["--data", "/dev/null/slotserve"], "Not a directory"),
    (["--data", "/proc/slotserve"], "No such file"),
    (["--data", "/tmp/it's"], "SLOTSERVE_DATA holds a character"),
    (["--llama-server", "/no/llama-server"], "is no program here"),
    (["--run-as", "nobody-of-this-name"], "nobody-of-this-name"),
    (["--service"], "no systemd here|holds a blank|cannot be written"),
]


@pytest.mark.parametrize(("flags", "words"), UNFIT)
def test_no_token_is_spent_while_this_machine_is_not_fit(
    pages: str, tmp_path: Path, capsys: Any, flags: list[str], words: str
) -> None:
    if flags == ["--service"] and Path("/run/systemd/system").is_dir():
        pytest.skip("a service could be installed here")
    data = [] if "--data" in flags else ["--data", str(tmp_path)]
    assert program.main([pages, "sj_token", *data, *flags]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert Pages.asked == []


@pytest.mark.usefixtures("_looked_at")
def test_a_join_that_failed_is_repeated_by_the_same_machine(
    pages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    words = [pages, "sj_token", "--data", str(tmp_path), "--no-start"]
    Pages.answer = (200, b"the connection broke her")
    assert program.main(words) == 1
    with monkeypatch.context() as full:
        full.setattr(environment_file, "write", _no_room)
        Pages.answer = (200, TOLD)
        assert program.main(words) == 1
    assert "No space left" in capsys.readouterr().err
    assert program.main(words) == 0
    told = [said["machine"] for _, said in Pages.asked]
    assert len(told) == 3
    assert len(set(told)) == 1
    assert len(told[0]) > 40
    assert not (tmp_path / "joining").exists()


def _no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_another_installation_s_settings_do_not_mix_in() -> None:
    present = {"PATH": "/bin", "SLOTSERVE_DATA": "/other", "DATABASE_URL": "sqlite://"}
    assert program._own(present) == {"PATH": "/bin"}


def test_the_service_keeps_model_servers_over_a_restart() -> None:
    text = unit.text_of(Path("/var/lib/slotserve/environment"), "/usr/bin/python3", ("-m", "x"))
    assert "KillMode=process" in text
    assert "ExecStart=/usr/bin/python3 -m x\n" in text
    with pytest.raises(JoinError, match="holds a blank"):
        unit.text_of(Path("/my files/environment"), "/usr/bin/python3", ())
