"""The preview of a preset's command: the same words as the host starts, without secrets."""

from typing import Any

import pytest
from django.test import Client

from lanes import starting
from lanes.launch_preview import preview
from lanes.models import Lane, LlamaServer, Phase, Preset, PresetRevision, Runtime
from lanes.secret_names import MASK
from tests import builders
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db


def runtime_of(lane: Lane, preset: Preset) -> Runtime:
    """A row of a server that starts."""
    return Runtime.objects.create(
        lane=lane,
        revision=current(preset),
        generation=1,
        phase=Phase.STARTING,
        phase_since=builders.NOON,
        started_at=builders.NOON,
        address="127.0.0.1",
        port=0,
        log_path="/tmp/none",
    )


def current(preset: Preset) -> PresetRevision:
    """Its newest revision."""
    assert preset.current is not None
    return preset.current


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("llama.cpp", {"arguments": ["-c", "4096", "-np", "2"], "aliases": ["gpt-4"]}),
        ("vllm", {"arguments": ["--max-model-len", "8192"]}),
        ("sglang", {"arguments": []}),
        ("comfyui", {"arguments": []}),
        ("command", {"arguments": ["/bin/server", "--port", "${PORT}"]}),
    ],
)
def test_it_is_the_command_that_starts(engine: str, said: dict[str, Any]) -> None:
    lane, preset = builders.lane(), builders.preset("small", engine=engine, **said)
    lane.gpus.add(builders.gpu())
    told = starting.shim_order(lane, runtime_of(lane, preset), "the-key")
    shown = preview(lane, current(preset))
    assert list(shown.argv) == told["argv"]
    environment = told["environment"]
    assert isinstance(environment, dict)
    masked = {name: MASK if "KEY" in name else text for name, text in environment.items()}
    assert shown.environment.items() <= masked.items()
    assert "the-key" not in repr(shown)


def test_the_program_and_flags_are_those_of_its_host() -> None:
    lane, preset = builders.lane(), builders.preset(arguments=["-c", "4096"])
    LlamaServer.objects.create(
        host=lane.host,
        identity="/opt/llama-server, 1 bytes, 2",
        flags=["-m", "--host", "--port", "-c"],
        asked_at=builders.NOON,
    )
    assert preview(lane, current(preset)).argv[0] == "/opt/llama-server"


def test_of_a_container_it_is_what_goes_behind_the_entry_point() -> None:
    lane, preset = builders.lane(), builders.preset(engine="vllm", image="vllm/vllm-openai")
    shown = preview(lane, current(preset))
    assert shown.image == "vllm/vllm-openai"
    assert "0.0.0.0" in shown.argv
    assert "vllm" not in shown.argv


def test_values_of_secrets_are_hidden() -> None:
    preset = builders.preset(
        engine="command", arguments=["/bin/server"], environment={"HF_TOKEN": "hunter2", "A": "b"}
    )
    shown = preview(builders.lane(), current(preset))
    assert shown.environment["HF_TOKEN"] == MASK
    assert shown.environment["A"] == "b"


def typed(client: Client, slug: str | None = None, **fields: str) -> str:
    """What the editor shows while these are typed."""
    place = f"{slug}/" if slug else "new/"
    answer = client.post(
        f"/administration/presets/{place}preview/", fields, headers={"HX-Request": "true"}
    )
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_editor_shows_it_while_one_types() -> None:
    builders.lane("here")
    file = builders.model_file()
    text = typed(
        signed_in("administrator"),
        slug="",
        model_file=str(file.pk),
        engine="llama.cpp",
        arguments="-c 2048 --host 0.0.0.0",
    )
    assert f"-m {file.path}" in text
    assert "-c 2048" in text
    assert "--host was left out" in text
    assert "<html" not in text
    assert Preset.objects.count() == 0


def test_the_lane_can_be_chosen() -> None:
    one, two = builders.lane("one"), builders.lane("two")
    one.gpus.add(builders.gpu())
    card = builders.gpu()
    two.gpus.add(card)
    file = builders.model_file()
    fields = {"model_file": str(file.pk), "engine": "llama.cpp"}
    client = signed_in("administrator")
    assert card.uuid in typed(client, **fields, preview_lane="two")
    assert card.uuid not in typed(client, **fields, preview_lane="one")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Choose a model file."),
        ({"arguments": '-c "unclosed'}, "alert-danger"),
        ({"environment": "nothing"}, "NAME=value"),
        ({"engine": "none"}, "alert-danger"),
    ],
)
def test_what_is_wrong_is_said_instead(fields: dict[str, str], words: str) -> None:
    builders.lane()
    file = builders.model_file()
    chosen = {"model_file": str(file.pk), "engine": "llama.cpp"} if fields else {}
    text = typed(signed_in("administrator"), **{**chosen, **fields})
    assert words in text
    assert 'id="command"' not in text


def test_a_host_without_a_lane_starts_nothing() -> None:
    file = builders.model_file()
    text = typed(signed_in("administrator"), model_file=str(file.pk), engine="llama.cpp")
    assert "no lane yet" in text


def test_without_a_script_the_whole_page_shows_it() -> None:
    builders.lane()
    builders.preset("small")
    answer = signed_in("administrator").post(
        "/administration/presets/small/preview/",
        {
            "name": "Another",
            "model_file": str(current(Preset.objects.get()).model_file_id),
            "engine": "llama.cpp",
            "arguments": "-c 512",
        },
    )
    text = answer.content.decode()
    assert "<html" in text
    assert 'value="Another"' in text
    assert "-c 512" in text
    assert Preset.objects.get().name == "small"


def test_members_see_no_command() -> None:
    builders.preset("small")
    client = signed_in("member")
    assert client.post("/administration/presets/small/preview/").status_code == 403
    answer = client.post("/api/v1/presets/small/preview/", {}, content_type="application/json")
    assert answer.json()["code"] == "not_administrator"


def asked(body: dict[str, object]) -> Any:
    """REST's answer about the preset small."""
    return (
        signed_in("administrator")
        .post("/api/v1/presets/small/preview/", body, content_type="application/json")
        .json()
    )


def test_rest_shows_it_too() -> None:
    builders.lane("here")
    builders.preset("small", arguments=["-c", "4096"])
    assert asked({})["lane"] == "here"
    assert "4096" in asked({})["argv"]
    told = asked({"arguments": ["-c", "512", "--port", "1"], "lane": "here"})
    assert "512" in told["argv"]
    assert any("--port" in note for note in told["notes"])
    assert current(Preset.objects.get()).arguments == ["-c", "4096"]


def test_rest_refuses_what_cannot_be_started() -> None:
    builders.preset("small")
    far = builders.lane("far", host=builders.host("far"))
    assert asked({})["code"] == "wrong_host"
    assert asked({"lane": far.slug})["code"] == "wrong_host"
    assert asked({"lane": "none"})["code"] == "invalid"
    assert asked({"argument": []})["code"] == "invalid"
    assert asked({"arguments": "-c 1"})["code"] == "bad_arguments"
