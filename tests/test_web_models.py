"""The page of models: facts by host, folders, a preset in one step, and marks of files gone."""

from pathlib import Path

import pytest
from django.test import Client

from lanes.models import GONE, ModelFile, ModelFolder, Preset
from tests import builders
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db
PAGE = "/administration/models/"


@pytest.fixture
def administrator() -> Client:
    return signed_in("administrator")


def shown(client: Client, page: str = PAGE) -> str:
    """The page's text."""
    answer = client.get(page)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_facts_are_shown_by_host(administrator: Client) -> None:
    file = builders.model_file(
        architecture="qwen2",
        parameters=7_615_616_512,
        quantisation="Q4_K_M",
        context_length=32_768,
        vocabulary_size=152_064,
        has_chat_template=True,
        projector_path="/m/mmproj.gguf",
        fingerprint="f",
        digests={"q.gguf": "a" * 64},
        digests_of="f",
        is_hashed=True,
    )
    builders.preset("small", model_file=file)
    builders.host("far")
    text = shown(administrator)
    for fact in (
        "qwen2",
        "7.62 B weights",
        "Q4_K_M",
        "100.0 MB",
        "context 32,768",
        "vocabulary 152,064",
        "chat template",
        "with projector",
        "preset small",
        "a" * 64,
    ):
        assert fact in text
    assert text.index("far") < text.index("test-host") < text.index(file.name)


def test_what_is_wrong_is_shown(administrator: Client) -> None:
    builders.model_file(missing_since=builders.NOON)
    builders.model_file(trouble="It begins with zeros.")
    ModelFolder.objects.create(host=builders.host(), path="/m", trouble="It is not there.")
    text = shown(administrator)
    assert "gone since" in text
    assert GONE in text
    assert "It begins with zeros." in text
    assert "It is not there." in text
    assert "not looked through yet" in text


def test_models_are_searched_for(administrator: Client) -> None:
    builders.model_file(architecture="llama", path="/m/one.gguf")
    builders.model_file(architecture="qwen2", path="/m/two.gguf")
    text = shown(administrator, f"{PAGE}?q=QWEN+two")
    assert "/m/two.gguf" in text
    assert "/m/one.gguf" not in text
    assert "No model matches" in shown(administrator, f"{PAGE}?q=nothing<b>")


def test_a_host_with_very_many_models_shows_some(administrator: Client) -> None:
    ModelFile.objects.bulk_create(
        ModelFile(host=builders.host(), path=f"/m/{n}.gguf", name=f"m{n:03}") for n in range(203)
    )
    assert "3 more: search for them." in shown(administrator)


def test_a_folder_is_added_and_removed(administrator: Client, tmp_path: Path) -> None:
    host = builders.host()
    form = {"host": host.key, "path": str(tmp_path)}
    answer = administrator.post(f"{PAGE}folders/new/", form, follow=True)
    assert "is looked through now and every minute" in answer.content.decode()
    again = administrator.post(f"{PAGE}folders/new/", form)
    assert again.status_code == 400
    assert "is looked through already" in again.content.decode()
    folder = ModelFolder.objects.get()
    administrator.post(f"{PAGE}folders/{folder.pk}/remove/")
    assert not ModelFolder.objects.exists()


def test_a_host_is_asked_to_look_again(administrator: Client) -> None:
    file = builders.model_file(fingerprint="f")
    answer = administrator.post(f"{PAGE}hosts/{file.host.key}/", follow=True)
    assert "is looking through its folders" in answer.content.decode()
    file.refresh_from_db()
    assert file.fingerprint == ""


def test_a_preset_is_made_in_one_step(administrator: Client) -> None:
    file = builders.model_file(context_length=131_072)
    answer = administrator.post(f"{PAGE}{file.pk}/preset/", follow=True)
    preset = Preset.objects.get(current__model_file=file)
    assert answer.redirect_chain[-1][0] == f"/administration/presets/{preset.slug}/"
    assert preset.current is not None
    assert preset.current.arguments == ["-c", "8192"]


def test_no_preset_is_made_of_a_file_that_is_gone(administrator: Client) -> None:
    file = builders.model_file(missing_since=builders.NOON)
    answer = administrator.post(f"{PAGE}{file.pk}/preset/", follow=True)
    assert GONE in answer.content.decode()
    assert not Preset.objects.exists()


def test_a_model_is_forgotten(administrator: Client) -> None:
    file, used = builders.model_file(), builders.model_file()
    builders.preset("small", model_file=used)
    administrator.post(f"{PAGE}{file.pk}/forget/")
    answer = administrator.post(f"{PAGE}{used.pk}/forget/", follow=True)
    assert "is the model of small" in answer.content.decode()
    assert ModelFile.objects.get() == used


@pytest.mark.parametrize(
    "place", ["", "new/", "folders/new/", "folders/1/remove/", "hosts/x/", "1/preset/", "1/forget/"]
)
def test_members_reach_none_of_it(place: str) -> None:
    assert signed_in("member").post(PAGE + place).status_code == 403
    assert signed_in("member").get(PAGE + place).status_code == 403


def test_a_preset_whose_file_is_gone_is_marked_everywhere(administrator: Client) -> None:
    preset = builders.preset("small")
    lane = builders.lane("demo", default_preset=preset)
    assert preset.current is not None
    ModelFile.objects.update(missing_since=builders.NOON)
    assert "file is gone" in shown(administrator, "/administration/")
    assert GONE in shown(administrator, "/administration/")
    assert "small (file is gone)" in shown(administrator, "/lanes/demo/")
    assert "small (file is gone)" in shown(administrator, "/administration/lanes/demo/")
    member = signed_in("member")
    assert "small (file is gone)" in shown(member, "/book/")
    told = shown(member, f"/book/expect/?lane={lane.slug}&what=preset:small&begins=now")
    assert GONE in told


def test_a_file_in_trouble_is_marked_in_the_form(administrator: Client) -> None:
    builders.preset("small", model_file=builders.model_file(trouble="It begins with zeros."))
    builders.lane("demo")
    assert "small (file has trouble)" in shown(administrator, "/book/")
