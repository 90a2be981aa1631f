"""Models are hashed bit by bit, in the background."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from lanes.catalogue import hashing
from lanes.catalogue.hashing import hash_step
from lanes.catalogue.scanning import scan_host
from lanes.models import ModelFile, ModelFolder, Phase, Runtime
from tests import builders
from tests.model_files import KEYS, gguf, hugging_face

pytestmark = pytest.mark.django_db
MEGABYTE = 10**6
LARGE = gguf(data=5 * MEGABYTE)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, settings: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this host; steps that hold 2 MB."""
    monkeypatch.setattr(settings, "SLOTSERVE_HASH_MBPS", 2.0)
    monkeypatch.setattr(hashing, "_state", hashing._State())
    path = tmp_path / "models"
    path.mkdir()
    ModelFolder.objects.create(host=builders.host(), path=str(path))
    return path


def put(path: Path, content: bytes = LARGE) -> Path:
    """An old file, which is known."""
    path.write_bytes(content)
    os.utime(path, (1, 1))
    scan_host("test-host")
    return path


def hashed() -> list[dict[str, str]]:
    """All models' digests when there is nothing more to do."""
    for _ in range(50):
        if hash_step("test-host") is None:
            return [file.sha256 for file in ModelFile.objects.order_by("path")]
    raise AssertionError("it does not come to an end")


def test_a_file_is_hashed_a_step_at_a_time(place: Path) -> None:
    put(place / "q.gguf")
    delay = hash_step("test-host")
    assert delay is not None
    assert 0 < delay <= 1
    assert hash_step("test-host") is not None
    assert ModelFile.objects.get().sha256 == {}
    assert hashed() == [{"q.gguf": sha256(LARGE).hexdigest()}]
    assert hash_step("test-host") is None


def test_each_file_of_a_model_has_its_own(place: Path) -> None:
    parts = [gguf(KEYS | {"split.count": 2, "split.no": n}, data=MEGABYTE) for n in range(2)]
    for number, content in enumerate(parts, 1):
        put(place / f"q-0000{number}-of-00002.gguf", content)
    folder = hugging_face(place / "hf")
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    scan_host("test-host")
    folder_digests, split_digests = hashed()
    weights = (folder / "model.safetensors").read_bytes()
    assert folder_digests == {"model.safetensors": sha256(weights).hexdigest()}
    assert list(split_digests.values()) == [sha256(part).hexdigest() for part in parts]


def test_a_new_worker_keeps_the_parts_that_are_done(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        content = gguf(KEYS | {"split.count": 2}, data=MEGABYTE * number)
        put(place / f"q-0000{number}-of-00002.gguf", content)
    while not ModelFile.objects.get().digests:
        assert hash_step("test-host") is not None
    done = dict(ModelFile.objects.get().digests)
    monkeypatch.setattr(hashing, "_state", hashing._State())
    (all_of_it,) = hashed()
    assert set(done.items()) < set(all_of_it.items())
    assert len(all_of_it) == 2


def test_a_file_that_changes_is_hashed_anew(place: Path) -> None:
    put(place / "q.gguf")
    hash_step("test-host")
    changed = gguf(data=MEGABYTE)
    put(place / "q.gguf", changed)
    assert hashed() == [{"q.gguf": sha256(changed).hexdigest()}]
    again = put(place / "q.gguf", LARGE)
    assert ModelFile.objects.get().sha256 == {}
    assert hashed() == [{"q.gguf": sha256(again.read_bytes()).hexdigest()}]


def test_a_file_that_was_away_and_is_the_same_keeps_its_digest(place: Path) -> None:
    file = put(place / "q.gguf")
    before = hashed()
    file.rename(place / "away")
    scan_host("test-host")
    (place / "away").rename(file)
    scan_host("test-host")
    assert [ModelFile.objects.get().sha256] == before
    assert hash_step("test-host") is None


def test_nothing_is_read_while_a_model_loads(place: Path) -> None:
    put(place / "q.gguf")
    lane = builders.lane()
    runtime = Runtime.objects.create(
        lane=lane,
        revision=builders.preset().revisions.get(),
        generation=1,
        phase=Phase.STARTING,
        phase_since=builders.NOON,
        started_at=builders.NOON,
        address="127.0.0.1",
        port=1,
    )
    for _ in range(9):
        assert hash_step("test-host") == hashing.WAIT_FOR_LOAD
    assert hashing._state.under_way is None
    Runtime.objects.filter(pk=runtime.pk).update(phase=Phase.READY)
    hashed()
    assert ModelFile.objects.get(name="q").sha256 != {}


def test_models_with_trouble_or_gone_are_left_and_a_race_does_no_harm(place: Path) -> None:
    put(place / "broken.gguf", b"\0" * 99)
    file = put(place / "q.gguf")
    file.unlink()  # since the scan
    assert hashed() == [{}, {}]


def test_a_setting_turns_it_off(
    place: Path, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place / "q.gguf")
    monkeypatch.setattr(settings, "SLOTSERVE_HASH_MBPS", 0.0)
    assert hash_step("test-host") is None
    assert ModelFile.objects.get().sha256 == {}


def test_another_hosts_models_are_left_to_it(place: Path) -> None:
    put(place / "q.gguf")
    assert hash_step("far") is None


def test_two_steps_at_once_are_one(place: Path) -> None:
    put(place / "q.gguf")
    with hashing._state.lock:
        assert hash_step("test-host") is None
