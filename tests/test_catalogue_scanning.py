"""A host's worker looks through its folders: what is found, changed, gone, back, or in the way."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lanes.catalogue import scanning, walking
from lanes.catalogue.scanning import scan_host
from lanes.models import GONE, LaneEvent, ModelFile, ModelFolder
from tests import builders
from tests.conftest import Moment
from tests.model_files import KEYS, gguf, hugging_face

pytestmark = pytest.mark.django_db
WHOLE = gguf()


@pytest.fixture
def folder(tmp_path: Path, moment: Moment) -> ModelFolder:
    """An empty folder of this host."""
    return ModelFolder.objects.create(host=builders.host(), path=str(tmp_path / "models"))


@pytest.fixture(autouse=True)
def place(folder: ModelFolder) -> Path:
    """Where it is."""
    path = Path(folder.path)
    path.mkdir()
    return path


def put(path: Path, content: bytes = WHOLE, *, age: float = 3600) -> Path:
    """A file that was written so many seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def scanned() -> list[ModelFile]:
    """The models known after a scan."""
    scan_host("test-host")
    return list(ModelFile.objects.order_by("path"))


def trouble(folder: ModelFolder) -> str:
    """What a scan says of the folder."""
    scan_host("test-host")
    folder.refresh_from_db()
    return folder.trouble


def test_models_are_found_with_their_facts(place: Path, folder: ModelFolder) -> None:
    put(place / "deep" / "q-Q4_K_M.gguf")
    projector = put(place / "deep" / "mmproj-q-f16.gguf")
    (found,) = scanned()
    assert (found.name, found.kind, found.size_bytes) == ("q-Q4_K_M", "gguf", len(WHOLE))
    assert (found.architecture, found.parameters, found.quantisation) == ("llama", 192, "Q4_K_M")
    assert (found.context_length, found.vocabulary_size) == (4096, 3)
    assert (found.has_chat_template, found.projector_path) == (True, str(projector))
    assert (found.folder, found.trouble, found.warning) == (folder, "", "")
    folder.refresh_from_db()
    assert (folder.found, folder.scanned_at, folder.trouble) == (1, builders.NOON, "")


def test_a_hugging_face_folder_is_one_model(place: Path) -> None:
    for file in hugging_face(place / "Qwen").iterdir():
        os.utime(file, (1, 1))
    (found,) = scanned()
    assert (found.kind, found.path, found.trouble) == ("huggingface", str(place / "Qwen"), "")


def test_a_split_model_counts_its_parts_together(place: Path) -> None:
    for number in (1, 2):
        put(place / f"q-0000{number}-of-00002.gguf", gguf(KEYS | {"split.count": 2}))
    (found,) = scanned()
    assert (found.parts, found.parameters) == (2, 384)


def test_a_split_model_says_how_many_parts_are_there(place: Path) -> None:
    put(place / "q-00002-of-00003.gguf")
    (found,) = scanned()
    assert found.warning == "1 of its 3 parts are there: copy the others beside them."
    put(place / "q-00001-of-00003.gguf")
    put(place / "q-00003-of-00003.gguf")
    assert scanned()[0].warning == ""


def test_a_second_scan_opens_nothing_and_writes_only_when_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place / "q.gguf")
    scanned()
    monkeypatch.setattr(scanning, "inspect", None)  # called, it would fail
    with CaptureQueriesContext(connection) as queries:
        scan_host("test-host")
    written = [q["sql"] for q in queries if q["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    assert len(written) == 1
    assert "lanes_modelfolder" in written[0]


def test_a_file_that_is_being_copied_is_told_and_taken_when_it_is_whole(place: Path) -> None:
    put(place / "q.gguf", WHOLE[: len(WHOLE) // 2])
    assert "still being copied" in scanned()[0].warning
    put(place / "q.gguf")
    assert (scanned()[0].warning, scanned()[0].architecture) == ("", "llama")


def test_a_file_that_was_written_to_a_moment_ago_is_looked_at_again(place: Path) -> None:
    file = put(place / "q.gguf", age=0)
    found = scanned()[0]
    assert "may still be being copied" in found.warning
    assert found.architecture == "llama"
    then = file.stat().st_mtime - 60
    os.utime(file, (then, then))
    assert scanned()[0].warning == ""


def test_a_file_that_is_replaced_is_read_again(place: Path) -> None:
    put(place / "q.gguf")
    scanned()
    put(place / "q.gguf", gguf(KEYS | {"general.architecture": "qwen3"}), age=1800)
    assert scanned()[0].architecture == "qwen3"


def test_a_file_that_goes_marks_its_model_and_comes_back(place: Path, moment: Moment) -> None:
    file = put(place / "q.gguf")
    (found,) = scanned()
    preset = builders.preset(model_file=found)
    lane = builders.lane(default_preset=preset)
    file.rename(place / "elsewhere")
    (found,) = scanned()
    assert (found.missing_since, found.warning) == (builders.NOON, GONE)
    scanned()
    (place / "elsewhere").rename(file)
    (found,) = scanned()
    assert (found.missing_since, found.warning) == (None, "")
    sentences = (
        LaneEvent.objects.filter(lane=lane).order_by("pk").values_list("sentence", flat=True)
    )
    assert list(sentences) == [
        "The file of the model q is gone.",
        "The file of the model q is back.",
    ]


def test_a_folder_that_is_gone_is_told_and_so_are_its_models(
    place: Path, folder: ModelFolder
) -> None:
    put(place / "q.gguf")
    scanned()
    place.rename(place.with_name("unmounted"))
    assert trouble(folder) == "It is not there: is its disk mounted?"
    assert ModelFile.objects.get().warning == GONE
    place.with_name("unmounted").rename(place)
    assert trouble(folder) == ""
    assert ModelFile.objects.get().warning == ""


def test_models_long_gone_that_nobody_uses_are_forgotten(place: Path, moment: Moment) -> None:
    used, unused = put(place / "used.gguf"), put(place / "unused.gguf")
    by_hand = builders.model_file(path=str(place / "by-hand.gguf"))
    scanned()
    builders.preset(model_file=ModelFile.objects.get(name="used"))
    used.unlink()
    unused.unlink()
    assert len(scanned()) == 3
    moment.set(8 * 24 * 60)
    assert {each.name for each in scanned()} == {"used", by_hand.name}


def test_a_file_registered_by_hand_is_looked_at_wherever_it_is(tmp_path: Path) -> None:
    file = put(tmp_path / "blobs" / "sha256-0123")
    builders.model_file(path=str(file), size_bytes=0)
    (found,) = scanned()
    assert (found.size_bytes, found.architecture) == (len(WHOLE), "llama")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "It is empty so far"),
        (b"\0" * 99, "begins with zeros"),
        (b"<html>", "is not a GGUF file"),
        (gguf(KEYS | {"general.architecture": "clip"}), "It is a projector"),
        (gguf({}), "names no architecture"),
        (gguf(KEYS | {"split.count": 3}), "It is one of 3 parts"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(place: Path, content: bytes, words: str) -> None:
    put(place / "q.gguf", content)
    assert words in scanned()[0].warning


@pytest.mark.parametrize(
    "broken", [{"shape": [1] * 99}, {"data_offsets": [0, 10**400]}, {"shape": [2**64]}]
)
def test_a_model_of_monstrous_numbers_hides_no_other(place: Path, broken: dict[str, Any]) -> None:
    tensor = {"dtype": "F16", "shape": [1], "data_offsets": [0, 2], **broken}
    header = json.dumps({"a": tensor}).encode()
    for file in hugging_face(place / "Bad").iterdir():
        if file.suffix == ".safetensors":
            file.write_bytes(len(header).to_bytes(8, "little") + header)
        os.utime(file, (1, 1))
    put(place / "good.gguf")
    bad, good = sorted(scanned(), key=lambda each: each.kind, reverse=True)
    assert "not what safetensors prescribes" in bad.trouble
    assert good.trouble == ""


def test_names_that_no_database_takes_are_told_without_them(place: Path) -> None:
    folder = hugging_face(place / "Odd")
    shards = {"weight_map": {"a": "x\ud800.safetensors", "b": "y\u0000.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(shards))
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    put(place / "good.gguf")
    assert len(scanned()) == 2


def test_pipes_sockets_and_devices_are_left_alone(place: Path, folder: ModelFolder) -> None:
    os.mkfifo(place / "pipe.gguf")
    (place / "null.gguf").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "s.gguf"))
        assert trouble(folder) == "Names of no plain file left out: 3."
    assert not ModelFile.objects.exists()


def test_links_are_followed_and_circles_and_dead_ends_told(
    place: Path, tmp_path: Path, folder: ModelFolder
) -> None:
    put(tmp_path / "store" / "real.gguf")
    (place / "to-folder").symlink_to(tmp_path / "store")
    (place / "circle").symlink_to(place)
    (place / "itself.gguf").symlink_to(place / "itself.gguf")
    (place / "dead.gguf").symlink_to(place / "nothing")
    told = trouble(folder)
    assert "Links to files that are not there left out: 1." in told
    assert "Files left out: 1 (its links lead in a circle)." in told
    assert [each.path for each in scanned()] == [str(place / "to-folder" / "real.gguf")]


def test_names_that_are_no_text_are_left_out(place: Path, folder: ModelFolder) -> None:
    (Path(os.fsdecode(os.fsencode(place) + b"/q\xff.gguf"))).write_bytes(WHOLE)
    assert "their names are not UTF-8" in trouble(folder)
    assert not ModelFile.objects.exists()


@pytest.fixture
def no_root() -> Any:
    """Somebody whose permissions count."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    yield
    os.seteuid(was)


def test_what_may_not_be_read_is_told_and_mended(
    place: Path, folder: ModelFolder, request: pytest.FixtureRequest
) -> None:
    file = put(place / "q.gguf")
    closed = place / "closed"
    closed.mkdir()
    for path in (file, closed):
        path.chmod(0)
    for parent in place.parents:
        if os.geteuid() == parent.stat().st_uid and parent.name.startswith(
            ("pytest", "popen", "test")
        ):
            parent.chmod(0o755)
    request.getfixturevalue("no_root")
    assert trouble(folder) == "Folders left out: 1 (the worker's user may not read it)."
    assert "the worker's user may not read it" in ModelFile.objects.get().warning
    os.seteuid(os.getuid())
    file.chmod(0o644)
    assert scanned()[0].warning == ""


def test_a_folder_of_more_than_is_reasonable_is_left_off(
    place: Path, folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place / "q.gguf")
    scanned()
    monkeypatch.setattr(walking, "MOST_ENTRIES", 5)
    for number in range(9):
        (place / f"{number}.txt").touch()
    assert trouble(folder).startswith(
        "Add the folders in it that hold models instead: only its first 5"
    )
    assert ModelFile.objects.get().warning == ""  # what is known is looked for by itself


def test_more_models_than_are_taken_are_told(
    place: Path, folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_MODELS", 2)
    for number in range(3):
        put(place / f"{number}.gguf")
    assert "the first 2 are taken" in trouble(folder)
    assert ModelFile.objects.count() == 2


def test_what_there_was_no_time_for_is_left_to_the_next_scan(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        put(place / f"{number}.gguf")
    monkeypatch.setattr(scanning, "READING_SECONDS", 0.0)
    assert scan_host("test-host") is True
    assert ModelFile.objects.count() == 1
    assert scan_host("test-host") is True
    assert scan_host("test-host") is False
    assert ModelFile.objects.count() == 3


def test_another_hosts_folders_are_left_to_it(tmp_path: Path) -> None:
    far = builders.host("far")
    put(tmp_path / "far" / "q.gguf")
    ModelFolder.objects.create(host=far, path=str(tmp_path / "far"))
    assert scan_host("far") is False
    assert scan_host("nobody") is False
    assert not ModelFile.objects.exists()


def test_two_scans_at_once_are_one(place: Path) -> None:
    put(place / "q.gguf")
    with scanning._lock:
        assert scan_host("test-host") is False
    assert not ModelFile.objects.exists()


def test_hard_links_are_told_beside_the_folder(place: Path, folder: ModelFolder) -> None:
    first = put(place / "a.gguf")
    for name in ("b", "c"):
        (place / f"{name}.gguf").hardlink_to(first)
    assert trouble(folder).startswith(f"2 are the same file as {first}")
    assert ModelFile.objects.get().path == str(first)
