"""Presets of each engine: what is left out, what is refused, by service, REST and page."""

from itertools import count
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from lanes.engines.registry import ENGINES
from lanes.models import A_PROJECTOR, ModelFile, Preset
from lanes.presets import SavedPreset, as_said, save_preset
from lanes.refusals import Refusal
from tests import builders

pytestmark = pytest.mark.django_db
SUFFIXES = {"sglang": "", "comfyui": ".json"}  # of models that may be of any form, or are its
_serial = count(1)
SERVE = ["/opt/serve", "--port", "${PORT}"]


def save(engine: str, **wish: Any) -> SavedPreset | Refusal:
    """As an administrator."""
    file = builders.model_file(path=f"/models/{next(_serial)}{SUFFIXES.get(engine, '.gguf')}")
    who = builders.administrator()
    return save_preset(slug="qwen", model_file=file, actor=who, engine=engine, **wish)


@pytest.mark.parametrize(
    ("engine", "arguments", "kept"),
    [
        ("vllm", ["--ho", "0.0.0.0", "--max-model-len", "4096"], ["--max-model-len", "4096"]),
        ("sglang", ["--api_key=x", "--admin-api", "y", "--tp", "2"], ["--tp", "2"]),
        ("comfyui", ["--listen", "--lowvram"], ["--lowvram"]),
        ("llama.cpp", ["--ho", "0.0.0.0"], ["--ho", "0.0.0.0"]),
        ("command", [*SERVE, "--host", "0.0.0.0"], [*SERVE, "--host", "0.0.0.0"]),
    ],
)
def test_each_engine_leaves_out_its_own_flags_with_notes(
    engine: str, arguments: list[str], kept: list[str]
) -> None:
    made = save(engine, arguments=arguments)
    assert isinstance(made, SavedPreset)
    assert (made.revision.engine, made.revision.arguments) == (engine, kept)
    assert bool(made.revision.notes) == (kept != arguments)


@pytest.mark.parametrize(
    ("engine", "wish", "code", "words"),
    [
        ("command", {}, "bad_arguments", "the whole command"),
        ("command", {"arguments": ["${MODEL}", "${PORT}"]}, "bad_arguments", "the whole command"),
        ("command", {"arguments": ["/opt/serve"]}, "bad_arguments", "${PORT}"),
        ("command", {"arguments": [*SERVE, "${API_KEY}"]}, "bad_arguments", "${API_KEY_FILE}"),
        ("command", {"arguments": [*SERVE, "${NOPE}"]}, "bad_arguments", "${NOPE} is not known"),
        ("training", {"arguments": ["${API_KEY}"]}, "bad_arguments", "${API_KEY_FILE}"),
        ("command", {"options": {"stop_command": ["${API_KEY}"]}}, "bad_arguments", "command"),
        ("command", {"options": {"health_path": "ping"}}, "bad_options", "begins with /"),
        ("command", {"options": {"health_path": "/a b"}}, "bad_options", "no spaces"),
        ("command", {"options": {"protected_path": ["/"]}}, "bad_options", "begins with /"),
        ("command", {"options": {"slots": 0}}, "bad_options", "whole number"),
        ("command", {"options": {"slots": True}}, "bad_options", "whole number"),
        ("command", {"options": {"slots": "4"}}, "bad_options", "whole number"),
        ("command", {"options": {"stop_command": "kill"}}, "bad_options", "list of texts"),
        ("command", {"options": {"nope": 1}}, "bad_options", "no option"),
        ("command", {"options": [1]}, "bad_options", "names and values"),
        ("vllm", {"options": None}, "bad_options", "names and values"),
    ],
)
def test_what_cannot_be_is_refused_with_words(
    engine: str, wish: dict[str, Any], code: str, words: str
) -> None:
    done = save(engine, **wish)
    assert isinstance(done, Refusal)
    assert (done.code, words in done.words) == (code, True), done.words
    assert not Preset.objects.exists()


@pytest.mark.parametrize(
    ("engine", "model", "words"),
    [
        ("llama.cpp", {"path": "/m/a.gguf"}, ""),
        ("llama.cpp", {"path": "/m/sha256-9f3a", "architecture": "qwen3"}, ""),
        ("llama.cpp", {"path": "/m/sha256-9f3a"}, ""),  # nobody has looked at it yet
        ("llama.cpp", {"path": "/m/qwen", "kind": "huggingface"}, "Take vLLM or SGLang for it"),
        ("llama.cpp", {"path": "/m/mmproj-F16.gguf"}, "name the projector by --mmproj"),
        ("llama.cpp", {"path": "/m/p.gguf", "trouble": A_PROJECTOR}, "it is a projector"),
        ("llama.cpp", {"path": "/m/flux.gguf", "architecture": "flux"}, "Take ComfyUI for it."),
        ("llama.cpp", {"path": "/m/flow.json"}, "it is a workflow"),
        ("vllm", {"path": "/m/qwen", "kind": "huggingface"}, ""),
        ("vllm", {"path": "/m/a.gguf"}, ""),
        ("vllm", {"path": "/m/a.safetensors"}, "it is a workflow, a picture, data or weights"),
        ("sglang", {"path": "/m/qwen", "kind": "huggingface"}, ""),
        ("sglang", {"path": "/m/a.gguf"}, ""),
        ("comfyui", {"path": "/m/flow.json"}, ""),
        ("comfyui", {"path": "/m/comfyui"}, ""),
        ("comfyui", {"path": "/m/comfyui", "kind": "other", "parts": 0}, ""),
        ("comfyui", {"path": "/m/flow.json", "kind": "other"}, ""),
        ("training", {"path": "/m/data", "kind": "other", "parts": 0}, ""),
        ("command", {"path": "/m/data.parquet", "kind": "other"}, ""),
        ("llama.cpp", {"path": "/m/comfyui", "kind": "other"}, "a folder without config.json"),
        ("llama.cpp", {"path": "/m/a.ckpt", "kind": "other"}, "Take ComfyUI, a training service"),
        ("vllm", {"path": "/m/comfyui", "kind": "other"}, "put those files into it"),
        ("sglang", {"path": "/m/comfyui", "kind": "other"}, "Take ComfyUI, a training service"),
        ("comfyui", {"path": "/m/flux.gguf", "architecture": "flux"}, ""),
        ("comfyui", {"path": "/m/a.gguf", "architecture": "llama"}, "Take llama.cpp for it"),
        ("comfyui", {"path": "/m/qwen", "kind": "huggingface"}, "Take vLLM or SGLang for it"),
        ("training", {"path": "/m/qwen", "kind": "huggingface"}, ""),
        ("training", {"path": "/m/a.gguf"}, ""),
        ("command", {"path": "/m/flow.json"}, ""),
        ("command", {"path": "/m/mmproj.gguf"}, ""),
    ],
)
def test_a_model_that_its_engine_cannot_load_is_refused_with_what_to_do(
    engine: str, model: dict[str, Any], words: str
) -> None:
    file = ModelFile.objects.create(host=builders.host(), name="tiny", **model)
    who = builders.administrator()
    wish: dict[str, Any] = {"arguments": SERVE} if engine == "command" else {}
    done = save_preset(slug="qwen", model_file=file, actor=who, engine=engine, **wish)
    if not words:
        assert isinstance(done, SavedPreset)
        return
    assert isinstance(done, Refusal)
    assert (done.code, words in done.words) == ("wrong_model", True), done.words


def test_page_and_rest_refuse_such_a_model_alike(administrator: APIClient) -> None:
    file = builders.model_file(kind="huggingface", path="/m/qwen")
    words = "llama.cpp does not load"
    body = {"slug": "mine", "model_id": file.pk}
    answer = administrator.post("/api/v1/presets/", body, format="json")
    assert (answer.status_code, answer.data["code"]) == (400, "wrong_model")
    client = Client()
    client.force_login(builders.administrator())
    form = {"slug": "mine", "name": "Mine", "model_file": file.pk, "engine": "llama.cpp"}
    page = client.post("/administration/presets/new/", form).content.decode()
    assert words in page
    assert words in answer.data["detail"]
    assert not Preset.objects.exists()


def test_options_are_kept_where_the_engine_takes_them_and_noted_elsewhere() -> None:
    options = {"health_path": "/ping", "stop_command": ["/opt/stop"], "slots": 2}
    made = save("command", arguments=SERVE, options={**options, "protected_path": ""})
    assert isinstance(made, SavedPreset)
    assert made.revision.options == options
    said = as_said(made.revision.preset)
    assert save("command", **{k: said[k] for k in ("arguments", "options")}) != made
    other = save("vllm", options=options)
    assert isinstance(other, SavedPreset)
    assert other.revision.options == {}
    assert [note.split()[0] for note in other.notes] == list(options)


def test_a_command_s_variables_pass_but_those_of_slotserve_and_loaders() -> None:
    barred = {"LD_PRELOAD": "x", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/x", "BASH_ENV": "/x"}
    variables = {"WORD": "${NAME}", **barred}
    made = save("command", arguments=SERVE, environment=variables)
    assert isinstance(made, SavedPreset)
    assert made.revision.environment == {"WORD": "${NAME}"}
    assert [note.split()[0] for note in made.notes] == list(barred)


RUNS_OTHER_CODE = [
    {"PERL5OPT": "-Mbase;system(q(id))"},
    {"PYTHONWARNINGS": "all:0:antigravity.x:0:0", "BROWSER": "sh -c id #%s"},
    {"BASH_FUNC_ls%%": "() { id; }", "ENV": "/x", "SHELLOPTS": "xtrace"},
    {"RUBYOPT": "-r/x", "NODE_PATH": "/x", "LUA_INIT": "os.execute('id')"},
    {"JAVA_TOOL_OPTIONS": "-javaagent:/x", "GLIBC_TUNABLES": "x", "GCONV_PATH": "/x"},
]


@pytest.mark.parametrize("barred", RUNS_OTHER_CODE)
@pytest.mark.parametrize("engine", ["command", "training"])
def test_no_variable_makes_an_allowed_program_run_other_code(
    engine: str, barred: dict[str, str]
) -> None:
    own = {"PYTHONUNBUFFERED": "1"}
    kept, notes = ENGINES[engine].variables({**own, **barred})
    assert kept == own
    assert [note.split()[0] for note in notes] == list(barred)


@pytest.fixture
def administrator() -> APIClient:
    client = APIClient()
    client.force_authenticate(builders.administrator())
    return client


def test_rest_makes_and_shows_an_engine_with_its_options(administrator: APIClient) -> None:
    body = {"slug": "mine", "model_id": builders.model_file().pk, "engine": "command"}
    wish = {"arguments": SERVE, "options": {"slots": 3}}
    made = administrator.post("/api/v1/presets/", {**body, **wish}, format="json")
    assert made.status_code == 201, made.data
    assert (made.data["engine"], made.data["options"]) == ("command", {"slots": 3})
    wrong = administrator.patch("/api/v1/presets/mine/", {"options": {"slots": -1}}, format="json")
    assert (wrong.status_code, wrong.data["code"]) == (400, "bad_options")


def test_members_do_not_see_options(administrator: APIClient) -> None:
    builders.preset("tiny", engine="command", options={"stop_command": ["/opt/secret"]})
    member = APIClient()
    member.force_authenticate(builders.person())
    assert "secret" not in str(member.get("/api/v1/presets/tiny/").data)


def test_the_page_makes_a_preset_of_any_command() -> None:
    client = Client()
    client.force_login(builders.administrator())
    form = {
        "slug": "mine",
        "name": "Mine",
        "model_file": builders.model_file().pk,
        "engine": "command",
        "arguments": "/opt/serve --port ${PORT} --name 'a b'",
        "environment": "KEY=${API_KEY}",
        "health_path": "/ping",
        "stop_command": "/opt/stop ${PORT}",
        "slots": "4",
    }
    client.post("/administration/presets/new/", form, follow=True)
    revision = Preset.objects.get(slug="mine").current
    assert revision is not None
    assert revision.arguments == ["/opt/serve", "--port", "${PORT}", "--name", "a b"]
    stop = ["/opt/stop", "${PORT}"]
    assert revision.options == {"health_path": "/ping", "stop_command": stop, "slots": 4}
    page = client.get("/administration/presets/mine/").content.decode()
    assert "/opt/stop ${PORT}" in page
    assert '<option value="command" selected>Any command</option>' in page
    client.post("/administration/presets/mine/", {**form, "engine": "vllm", "arguments": ""})
    revision = Preset.objects.get(slug="mine").current
    assert revision is not None
    assert (revision.engine, revision.options) == ("vllm", {})


def test_the_page_says_what_is_wrong_with_a_command() -> None:
    client = Client()
    client.force_login(builders.administrator())
    form = {"slug": "mine", "name": "Mine", "model_file": builders.model_file().pk}
    form |= {"engine": "command", "arguments": "/opt/serve", "stop_command": "'"}
    answer = client.post("/administration/presets/new/", form)
    assert (answer.status_code, "not closed" in answer.content.decode()) == (400, True)
    answer = client.post("/administration/presets/new/", {**form, "stop_command": ""})
    assert (answer.status_code, "Tell the program its port" in answer.content.decode()) == (
        400,
        True,
    )
