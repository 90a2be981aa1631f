"""Models of another form: registered by name on either kind of host, looked at, gone, back."""

from pathlib import Path

import pytest
from django.test import Client
from rest_framework.test import APIClient

from lanes.catalogue.hashing import hash_step
from lanes.catalogue.looking import Looker
from lanes.catalogue.registering import register_model_file
from lanes.catalogue.scanning import scan_host
from lanes.engines.forms import is_other_file
from lanes.models import GONE, ModelFile, ModelFolder, Preset
from lanes.refusals import Refusal
from tests import builders
from tests.model_files import gguf, hugging_face
from tests.test_api_bookings import signed_in as signed_in_to_rest
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db
MODELS, PAGE = "/api/v1/models/", "/administration/models/"


@pytest.fixture
def rest() -> APIClient:
    return signed_in_to_rest(builders.administrator())


@pytest.fixture
def page() -> Client:
    return signed_in("administrator")


def comfyui(folder: Path) -> Path:
    """A base directory of ComfyUI's."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "sd.safetensors").write_bytes(b"weights")
    (folder / "custom_nodes").mkdir()
    return folder


def known(path: Path) -> ModelFile:
    """What is known of it after its host's look."""
    scan_host("test-host")
    return ModelFile.objects.get(path=str(path))


@pytest.mark.parametrize(
    ("path", "is_other"),
    [
        ("/m/flow.json", True),
        ("/m/SD.SafeTensors", True),
        ("/m/a.ckpt", True),
        ("/m/data.parquet", True),
        ("/m/a.gguf", False),
        ("/m/sha256-9f3a", False),  # a GGUF in some stores
        ("/m/qwen2.5-7b", False),
        ("/m/.json", False),
        ("/m/json", False),
    ],
)
def test_a_suffix_says_that_a_file_is_of_another_form(path: str, *, is_other: bool) -> None:
    assert is_other_file(path) is is_other


def test_a_workflow_is_no_broken_gguf(tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text("{}")
    builders.model_file(path=str(file), trouble="It is not a GGUF file.", fingerprint="old")
    told = known(file)
    assert (told.kind, told.size_bytes, told.parts, told.warning) == ("other", 2, 1, "")
    assert told.fingerprint


def test_what_was_taken_for_a_gguf_is_told_as_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text("{}")
    same = Looker().look(str(file)).fingerprint
    builders.model_file(path=str(file), trouble="It is not a GGUF file.", fingerprint=same)
    told = known(file)
    assert (told.kind, told.warning) == ("other", "")


def test_a_folder_of_another_form_has_no_size_and_is_not_hashed(
    tmp_path: Path, page: Client
) -> None:
    folder = comfyui(tmp_path / "comfyui")
    form = {"host": builders.host().key, "path": str(folder), "name": "Pictures"}
    page.post(f"{PAGE}new/", form)
    told = known(folder)
    assert (told.kind, told.size_bytes, told.parts, told.warning) == ("other", 0, 0, "")
    assert hash_step("test-host") is None
    text = " ".join(page.get(PAGE).content.decode().split())
    assert "Other · no preset" in text
    assert "size unknown" not in text
    assert "Not hashed yet" not in text
    assert "trouble" not in text


def test_it_goes_and_comes_back_as_others_do(tmp_path: Path) -> None:
    folder = comfyui(tmp_path / "comfyui")
    register_model_file(host=builders.host(), path=str(folder), name="Pictures")
    away = folder.rename(tmp_path / "away")
    assert known(folder).warning == GONE
    away.rename(folder)
    assert known(folder).warning == ""


def test_nothing_of_it_changes_while_it_is_filled(tmp_path: Path) -> None:
    folder = comfyui(tmp_path / "comfyui")
    register_model_file(host=builders.host(), path=str(folder), name="Pictures")
    before = known(folder).fingerprint
    (folder / "output").mkdir()
    assert known(folder).fingerprint == before


def test_a_folder_becomes_hugging_face_s_when_it_is_whole_and_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "qwen"
    folder.mkdir()
    register_model_file(host=builders.host(), path=str(folder), name="Qwen")
    assert known(folder).kind == "other"
    hugging_face(folder)
    assert known(folder).kind == "huggingface"
    (folder / "config.json").unlink()
    broken = known(folder)
    assert (broken.kind, "copy them back" in broken.warning) == ("huggingface", True)


def test_a_scanned_folder_shows_none(tmp_path: Path) -> None:
    comfyui(tmp_path / "comfyui")
    (tmp_path / "flow.json").write_text("{}")
    (tmp_path / "q.gguf").write_bytes(gguf())
    ModelFolder.objects.create(host=builders.host(), path=str(tmp_path))
    scan_host("test-host")
    assert [file.name for file in ModelFile.objects.all()] == ["q"]


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/self", "/sys", "/dev/shm"])
def test_the_system_s_folders_are_refused(path: str) -> None:
    made = register_model_file(host=builders.host(), path=path, name="Everything")
    assert isinstance(made, Refusal)


def test_so_are_those_that_hold_the_keys(tmp_path: Path, settings: object) -> None:
    settings.SLOTSERVE_DATA = tmp_path / "var"  # type: ignore[attr-defined]
    (tmp_path / "var" / "models").mkdir(parents=True)
    for path in (tmp_path, tmp_path / "var"):
        made = register_model_file(host=builders.host(), path=str(path), name="Keys")
        assert isinstance(made, Refusal)
    inside = str(tmp_path / "var" / "models")
    assert isinstance(register_model_file(host=builders.host(), path=inside, name="M"), ModelFile)


@pytest.mark.parametrize(("path", "kind"), [("/m/flow.json", "other"), ("/m/comfyui", "gguf")])
def test_another_host_s_is_told_by_its_suffix_until_that_host_looks(
    rest: APIClient, path: str, kind: str
) -> None:
    body = {"host": builders.host("far").key, "path": path, "name": "Pictures"}
    made = rest.post(MODELS, body, format="json")
    assert (made.status_code, made.json()["kind"], made.json()["warning"]) == (201, kind, "")


def test_another_host_s_worker_says_what_it_is(
    rest: APIClient, tmp_path: Path, settings: object
) -> None:
    folder = comfyui(tmp_path / "comfyui")
    body = {"host": builders.host("far").key, "path": str(folder), "name": "Pictures"}
    pk = rest.post(MODELS, body, format="json").json()["id"]
    settings.SLOTSERVE_HOST_KEY = "far"  # type: ignore[attr-defined]
    scan_host("far")
    told = rest.get(f"{MODELS}{pk}/").json()
    assert (told["kind"], told["parts"], told["warning"]) == ("other", 0, "")


def test_its_preset_is_made_where_the_engine_is_chosen(rest: APIClient, page: Client) -> None:
    builders.model_file(path="/m/first.gguf")
    file = builders.model_file(path="/m/flow.json", kind="other")
    answer = rest.post(f"{MODELS}{file.pk}/preset/", {}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, "no_engine")
    link = f"/administration/presets/new/?model_file={file.pk}"
    assert link in page.get(PAGE).content.decode()
    opened = page.get(link).content.decode()
    assert f'<option value="{file.pk}" selected>{file.name} (Other)</option>' in opened
    form = {"slug": "flow", "name": "Flow", "model_file": file.pk, "engine": "comfyui"}
    page.post("/administration/presets/new/", form)
    assert Preset.objects.get().current.model_file == file  # type: ignore[union-attr]
