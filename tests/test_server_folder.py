"""The folder of a lane's server, made by a worker that may be root."""

import os
from pathlib import Path

import pytest

from lanes import folders
from lanes.engines.base import Launch

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
NOBODY = {"user": 65534, "group": 65534}


def test_all_of_it_is_its_users(tmp_path: Path) -> None:
    folder = tmp_path / "servers" / "lane-1"
    key, inner = folder / "api-key", folder / "output"
    launch = Launch(("x",), {}, files={str(key): "secret"}, folders=(str(inner),))
    folders.prepare(str(folder), launch, NOBODY)
    assert {each.stat().st_uid for each in (folder, key, inner)} == {65534}
    assert key.stat().st_mode & 0o777 == 0o600


def test_nothing_in_it_is_given_after_its_user_can_put_links_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "servers" / "lane-1"
    given: list[str] = []
    give = os.chown

    def note(path: str, *owner: int, follow_symlinks: bool = True) -> None:
        assert not follow_symlinks
        given.append(path)
        give(path, *owner, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "chown", note)
    files = {str(folder / "api-key"): "secret", str(folder / "output" / "x"): ""}
    launch = Launch(("x",), {}, files=files, folders=(str(folder / "output"),))
    folders.prepare(str(folder), launch, NOBODY)
    assert given[-2:] == [str(folder / "output"), str(folder)]
    assert set(given[:-2]) == set(files)
