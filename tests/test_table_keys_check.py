"""The system check of the keys that sign the route table."""

from pathlib import Path

import pytest

from gateway.checks import check_table_keys


def ids() -> list[str | None]:
    return [found.id for found in check_table_keys(None)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("k" * 32, []),
        ("k" * 32 + "," + "o" * 40, []),
        ("k" * 31, ["slotserve.E021"]),
        ("k" * 32 + ",short", ["slotserve.E021"]),
    ],
)
def test_every_key_must_be_long_enough(
    monkeypatch: pytest.MonkeyPatch, keys: str, expected: list[str]
) -> None:
    monkeypatch.setenv("SLOTSERVE_TABLE_KEYS", keys)
    assert ids() == expected


def test_without_keys_it_warns_and_with_the_file_of_bin_up_it_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SLOTSERVE_TABLE_KEYS")
    monkeypatch.setenv("SLOTSERVE_DATA", str(tmp_path))
    assert ids() == ["slotserve.W020"]
    (tmp_path / "table-keys").write_text("k" * 64)
    assert ids() == []


def test_an_empty_file_of_keys_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SLOTSERVE_TABLE_KEYS")
    monkeypatch.setenv("SLOTSERVE_DATA", str(tmp_path))
    (tmp_path / "table-keys").touch()
    assert ids() == ["slotserve.E021"]
