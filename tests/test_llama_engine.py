"""The command line and environment of a llama-server."""

import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes.engines import llama_cpp
from lanes.engines.base import Launch, ServerSpec
from lanes.engines.registry import engine


def launched(*arguments: str, **fields: object) -> Launch:
    """The launch of a preset with these arguments."""
    values: dict[str, object] = {
        "model_path": "/models/a b.gguf",
        "alias": "qwen3",
        "environment": {},
        "address": "10.0.0.5",
        "port": 18123,
        "api_key": "secret-key",
    }
    return engine("llama.cpp").launch(ServerSpec(arguments=arguments, **values | fields))  # type: ignore[arg-type]


@pytest.fixture
def program(settings: Settings, tmp_path: Path) -> str:
    """A llama-server that the setting names."""
    file = tmp_path / "my-llama-server"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    settings.SLOTSERVE_LLAMA_SERVER = str(file)
    return str(file)


def test_the_command_line_is_ours_first_and_then_the_preset_s(program: str) -> None:
    own = ("-m", "/models/a b.gguf", "--host", "10.0.0.5", "--port", "18123", "--alias", "qwen3")
    assert launched("-c", "4096").argv == (program, *own, "-c", "4096")


def test_owned_flags_that_reached_the_database_are_still_left_out(program: str) -> None:
    argv = launched("--host", "0.0.0.0", "--api_key=x", "-c", "1").argv
    assert argv.count("--host") == 1
    assert argv[-2:] == ("-c", "1")


def test_the_key_is_in_the_environment_alone() -> None:
    launch = launched()
    assert launch.environment["LLAMA_API_KEY"] == "secret-key"
    assert "secret-key" not in " ".join(launch.argv)


def test_a_program_on_the_path_stands_before_the_built_in_one(
    program: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = ""
    found = Path(program).with_name("llama-server")
    Path(program).rename(found)
    monkeypatch.setenv("PATH", str(found.parent))
    assert launched().argv[0] == str(found)


def test_without_any_program_the_runner_starts_wherever_the_folder(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = ""
    monkeypatch.setenv("PATH", str(tmp_path))
    launch = launched()
    assert launch.argv[:4] == (sys.executable, "-P", "-m", "lanes.llama_runner")
    assert (Path(launch.environment["PYTHONPATH"]) / "lanes" / "llama_runner.py").is_file()


def test_only_listed_variables_are_passed_on(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABASE_URL",
        "SLOTSERVE_SECRET_KEY",
        "HF_TOKEN",
        "LLAMA_ARG_HOST",
        "LD_PRELOAD",
    ):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    environment = launched().environment
    assert environment["LANG"] == "C.UTF-8"
    assert "secret" not in environment.values()


def test_a_preset_s_variables_pass_the_same_filter_again(program: str) -> None:
    asked = {"OMP_NUM_THREADS": "2", "LLAMA_ARG_HOST": "0.0.0.0", "CUDA_VISIBLE_DEVICES": "7"}
    environment = launched(environment=asked).environment
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert "LLAMA_ARG_HOST" not in environment


def test_a_lane_s_gpus_are_named_by_uuid(program: str) -> None:
    environment = launched(gpu_uuids=("GPU-1", "GPU-2")).environment
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


def test_old_prompts_are_not_kept_unless_the_preset_says_so(program: str) -> None:
    launch = launched("--cache-ram", "512")
    assert launch.environment["LLAMA_ARG_CACHE_RAM"] == "0"
    assert launch.argv[-2:] == ("--cache-ram", "512")


def test_an_unknown_engine_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        engine("nothing-like-it")


def test_the_runner_is_known_as_built_in(program: str, settings: Settings) -> None:
    assert not llama_cpp.is_built_in()
