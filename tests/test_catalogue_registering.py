"""What administrators say of models: files, folders, looking again, forgetting."""

from pathlib import Path
from typing import Any

import pytest

from lanes.catalogue.registering import (
    add_folder,
    forget_model_file,
    register_model_file,
    remove_folder,
    rescan,
)
from lanes.catalogue.scanning import scan_host
from lanes.models import ModelFile, ModelFolder
from lanes.refusals import Refusal
from tests import builders
from tests.model_files import hugging_face

pytestmark = pytest.mark.django_db


def register(path: str, **fields: Any) -> ModelFile | Refusal:
    """Register a file as an administrator."""
    values: dict[str, Any] = {
        "host": builders.host(),
        "name": "Qwen",
        "actor": builders.administrator(),
    }
    return register_model_file(path=path, **values | fields)


def add(path: str | Path, **fields: Any) -> ModelFolder | Refusal:
    """Add a folder as an administrator."""
    values: dict[str, Any] = {"host": builders.host(), "actor": builders.administrator()}
    return add_folder(path=str(path), **values | fields)


def code(answer: object) -> str:
    """The refusal's."""
    assert isinstance(answer, Refusal), answer
    assert answer.words.endswith(".")
    return answer.code


def test_a_file_of_this_host_is_registered_with_its_size(tmp_path: Path) -> None:
    file = tmp_path / "q.gguf"
    file.write_bytes(b"x" * 123)
    made = register(f"{tmp_path}/../{tmp_path.name}/q.gguf")
    assert isinstance(made, ModelFile)
    assert (made.path, made.size_bytes) == (str(file), 123)


def test_a_split_file_has_the_size_of_all_its_parts(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"q-0000{number}-of-00002.gguf").write_bytes(b"x" * 100 * number)
    (tmp_path / "other.gguf").write_bytes(b"x" * 7)
    made = register(str(tmp_path / "q-00001-of-00002.gguf"))
    assert isinstance(made, ModelFile)
    assert made.size_bytes == 300


def test_a_hugging_face_folder_is_registered_as_one(tmp_path: Path) -> None:
    made = register(str(hugging_face(tmp_path / "q")))
    assert isinstance(made, ModelFile)
    assert made.kind == "huggingface"


def test_a_file_registered_elsewhere_gets_its_size_from_its_host(tmp_path: Path) -> None:
    (tmp_path / "q.gguf").write_bytes(b"x" * 123)
    here = builders.model_file(path=str(tmp_path / "q.gguf"), size_bytes=0)
    missing = builders.model_file(size_bytes=0)
    scan_host("test-host")
    sizes = ModelFile.objects.in_bulk()
    assert (sizes[here.pk].size_bytes, sizes[missing.pk].size_bytes) == (123, 0)


@pytest.mark.parametrize("path", ["/nowhere/q.gguf", "/tmp", "q.gguf", "", "/dev/null"])
def test_what_is_no_readable_file_is_refused(path: str) -> None:
    assert code(register(path)) == "no_such_file"


def test_a_file_of_another_host_is_taken_at_its_word() -> None:
    made = register("/models/far.gguf", host=builders.host("far"))
    assert isinstance(made, ModelFile)
    assert made.size_bytes == 0


def test_a_file_is_registered_once_on_a_host(tmp_path: Path) -> None:
    file = tmp_path / "q.gguf"
    file.touch()
    register(str(file))
    assert code(register(str(file))) == "already_registered"


def test_a_folder_is_added_and_looked_through_soon(
    tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as asked:
        made = add(f"{tmp_path}/x/../")
    assert isinstance(made, ModelFolder)
    assert (made.path, len(asked)) == (str(tmp_path), 1)


@pytest.mark.parametrize(
    "path", ["models", "", "/", "//", "/proc", "/proc/1", "/sys/x", "/nowhere", "/etc/passwd"]
)
def test_what_can_be_no_folder_of_models_is_refused(path: str) -> None:
    assert code(add(path)) == "no_such_folder"


def test_a_folder_of_another_host_is_taken_at_its_word() -> None:
    assert isinstance(add("/models", host=builders.host("far")), ModelFolder)


def test_no_folder_is_looked_through_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    add(tmp_path / "a")
    assert code(add(tmp_path / "a")) == "already_registered"
    assert code(add(tmp_path / "a" / "b")) == "already_registered"
    assert code(add(tmp_path)) == "already_registered"
    assert isinstance(add(tmp_path / "ab"), ModelFolder)


def test_a_host_has_only_so_many_folders() -> None:
    host = builders.host()
    ModelFolder.objects.bulk_create(ModelFolder(host=host, path=f"/m/{n}") for n in range(50))
    assert code(add("/usr")) == "too_many"


def test_a_removed_folder_takes_unused_models_with_it() -> None:
    folder = ModelFolder.objects.create(host=builders.host(), path="/m")
    used, _ = builders.model_file(folder=folder), builders.model_file(folder=folder)
    builders.preset(model_file=used)
    by_hand = builders.model_file()
    assert remove_folder(folder, actor=builders.administrator()) is None
    assert set(ModelFile.objects.all()) == {used, by_hand}


def test_looking_again_reads_every_header_anew() -> None:
    file = builders.model_file(fingerprint="f")
    far = builders.model_file(host=builders.host("far"), fingerprint="f")
    assert rescan(file.host, actor=builders.administrator()) is None
    rows = ModelFile.objects.in_bulk()
    assert (rows[file.pk].fingerprint, rows[far.pk].fingerprint) == ("", "f")


def test_a_model_is_forgotten_unless_presets_use_it() -> None:
    file, used = builders.model_file(), builders.model_file()
    builders.preset("small", model_file=used)
    refusal = forget_model_file(used, actor=builders.administrator())
    assert code(refusal) == "in_use"
    assert refusal is not None
    assert "small" in refusal.words
    assert forget_model_file(file, actor=builders.administrator()) is None
    assert ModelFile.objects.get() == used


def test_members_may_do_none_of_it(tmp_path: Path) -> None:
    member = builders.person("member")
    file = builders.model_file()
    folder = ModelFolder.objects.create(host=file.host, path="/m")
    assert code(register(str(tmp_path), actor=member)) == "not_administrator"
    assert code(add(tmp_path, actor=member)) == "not_administrator"
    assert code(remove_folder(folder, actor=member)) == "not_administrator"
    assert code(rescan(file.host, actor=member)) == "not_administrator"
    assert code(forget_model_file(file, actor=member)) == "not_administrator"
