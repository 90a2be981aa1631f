"""The data folder, the ports and the screen of bin/up."""

import errno
import io
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from slotserve.stack.banner import FirstStart, banner, secrets_made
from slotserve.stack.errors import StartError
from slotserve.stack.folder import DataFolder, host_key
from slotserve.stack.output import Output
from slotserve.stack.parts import ROOT, Options, Product
from slotserve.stack.ports import check_ports

SECRETS = ("secret-key", "table-keys", "host-key", "installation-id")


class GoneTerminal(io.StringIO):
    """What sys.stdout is once the terminal was closed."""

    def write(self, text: str) -> int:
        """Fail as the kernel does."""
        raise OSError(errno.EIO, "Input/output error")


def opened(path: Path) -> DataFolder:
    """The folder, opened; its lock is given back at once so that a test can open it again."""
    folder = DataFolder.open(path)
    folder.close()
    return folder


def test_secrets_are_made_once_for_their_owner_alone(tmp_path: Path) -> None:
    folder = opened(tmp_path / "data")
    first = {name: folder.text(name) for name in SECRETS}
    assert all(first.values())
    assert len(first["table-keys"]) >= 32
    for name in (*SECRETS, "slotserve.sqlite3"):
        assert stat.S_IMODE((folder.path / name).stat().st_mode) == 0o600
    again = opened(tmp_path / "data")
    assert {name: again.text(name) for name in SECRETS} == first


def test_only_one_bin_up_at_a_time(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "data")
    with pytest.raises(StartError, match=f"already runs on .* \\(process {os.getpid()}\\)"):
        DataFolder.open(tmp_path / "data")
    folder.close()
    opened(tmp_path / "data")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(StartError, match=r"cannot be used: .*data is in the way"):
        DataFolder.open(tmp_path / "data")


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="is in the way"):
        DataFolder.open(tmp_path / "file" / "data")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StartError, match="permission denied; choose another with --data"):
        DataFolder.open(tmp_path / "data")


def test_an_empty_secret_is_not_replaced_in_silence(tmp_path: Path) -> None:
    opened(tmp_path / "data")
    (tmp_path / "data" / "secret-key").write_text("")
    with pytest.raises(StartError, match="secret-key is empty: restore it, or remove it"):
        opened(tmp_path / "data")


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 2**20))
    with pytest.raises(StartError, match="has 5 MB free: at least 200 MB are needed"):
        DataFolder.open(tmp_path / "data")


def test_the_socket_has_a_short_path_however_long_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = opened(long / "data")
    product = Product(Options(folder.path, 1, 2, has_demo=False), folder, folder.runtime())
    assert len(bytes(product.socket)) <= 103
    assert stat.S_IMODE(product.runtime.stat().st_mode) == 0o700
    product.runtime.rmdir()


def test_somebody_elses_runtime_folder_is_not_used(tmp_path: Path) -> None:
    folder = opened(tmp_path / "data")
    runtime = folder.runtime()
    runtime.chmod(0o755)
    with pytest.raises(StartError, match="is not a folder of yours alone"):
        folder.runtime()
    runtime.rmdir()


@pytest.mark.parametrize(
    ("hostname", "key"),
    [("gpu1", "gpu1"), ("GPU-1.lab.example", "gpu-1-lab-example"), ("…", "host"), ("", "host")],
)
def test_a_hostname_becomes_a_key(hostname: str, key: str) -> None:
    assert host_key(hostname) == key


def test_a_port_in_use_names_port_holder_and_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(StartError) as refusal:
            check_ports({"--web-port": port})
    assert str(refusal.value).startswith(f"Port {port} is in use by ")
    assert f"(process {os.getpid()})" in str(refusal.value)
    assert "--web-port" in str(refusal.value)


def test_the_edge_gets_the_time_that_it_gives_its_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = opened(tmp_path / "data")
    product = Product(Options(folder.path, 1, 2, has_demo=False), folder, tmp_path)
    assert product.edge().grace == 5
    monkeypatch.setenv("SLOTSERVE_EDGE_STOP_SECONDS", "30")
    assert product.edge().grace > 30
    monkeypatch.setenv("SLOTSERVE_EDGE_STOP_SECONDS", "soon")
    with pytest.raises(StartError, match="SLOTSERVE_EDGE_STOP_SECONDS='soon' is not a number"):
        product.edge()


def test_two_flags_with_one_port_are_refused() -> None:
    with pytest.raises(StartError, match="--web-port and --gateway-port are the same port"):
        check_ports({"--web-port": 8000, "--gateway-port": 8000})


def test_a_terminal_that_is_gone_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", GoneTerminal())
    output = Output(tmp_path / "up.log")
    output.say("first")
    output.say("second")
    output.close()
    assert "second" in (tmp_path / "up.log").read_text()


def test_the_first_banner_has_all_that_a_newcomer_needs() -> None:
    options = Options(ROOT / "var", 8000, 8001, has_demo=True)
    report = FirstStart("admin", "pw", "ss_x", "smollm2", ("no GPU found",))
    text = banner(options, report)
    assert "http://127.0.0.1:8000/" in text
    assert "log in as admin, password pw" in text
    assert "curl http://127.0.0.1:8001/v1/chat/completions" in text
    assert '"model": "smollm2"' in text
    assert "no GPU found" in text


def test_later_banners_tell_how_to_make_a_token_on_this_folder() -> None:
    options = Options(Path("/some where"), 8000, 8001, has_demo=True)
    text = banner(options, FirstStart("admin"))
    assert "SLOTSERVE_DATA='/some where'" in text
    assert "manage.py create_token admin" in text
    assert "password" not in text
    assert secrets_made(FirstStart("admin")) == ""
