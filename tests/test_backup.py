"""Backup and restore: whole, private, compared; into what is empty, of either database."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from bookings.guards import guards_present
from bookings.models import Booking
from notices import push
from slotserve.databases import archive
from slotserve.databases.errors import CopyError
from slotserve.databases.sqlite_files import opened
from slotserve.databases.tables import MADE_BY_MIGRATE, all_models, has_rows, read_rows, summary
from slotserve.stack.folder import DataFolder
from tests import builders
from tests.filled_database import fill

pytest_plugins = ["tests.opened_databases"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("more_databases"),
]
KEYS = ("secret-key", "table-keys", "host-key", "vapid-key.pem")


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    """A data folder with keys, and what is there to be backed up."""
    settings.SLOTSERVE_DATA = tmp_path / "data"
    DataFolder.open(settings.SLOTSERVE_DATA).close()
    fill()
    return Path(settings.SLOTSERVE_DATA)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test puts a backup for all."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def file(shelf: Path, settings: Any, tmp_path: Path) -> Path:
    """A backup, and `data` beside it, the folder that it is of."""
    if not (shelf / "backup.tar.gz").exists():
        settings.SLOTSERVE_DATA = shelf / "data"
        DataFolder.open(settings.SLOTSERVE_DATA).close()
        (shelf / "data" / push.KEY_FILE).write_text("the key of pushes")  # made at its first use
        fill()
        ran("backup", shelf / "backup.tar.gz")
    shutil.copytree(shelf, tmp_path, dirs_exist_ok=True)
    settings.SLOTSERVE_DATA = tmp_path / "data"
    return tmp_path / "backup.tar.gz"


@pytest.fixture
def new_folder(file: Path, settings: Any, tmp_path: Path) -> Path:
    """An empty database, and a data folder that is not there yet."""
    empty()
    settings.SLOTSERVE_DATA = tmp_path / "new"
    return Path(settings.SLOTSERVE_DATA)


def ran(command: str, path: Path) -> str:
    out = StringIO()
    call_command(command, str(path), stdout=out, stderr=out)
    return out.getvalue()


def refusal(command: str, path: Path) -> str:
    with pytest.raises(CommandError) as refused:
        ran(command, path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def empty() -> None:
    call_command("flush", interactive=False, verbosity=0)


def is_empty() -> bool:
    return not any(has_rows(m, "default") for m in all_models() if m not in MADE_BY_MIGRATE)


def contents() -> dict[str, object]:
    return {m._meta.db_table: summary(read_rows(m, "default")) for m in all_models()}


def rewritten(file: Path, **members: bytes) -> Path:
    """The backup with other members; an empty one is left out."""
    with tarfile.open(file) as tar:
        kept = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    other = file.with_name("other.tar.gz")
    with tarfile.open(other, "w:gz") as tar:
        for name, payload in (kept | {n.replace("_", "."): p for n, p in members.items()}).items():
            member = tarfile.TarInfo(name)
            member.size = len(payload)
            if payload:
                tar.addfile(member, BytesIO(payload))
    return other


def test_rows_are_those_of_the_moment_of_the_backup(folder: Path, settings: Any) -> None:
    before, path = contents(), folder.parent / "b.tar.gz"
    ran("backup", path)
    builders.person("a later one")
    empty()
    ran("restore", path)
    assert contents() == before
    assert guards_present()


def test_a_restore_is_an_installation_of_its_own(new_folder: Path, file: Path) -> None:
    """One beside the running original must not take that one's processes for its leftovers."""
    name = (file.with_name("data") / "installation-id").read_bytes()
    for path in (file, rewritten(file, **{"installation-id": name})):  # as releases before wrote it
        empty()
        shutil.rmtree(new_folder, ignore_errors=True)
        ran("restore", path)
        DataFolder.open(new_folder).close()
        assert (new_folder / "installation-id").read_bytes() != name


def test_numbers_go_on_where_they_were(new_folder: Path, file: Path) -> None:
    ran("restore", file)
    booking = builders.booking(start=builders.at(900))
    assert booking.pk == Booking.objects.exclude(pk=booking.pk).latest("pk").pk + 2


def test_the_keys_come_along_and_are_nobody_else_s_to_read(new_folder: Path, file: Path) -> None:
    folder = file.parent / "data"
    ran("restore", file)
    for name in KEYS:
        assert (new_folder / name).read_text() == (folder / name).read_text()
        assert (new_folder / name).stat().st_mode & 0o777 == 0o600
    assert file.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in file.parent.iterdir()} == {"data", "new", file.name}


def test_keys_that_are_settings_are_not_in_it(settings: Any, tmp_path: Path) -> None:
    settings.SLOTSERVE_DATA = tmp_path
    said = ran("backup", tmp_path / "b.tar.gz")
    assert "Not in it, for the data folder has none: secret-key, table-keys." in said


def test_an_earlier_backup_is_never_overwritten(file: Path) -> None:
    before = file.read_bytes()
    assert refusal("backup", file) == f"{file} exists: give another name."
    assert file.read_bytes() == before


@pytest.fixture(params=[errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def no_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk as FAT, exFAT and shares are: a file has one name."""

    def refused(source: Path, target: Path) -> None:
        raise OSError(request.param, os.strerror(request.param), str(source), None, str(target))

    monkeypatch.setattr(os, "link", refused)


@pytest.mark.usefixtures("no_links")
def test_a_disk_without_links_takes_a_backup_and_keeps_what_it_has(folder: Path) -> None:
    path = folder.parent / "b.tar.gz"
    ran("backup", path)
    before = path.read_bytes()
    other = path.with_name("other")
    other.touch()
    with pytest.raises(OSError):  # noqa: PT011 - as the disk says it
        archive.publish(other, path)
    assert path.read_bytes() == before
    assert {each.name for each in folder.parent.iterdir()} == {"data", "b.tar.gz", "other"}
    empty()
    ran("restore", path)


def test_a_disk_without_permissions_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.parent / "b.tar.gz"
    monkeypatch.setattr(archive, "publish", lambda new, path: new.rename(path).chmod(0o755))
    assert f"{path} may be read by others" in ran("backup", path)


@pytest.mark.parametrize("step", ["write", "publish", "sha256"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_what_ends_a_backup_in_the_middle_leaves_no_file(
    folder: Path, step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise error

    monkeypatch.setattr(archive, step, ends)
    said = refusal("backup", folder.parent / "b.tar.gz")
    assert said.startswith(("No backup was made: [Errno 28] No space left", "Interrupted"))
    assert {each.name for each in folder.parent.iterdir()} == {"data"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(argv, check=False, capture_output=True).returncode:
        pytest.skip("only root mounts a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_and_nothing_stays_on_it(folder: Path, small_disk: Path) -> None:
    said = refusal("backup", small_disk / "b.tar.gz")
    assert said.startswith(("There is no room for ", "No backup was made: database or disk"))
    assert list(small_disk.iterdir()) == []


def test_a_folder_that_is_not_there_is_said(folder: Path) -> None:
    assert "No such file or directory" in refusal("backup", folder / "no" / "b.tar.gz")


def test_a_database_that_is_not_empty_is_refused(new_folder: Path, file: Path) -> None:
    builders.person("somebody")
    assert "not empty (auth_user)" in refusal("restore", file)
    assert list(User.objects.values_list("username", flat=True)) == ["somebody"]
    assert not any((new_folder / name).exists() for name in KEYS)


def test_a_folder_of_another_installation_is_refused(new_folder: Path, file: Path) -> None:
    DataFolder.open(new_folder).close()
    assert "secret-key is of another installation" in refusal("restore", file)
    assert is_empty()


def test_a_folder_in_use_is_refused(file: Path) -> None:
    running = DataFolder.open(file.parent / "data")
    try:
        assert "stop bin/up first" in refusal("restore", file)
    finally:
        running.close()


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_backup_that_was_cut_short_is_refused(new_folder: Path, file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])
    assert "is no backup of SlotServe, or was cut short" in refusal("restore", file)
    assert is_empty()


def test_an_altered_one_is_refused(new_folder: Path, file: Path) -> None:
    other = rewritten(file, database_sqlite3=b"SQLite format 3\0" + b"x" * 4096)
    assert "is damaged" in refusal("restore", other)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"", "'manifest.json' not found"),
        (b"[]", "its format is []"),
        (b"{}", "its format is None, this release reads 1"),
        (json.dumps({"format": 2}).encode(), "its format is 2, this release reads 1"),
        (json.dumps({"format": 1, "tables": 3}).encode(), "cut short"),
        (json.dumps({"format": 1, "tables": {}, "x": 3}).encode(), "cut short"),
    ],
)
def test_another_manifest_is_refused(
    new_folder: Path, file: Path, manifest: bytes, words: str
) -> None:
    assert words in refusal("restore", rewritten(file, manifest_json=manifest))
    assert is_empty()


def test_a_flipped_bit_anywhere_is_found(new_folder: Path, file: Path) -> None:
    whole = file.read_bytes()
    for place in [*range(10, len(whole), len(whole) // 12), len(whole) - 7, len(whole) - 1]:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(CopyError):
            archive.read(file, file.with_name("database"))
        file.with_name("database").unlink(missing_ok=True)


def test_a_file_that_may_not_be_read_is_no_broken_backup(
    new_folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(tarfile, "open", refused)
    assert refusal("restore", file) == f"{file} cannot be read: Permission denied."


def test_a_full_disk_is_no_broken_backup(
    new_folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive, "_extract", full)
    said = refusal("restore", file)
    assert said == "Nothing was restored: [Errno 28] No space left on device."
    assert is_empty()


def test_what_is_no_file_is_refused(new_folder: Path, tmp_path: Path) -> None:
    missing = tmp_path / "nothing.tar.gz"
    assert refusal("restore", missing) == f"{missing} cannot be read: No such file or directory."
    missing.write_text("not gzip")
    words = f"{missing} is no backup of SlotServe, or was cut short."
    assert refusal("restore", missing) == words
    assert "it is not a plain file" in refusal("restore", tmp_path)


@contextmanager
def writing(statement: str) -> Iterator[None]:
    """Somebody else in the middle of a transaction that will come to nothing."""
    if connection.vendor == "sqlite":
        other: Any = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    else:
        other = psycopg.connect(**connection.get_connection_params())
    other.execute(statement)
    yield
    other.rollback()
    other.close()


def test_a_backup_is_made_while_others_write(folder: Path) -> None:
    before, path = contents(), folder.parent / "b.tar.gz"
    with writing("UPDATE gateway_usagerecord SET status = 500"):
        ran("backup", path)
    empty()
    ran("restore", path)
    assert contents() == before


def test_a_backup_of_an_earlier_release_is_brought_up_to_date(
    new_folder: Path, file: Path, tmp_path: Path
) -> None:
    database, other = tmp_path / "old.sqlite3", tmp_path / "old.tar.gz"
    with opened(database, "old") as old:
        call_command("migrate", "gateway", "0003", database=old, verbosity=0)
        call_command("migrate", "lanes", "0005", database=old, verbosity=0)
    add_user = "INSERT INTO auth_user VALUES (7,'p',NULL,0,'owner','','',0,1,'2030-01-01','')"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(add_user)
    manifest = archive.Manifest("2030-01-01", "sqlite", archive.sha256(database), {})
    archive.write(other, database, manifest, {})
    ran("restore", other)
    assert User.objects.get().pk == 7
    assert guards_present()
