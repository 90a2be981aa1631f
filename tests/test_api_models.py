"""REST: models, folders, looking again, presets of models, and marks of files gone."""

from datetime import timedelta
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from lanes import clock
from lanes.models import GONE, ModelFile, ModelFolder
from tests import builders
from tests.test_api_bookings import signed_in, with_token

pytestmark = pytest.mark.django_db
MODELS, FOLDERS = "/api/v1/models/", "/api/v1/model-folders/"


@pytest.fixture
def administrator() -> APIClient:
    return signed_in(builders.administrator())


@pytest.fixture
def member() -> APIClient:
    return signed_in(builders.person("member"))


def test_a_model_tells_its_facts(member: APIClient) -> None:
    file = builders.model_file(
        architecture="qwen2",
        parameters=7_615_616_512,
        quantisation="Q4_K_M",
        context_length=32_768,
        vocabulary_size=152_064,
        has_chat_template=True,
        projector_path="/secret/mmproj.gguf",
    )
    builders.preset("small", model_file=file)
    answer = member.get(f"{MODELS}{file.pk}/")
    assert answer.json() == {
        "id": file.pk,
        "host": "test-host",
        "name": file.name,
        "size_bytes": 100_000_000,
        "kind": "gguf",
        "parts": 1,
        "architecture": "qwen2",
        "parameters": 7_615_616_512,
        "quantisation": "Q4_K_M",
        "context_length": 32_768,
        "vocabulary_size": 152_064,
        "has_chat_template": True,
        "missing_since": None,
        "has_projector": True,
        "warning": "",
        "sha256": {},
        "presets": ["small"],
        "larger_than_gpu_memory_of": [],
    }


def test_a_list_of_models_takes_a_fixed_number_of_queries(
    member: APIClient, django_assert_num_queries: object
) -> None:
    for number in range(5):
        builders.preset(f"small-{number}", model_file=builders.model_file())
    builders.lane().gpus.add(builders.gpu())
    # Session, user, count, models, presets, lanes, cards.
    with django_assert_num_queries(7):  # type: ignore[operator]
        assert len(member.get(MODELS).json()["results"]) == 5


def test_presets_of_a_file_that_is_gone_are_marked(member: APIClient) -> None:
    builders.preset("small", model_file=builders.model_file(missing_since=builders.NOON))
    assert member.get("/api/v1/presets/small/").json()["warning"] == GONE
    (model,) = member.get(MODELS).json()["results"]
    assert (model["warning"], model["missing_since"]) == (GONE, "2030-01-15T12:00:00Z")


def test_a_preset_is_made_of_a_model(administrator: APIClient) -> None:
    file = builders.model_file(context_length=131_072)
    answer = administrator.post(f"{MODELS}{file.pk}/preset/", {"slug": "mine"}, format="json")
    assert answer.status_code == 201
    assert (answer.json()["slug"], answer.json()["arguments"]) == ("mine", ["-c", "8192"])
    again = administrator.post(f"{MODELS}{file.pk}/preset/", {"slug": "mine"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")
    unnamed = administrator.post(f"{MODELS}{file.pk}/preset/", {}, format="json")
    assert unnamed.json()["slug"] == file.name


def test_folders_are_added_shown_and_removed(administrator: APIClient, tmp_path: Path) -> None:
    body = {"host": builders.host().key, "path": str(tmp_path)}
    made = administrator.post(FOLDERS, body, format="json")
    assert made.status_code == 201
    pk = made.json()["id"]
    expected = {"id": pk, **body, "scanned_at": None, "found": 0, "trouble": ""}
    assert administrator.get(f"{FOLDERS}{pk}/").json() == expected
    assert administrator.get(FOLDERS).json()["results"] == [expected]
    again = administrator.post(FOLDERS, body, format="json")
    assert (again.status_code, again.json()["code"]) == (400, "already_registered")
    assert administrator.delete(f"{FOLDERS}{pk}/").status_code == 204
    assert not ModelFolder.objects.exists()


@pytest.mark.parametrize(
    "path", ["", "models", "/nowhere", "/proc", "/a\0b", 7, ["/m"], "/" * 2000]
)
def test_what_is_no_folder_is_refused(administrator: APIClient, path: object) -> None:
    body = {"host": builders.host().key, "path": path}
    assert administrator.post(FOLDERS, body, format="json").status_code == 400


def test_a_host_is_asked_to_look_again(administrator: APIClient) -> None:
    file = builders.model_file(fingerprint="f")
    answer = administrator.post(f"{MODELS}rescan/", {"host": "test-host"}, format="json")
    assert (answer.status_code, "looking" in answer.json()["detail"]) == (202, True)
    file.refresh_from_db()
    assert file.fingerprint == ""
    assert administrator.post(f"{MODELS}rescan/", {"host": "x"}, format="json").status_code == 400


def test_a_model_is_forgotten_unless_presets_use_it(administrator: APIClient) -> None:
    file, used = builders.model_file(), builders.model_file()
    builders.preset("small", model_file=used)
    assert administrator.delete(f"{MODELS}{file.pk}/").status_code == 204
    answer = administrator.delete(f"{MODELS}{used.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert ModelFile.objects.get() == used


def test_members_may_change_nothing_and_see_no_folder(member: APIClient, tmp_path: Path) -> None:
    file = builders.model_file()
    folder = ModelFolder.objects.create(host=file.host, path="/m")
    host = {"host": "test-host"}
    body = {**host, "path": str(tmp_path)}
    answers = [
        member.get(FOLDERS),
        member.get(f"{FOLDERS}{folder.pk}/"),
        member.post(FOLDERS, body, format="json"),
        member.delete(f"{FOLDERS}{folder.pk}/"),
        member.post(f"{MODELS}rescan/", host, format="json"),
        member.post(MODELS, {**body, "name": "x"}, format="json"),
        member.delete(f"{MODELS}{file.pk}/"),
        member.post(f"{MODELS}{file.pk}/preset/", {}, format="json"),
    ]
    assert [each.status_code for each in answers] == [403] * 8
    assert {each.json()["code"] for each in answers} == {"not_administrator"}


def test_a_token_needs_the_scope_of_administrators() -> None:
    client = with_token(builders.administrator(), "read")
    assert client.get(MODELS).status_code == 200
    assert client.get(FOLDERS).status_code == 403
    assert client.post(f"{MODELS}rescan/", {"host": "x"}, format="json").status_code == 403


def test_a_preset_with_bookings_is_refused_with_their_numbers(administrator: APIClient) -> None:
    now = clock.database_now()
    booking = builders.booking(start=now + timedelta(hours=1), preset=builders.preset("small"))
    past = builders.booking(start=now - timedelta(days=2), preset=builders.preset("old"))
    answers = [administrator.delete(f"/api/v1/presets/{slug}/") for slug in ("small", "old")]
    assert [each.status_code for each in answers] == [409, 409]
    assert [each.json()["bookings"] for each in answers] == [[booking.pk], [past.pk]]
    assert [each.json()["code"] for each in answers] == ["in_use", "has_history"]


@pytest.mark.parametrize(
    ("host", "path", "words"),
    [
        ("test-host", "/etc/passwd", "It is not a GGUF file"),
        ("far", "/etc/passwd", "does not end in .gguf"),
    ],
)
def test_what_does_not_look_like_a_model_is_warned_of(
    administrator: APIClient, host: str, path: str, words: str
) -> None:
    body = {"host": builders.host(host).key, "path": path, "name": "x"}
    answer = administrator.post(MODELS, body, format="json")
    assert answer.status_code == 201
    (warning,) = answer.json()["warnings"]
    assert words in warning


def test_a_model_of_another_host_is_not_doubted_by_name(administrator: APIClient) -> None:
    body = {"host": builders.host("far").key, "path": "/m/q.gguf", "name": "x"}
    assert administrator.post(MODELS, body, format="json").json()["warnings"] == []


def test_what_of_a_preset_tells_of_its_host_is_for_administrators(
    member: APIClient, administrator: APIClient
) -> None:
    builders.revision(builders.preset("qwen"), environment={"SECRET_PLACE": "/srv/secret"})
    seen, whole = (client.get("/api/v1/presets/qwen/").json() for client in (member, administrator))
    hidden = {"arguments", "environment", "options", "image", "notes"}
    assert set(whole) - set(seen) == hidden
    assert "SECRET_PLACE" in str(whole)
    assert "SECRET_PLACE" not in str(seen)
