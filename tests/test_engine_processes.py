"""Every engine's stand-in through the supervisor, as real processes: keys, failures, stops."""

import json
import os
import shlex
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pytest_django import Settings

from bookings.choices import retry
from bookings.failure_notices import tell_failures
from bookings.planning import plan_lanes
from gateway.route_facts import read_lanes
from gateway.route_lane import lane_route
from lanes import clock, supervisor
from lanes.logs import read_tail
from lanes.models import Lane, LaneEvent, Notice, Order, PresetFailure, Runtime
from slotserve.overview import overviews
from tests import builders, fleet
from tests.test_short_programs import is_gone

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]
STANDINS = Path(__file__).parent / "standins"
ANY = (sys.executable, str(STANDINS / "any_server.py"))


def program(name: str, *words: str) -> str:
    """The setting that names a stand-in."""
    return shlex.join([sys.executable, str(STANDINS / f"{name}.py"), *words])


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    fleet_settings.SLOTSERVE_VLLM = program("vllm_serve", "serve")
    fleet_settings.SLOTSERVE_SGLANG = program("sglang_launch")
    fleet_settings.SLOTSERVE_COMFYUI = program("comfyui_main")
    fleet_settings.SLOTSERVE_COMMANDS = sys.executable
    macros = "serve --host ${HOST} --port ${PORT} --base ${MODEL}"
    fleet_settings.SLOTSERVE_TRAINER = f"{shlex.join(ANY)} {macros}"
    return builders.lane()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "a model"
    folder.mkdir()
    say(folder)
    return folder


def say(model: Path, **told: Any) -> None:
    """What the stand-in is to find."""
    (model / "standin.json").write_text(json.dumps(told))


def ready(lane: Lane, engine: str, model: Path, *arguments: str, **fields: Any) -> Runtime:
    """A server of this engine, once it is ready."""
    file = builders.model_file(path=str(model))
    wanted = builders.preset(
        slug="qwen", engine=engine, model_file=file, arguments=list(arguments), **fields
    )
    return fleet.make_ready(lane, wanted)


def failed(lane: Lane, engine: str, model: Path, *arguments: str, **fields: Any) -> str:
    """Why a server of this engine failed."""
    file = builders.model_file(path=str(model))
    wanted = builders.preset(
        slug="qwen", engine=engine, model_file=file, arguments=list(arguments), **fields
    )
    fleet.order(lane, wanted)
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failure = PresetFailure.objects.get(lane=lane)
    return f"{failure.reason} {failure.failure_advice}"


def ask(runtime: Runtime, path: str, key: str = "", **body: Any) -> httpx.Response:
    """What the server answers, with this key."""
    url = f"http://{runtime.address}:{runtime.port}{path}"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if body:
        return httpx.post(url, json=body, headers=headers)
    return httpx.get(url, headers=headers, timeout=60)


def command_line(runtime: Runtime) -> str:
    """argv of the server, as everyone on the host can read it."""
    assert runtime.pid is not None
    return " ".join(psutil.Process(runtime.pid).cmdline())


@pytest.mark.parametrize(
    ("engine", "arguments", "slots"),
    [
        ("vllm", ["--max-model-len", "4k", "--max-num-seqs", "12"], 12),
        ("vllm", ["--max-model-len", "4k"], 256),
        ("sglang", ["--context-length", "4000", "--max-running-requests", "12"], 12),
        ("sglang", ["--context-length", "4000", "--tp", "2"], None),
    ],
)
def test_a_server_is_ready_with_a_key_of_its_own_and_tells_what_it_can(
    lane: Lane, model: Path, engine: str, arguments: list[str], slots: int | None
) -> None:
    runtime = ready(lane, engine, model, *arguments)
    key = fleet.key_of(runtime)
    assert ask(runtime, "/v1/models").status_code == 401
    assert ask(runtime, "/v1/models", key).json()["data"][0]["id"] == "qwen"
    assert (runtime.slots, runtime.context_length) == (slots, 4000)
    assert runtime.capabilities == ["completion"]
    assert key not in command_line(runtime)
    assert key not in read_tail(runtime.log_path)
    assert read_tail(runtime.log_path)
    assert str(model) in command_line(runtime)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("named", ["qwen", "gpt-5", "auto", "another-preset"])
def test_a_request_runs_under_any_name_since_the_gateway_chooses(
    lane: Lane, model: Path, engine: str, named: str
) -> None:
    runtime = ready(lane, engine, model, aliases=["gpt-5"])
    messages = [{"role": "user", "content": "Hi"}]
    answer = ask(
        runtime, "/v1/chat/completions", fleet.key_of(runtime), model=named, messages=messages
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("engine", "arguments", "told", "words"),
    [
        ("vllm", [], {"free_gib": 12, "total_gib": 24}, "--gpu-memory-utilization"),
        ("vllm", ["--max-model-len", "32768"], {"kv_tokens": 9000}, "--max-model-len to 9000"),
        ("vllm", ["--no-such-flag"], {}, "--no-such-flag"),
        ("vllm", ["--max-model-len", "lots"], {}, "--max-model-len"),
        ("vllm", [], {"fails": "torch.OutOfMemoryError: CUDA out of memory."}, "ran out of memory"),
        ("sglang", [], {"least_share": 0.9}, "--mem-fraction-static"),
        ("sglang", ["--no-such-flag"], {}, "--no-such-flag"),
        ("sglang", [], {"fails": "torch.OutOfMemoryError: CUDA out of memory."}, "out of memory"),
    ],
)
def test_a_failure_says_what_to_try_with_this_engine(
    lane: Lane, model: Path, engine: str, arguments: list[str], told: dict[str, Any], words: str
) -> None:
    say(model, **told)
    assert words in failed(lane, engine, model, *arguments)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_model_folder_that_is_not_there_is_named(lane: Lane, tmp_path: Path, engine: str) -> None:
    assert failed(lane, engine, tmp_path / "nowhere")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "comfyui"])
def test_a_program_that_is_not_installed_is_named(
    lane: Lane, model: Path, settings: Settings, engine: str
) -> None:
    setattr(settings, f"SLOTSERVE_{engine.upper()}", "/no/such/program serve")
    assert "No such file or directory: 'program'." in failed(lane, engine, model)


def test_sglang_reads_its_key_from_a_file_that_nobody_else_can(lane: Lane, model: Path) -> None:
    runtime = ready(lane, "sglang", model)
    folder = Path(command_line(runtime).split("--config ")[1].split(" --")[0]).parent
    (file,) = folder.iterdir()
    assert fleet.key_of(runtime) in file.read_text()
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_comfyui_keeps_pictures_until_the_next_start(lane: Lane, model: Path) -> None:
    runtime = ready(lane, "comfyui", model)
    prompt = ask(runtime, "/prompt", prompt={"1": "a cat"}).json()["prompt_id"]
    outputs = ask(runtime, f"/history/{prompt}").json()[prompt]["outputs"]
    name = outputs["9"]["images"][0]["filename"]
    assert b"a cat" in ask(runtime, f"/view?filename={name}").content
    assert (runtime.slots, runtime.capabilities) == (None, ["image"])
    fleet.order(lane, runtime.revision.preset, is_reload=True)
    fleet.look_until(lane, fleet.is_phase(lane, "ready", runtime.generation + 1))
    again = fleet.newest(lane)
    assert again is not None
    assert not [*(Path(command_line(again).split("--output-directory ")[1].split()[0])).iterdir()]


def test_a_training_service_gets_model_and_key(lane: Lane, model: Path) -> None:
    fields = {"options": {"health_path": "/ping", "protected_path": "/train/status", "slots": 1}}
    runtime = ready(lane, "training", model, **fields)
    answer = ask(runtime, "/train/status", fleet.key_of(runtime)).json()
    assert answer == {"path": "/train/status", "base": str(model)}
    assert (runtime.slots, runtime.capabilities) == (1, ["training"])


def test_a_host_without_a_training_service_says_so(
    lane: Lane, model: Path, settings: Settings
) -> None:
    settings.SLOTSERVE_TRAINER = ""
    failure = refused(lane, "training", model)
    assert failure.reason == "This host has no training service."
    assert "Set SLOTSERVE_TRAINER" in failure.failure_advice


def test_any_command_runs_with_its_macros_and_ends_by_its_own_command(
    lane: Lane, model: Path, tmp_path: Path
) -> None:
    stopped, said = tmp_path / "stopped", tmp_path / "said"
    serve = [*ANY, "serve", "--port", "${PORT}", "--key-file", "${API_KEY_FILE}"]
    stop = [*ANY, "stop", "--port", "${PORT}", "--said", str(said)]
    runtime = ready(
        lane,
        "command",
        model,
        *serve,
        "--stopped",
        str(stopped),
        environment={"WORD": "${NAME}@${HOST}", "API_KEY": "${API_KEY}"},
        options={"health_path": "/ping", "protected_path": "/x", "stop_command": stop},
    )
    assert fleet.key_of(runtime) not in command_line(runtime)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert said.read_text() == "qwen@127.0.0.1"
    assert not stopped.exists(), "TERM came first"


def test_a_stop_command_that_does_nothing_is_followed_by_term(
    lane: Lane, model: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "stopped"
    serve = [*ANY, "serve", "--port", "${PORT}", "--stopped", str(stopped)]
    stop = [sys.executable, "-c", "import time; time.sleep(60)"]
    options = {"health_path": "/ping", "stop_command": stop}
    ready(lane, "command", model, *serve, options=options)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert stopped.read_text() == "by TERM"
    fleet.look_until(lane, lambda: not fleet.servers(lane.pk))  # what the command left is swept


def test_a_stop_command_whose_user_is_missing_is_followed_by_term(
    lane: Lane, model: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = tmp_path / "stopped"
    serve = [*ANY, "serve", "--port", "${PORT}", "--stopped", str(stopped)]
    options = {"health_path": "/ping", "stop_command": [sys.executable, "-c", "pass"]}
    ready(lane, "command", model, *serve, options=options)
    settings.SLOTSERVE_RUN_AS = "nobody-of-that-name"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert stopped.read_text() == "by TERM"


def test_a_stop_command_s_output_is_bounded_and_its_group_ends_when_its_time_is_over(
    lane: Lane, model: Path, tmp_path: Path
) -> None:
    helper = tmp_path / "helper"
    script = (
        "import os, subprocess; print(os.environ['API_KEY'], flush=True);"
        "p = subprocess.Popen(['sleep', '600'], env={});"
        f"open({str(helper)!r}, 'w').write(str(p.pid));"
        "[os.write(1, b'x' * 65536) for _ in range(1600)]; print(flush=True); p.wait()"
    )
    serve = [*ANY, "serve", "--port", "${PORT}"]
    options = {"health_path": "/ping", "stop_command": [sys.executable, "-c", script]}
    variables = {"API_KEY": "${API_KEY}"}
    runtime = ready(lane, "command", model, *serve, options=options, environment=variables)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    fleet.until(lambda: "[slotserve: the stop command" in read_tail(runtime.log_path, 2**20))
    fleet.until(lambda: is_gone(int(helper.read_text())))  # it carries no mark of ours
    text = read_tail(runtime.log_path, 2**20)
    assert (
        "[slotserve: the stop command was ended with its server; it said:]\n[API key]\nxxxx" in text
    )
    assert fleet.key_of(runtime) not in text
    assert len(text) < 70_000


def test_a_program_that_the_host_does_not_allow_is_not_started(
    lane: Lane, model: Path, settings: Settings
) -> None:
    settings.SLOTSERVE_COMMANDS = "/bin/true"
    failure = refused(lane, "command", model, *ANY, "--port", "${PORT}")
    assert failure.reason == f"This host may not start {Path(sys.executable).name}."
    assert failure.failure_line == sys.executable
    assert "SLOTSERVE_COMMANDS" in failure.failure_advice


def test_what_the_host_does_not_start_gives_way_to_the_default_and_is_told(
    lane: Lane, model: Path, settings: Settings
) -> None:
    settings.SLOTSERVE_COMMANDS = ""
    owner, administrator = builders.person("owner"), builders.administrator()
    file = builders.model_file(path=str(model))
    words = [*ANY, "--port", "${PORT}"]
    wanted = builders.preset("mine", engine="command", model_file=file, arguments=words)
    lane.default_preset = builders.preset("usual", engine="vllm", model_file=file)
    lane.save()
    now = clock.database_now()
    builders.booking(lane=lane, preset=wanted, owner=owner, start=now - timedelta(minutes=1))
    plan_lanes()
    fleet.look_until(lane, PresetFailure.objects.exists)
    assert tell_failures(clock.database_now()) == 2
    assert set(Notice.objects.values_list("recipient", flat=True)) == {owner.pk, administrator.pk}
    plan_lanes()
    order = Order.objects.get()
    assert order.is_fallback
    assert "mine, wanted for the slot until" in order.sentence
    assert "usual, the default, runs meanwhile" in order.sentence
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    served = fleet.newest(lane)
    assert served is not None
    assert served.revision.preset == lane.default_preset
    assert retry(lane, actor=owner) is None


def test_what_the_host_does_not_start_is_shown_as_failed(
    lane: Lane, model: Path, settings: Settings
) -> None:
    settings.SLOTSERVE_TRAINER = ""
    lane.default_preset = builders.preset(
        "trainer", engine="training", model_file=builders.model_file(path=str(model))
    )
    lane.save()
    plan_lanes()
    fleet.look_until(lane, PresetFailure.objects.exists)
    plan_lanes()
    (view,) = overviews([lane], clock.database_now(), builders.administrator())
    assert view.phase == "failed"
    assert view.trouble is not None
    assert (view.trouble.kind, view.trouble.count) == ("program", 1)
    assert view.trouble.retry_at is not None
    (facts,) = read_lanes(clock.database_now())
    route = lane_route(facts, 30.0)
    assert (route.phase, route.failure) == ("failed", "This host has no training service.")


def test_a_server_without_a_key_starts_on_loopback_alone(lane: Lane, model: Path) -> None:
    lane.host.address = "10.1.2.3"
    lane.host.save()
    assert "no API key" in refused(lane, "comfyui", model).reason


def refused(lane: Lane, engine: str, model: Path, *arguments: str) -> PresetFailure:
    """Why the host starts nothing: a failure that backs off."""
    file = builders.model_file(path=str(model))
    wanted = builders.preset(engine=engine, model_file=file, arguments=list(arguments))
    fleet.order(lane, wanted)
    fleet.look_until(lane, PresetFailure.objects.exists)
    supervisor.look(lane.pk)
    failure = PresetFailure.objects.get()
    assert failure.count == 1
    assert failure.reason in LaneEvent.objects.get(kind="blocked").sentence
    assert not Runtime.objects.exists()
    assert os.path.exists(model)
    return failure
