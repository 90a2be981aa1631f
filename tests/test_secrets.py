"""Secrets in files: read, or refused with a sentence; passwords in addresses."""

from pathlib import Path

import pytest

from wire.addresses import read_database_url, read_redis_url, url_for_hosts
from wire.env import SettingError, read_secret
from wire.sealing import read_table_keys

NAME = "SLOTSERVE_SECRET_KEY"
FILE = f"{NAME}_FILE"
POSTGRES = "postgres://slotserve@db:5432/slotserve"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (NAME, "REDIS_URL", "DATABASE_URL", "SLOTSERVE_TABLE_KEYS"):
        monkeypatch.delenv(name, raising=False)


def test_a_secret_is_a_variable_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert read_secret(NAME, "default") == "default"
    monkeypatch.setenv(NAME, "from the variable")
    assert read_secret(NAME) == "from the variable"
    monkeypatch.delenv(NAME)
    (tmp_path / "s").write_text("  from the file\n")
    monkeypatch.setenv(FILE, str(tmp_path / "s"))
    assert read_secret(NAME, "default") == "from the file"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty: put the secret into it"),
        (b" \n", "is empty: put the secret into it"),
        (b"\xff\xfe\xff", "cannot be read: it is not text"),
    ],
)
def test_a_file_without_a_secret_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "s").write_bytes(content)
    monkeypatch.setenv(FILE, str(tmp_path / "s"))
    with pytest.raises(SettingError, match=words) as refused:
        read_secret(NAME, "default")
    assert FILE in str(refused.value)


def test_both_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NAME, "a")
    monkeypatch.setenv(FILE, str(tmp_path / "s"))
    with pytest.raises(SettingError, match=f"{NAME} and {FILE} are both set"):
        read_secret(NAME)


def test_table_keys_come_from_a_file_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{'a' * 40},{'b' * 40}\n")
    monkeypatch.setenv("SLOTSERVE_TABLE_KEYS_FILE", str(tmp_path / "keys"))
    assert read_table_keys() == ("a" * 40, "b" * 40)


def test_passwords_go_into_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_DATABASE_PASSWORD", "p@ss/w:rd %")
    monkeypatch.setenv("SLOTSERVE_REDIS_PASSWORD", "x y")
    wanted = "postgres://slotserve:p%40ss%2Fw%3Ard%20%25@db:5432/slotserve"
    assert read_database_url(POSTGRES) == wanted
    assert read_redis_url() == "redis://:x%20y@127.0.0.1:6379/0"
    monkeypatch.setenv("REDIS_URL", "rediss://edge@valkey:6379/1")
    assert read_redis_url("unix:///ignored") == "rediss://edge:x%20y@valkey:6379/1"


def test_a_password_that_goes_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_DATABASE_PASSWORD", "secret")
    with pytest.raises(SettingError, match="DATABASE_URL names no host"):
        read_database_url("sqlite:////tmp/x")
    with pytest.raises(SettingError, match="keep one of them") as refused:
        read_database_url("postgres://slotserve:other@db/slotserve")
    assert "other" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_another_kind_of_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "http://valkey")
    with pytest.raises(SettingError, match="give redis://, rediss:// or unix://"):
        read_redis_url()


OWN = "postgres://slotserve:x%20y%2F@postgres:5432/slotserve"
FOR_HOSTS = [
    ("", OWN),
    (
        "postgres://slotserve@10.0.0.1/slotserve",
        "postgres://slotserve:x%20y%2F@10.0.0.1/slotserve",
    ),
    ("postgres://10.0.0.1/slotserve", "postgres://slotserve:x%20y%2F@10.0.0.1/slotserve"),
    ("postgres://host:z@10.0.0.1/slotserve", "postgres://host:z@10.0.0.1/slotserve"),
    ("unix:///tmp/v.sock", "unix:///tmp/v.sock"),
]


@pytest.mark.parametrize(("url", "told"), FOR_HOSTS)
def test_hosts_are_told_the_same_password_unless_they_have_their_own(url: str, told: str) -> None:
    assert url_for_hosts("SLOTSERVE_HOSTS_DATABASE_URL", url, OWN) == told
    own = "sqlite:///file"
    assert url_for_hosts("SLOTSERVE_HOSTS_DATABASE_URL", url, own) == (url or own)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("postgres://slotserve_host@10.0.0.1/slotserve", OWN),
        ("redis://slotserve_host@10.0.0.1/0", "redis://:secret@valkey/0"),
        ("redis://slotserve_host@10.0.0.1/0", "redis://slotserve:secret@valkey/0"),
    ],
)
def test_hosts_are_never_told_our_password_as_another_user_s(url: str, own: str) -> None:
    with pytest.raises(SettingError, match="HOSTS_URL has no password of slotserve_host") as raised:
        url_for_hosts("HOSTS_URL", url, own)
    assert "secret" not in str(raised.value)


def test_an_odd_address_for_hosts_is_refused() -> None:
    with pytest.raises(SettingError, match="HOSTS_URL is no address"):
        url_for_hosts("HOSTS_URL", "postgres://h:port/x", OWN)
