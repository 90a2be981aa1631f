"""A stand-in for `vllm serve`: `python vllm_serve.py serve MODEL …`; see the package."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from tests.standins import vllm_flags
from tests.standins.openai_server import Served, serve


def main() -> None:
    """Read the flags, load, listen."""
    if sys.argv[1:2] != ["serve"]:
        sys.exit("vllm: error: invalid choice (choose from chat, complete, serve, bench)")
    asked = vllm_flags.parse(sys.argv[2:])
    model = asked.model_tag or asked.model
    say(f"(APIServer pid={os.getpid()}) INFO 06-16 20:55:14 [api_server.py:1371] vLLM API server")
    told = settings_of(model)
    time.sleep(float(told.get("load_seconds", 0.3)))
    length = check_memory(asked, told)
    names = tuple(asked.served_model_name or [model])
    keys = asked.api_key or [os.environ.get("VLLM_API_KEY")]
    served = Served(
        name=model,
        names=names,
        max_model_len=length,
        api_key=keys[0],
        is_guarded=lambda path: path.startswith(("/v1", "/v2", "/inference")),
        unauthorized=b'{"error":"Unauthorized"}',
        checks_names=os.environ.get("VLLM_SKIP_MODEL_NAME_VALIDATION", "0") not in ("1", "true"),
    )
    say(f"(APIServer pid={os.getpid()}) INFO:     Application startup complete.")
    serve(asked.host or "0.0.0.0", asked.port, served)


def settings_of(model: str) -> dict[str, Any]:
    """What the model folder says; without one vLLM would look for it at Hugging Face."""
    try:
        told: dict[str, Any] = json.loads((Path(model) / "standin.json").read_text())
    except OSError:
        fail(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
            f"  Value error, Invalid repository ID or local directory specified: '{model}'.",
        )
    if told.get("fails"):
        fail(*str(told["fails"]).splitlines())
    return told


def check_memory(asked: Any, told: dict[str, Any]) -> int:
    """The context that fits, or vLLM's words for why none does."""
    free, total = float(told.get("free_gib", 23.0)), float(told.get("total_gib", 24.0))
    share = float(asked.gpu_memory_utilization or 0.9)
    if free < total * share:
        engine_fails(
            f"ValueError: Free memory on device cuda:0 ({free:g}/{total:g} GiB) on startup is less "
            f"than desired GPU memory utilization ({share:g}, {total * share:.2f} GiB). Decrease "
            "GPU memory utilization or reduce GPU memory used by other processes."
        )
    length, room = int(asked.max_model_len or 8192), int(told.get("kv_tokens", 100_000))
    if length > room:
        engine_fails(
            f"ValueError: To serve at least one request with the models's max seq len ({length}), "
            f"({length / 2**13:.2f} GiB KV cache is needed, which is larger than the available KV "
            f"cache memory ({room / 2**13:.2f} GiB). Based on the available memory, the estimated "
            f"maximum model length is {room}. Try increasing `gpu_memory_utilization` or "
            "decreasing `max_model_len` when initializing the engine."
        )
    return length


def engine_fails(reason: str) -> NoReturn:
    """The engine's process says why, then the API server that it died."""
    head = f"(EngineCore_DP0 pid={os.getpid()}) ERROR 06-16 20:55:14 [core.py:718]"
    say(f"{head} EngineCore failed to start.")
    say(f"{head} Traceback (most recent call last):")
    say(f"{head} {reason}")
    fail(
        "RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}"
    )


def fail(*lines: str) -> NoReturn:
    """A traceback of the API server."""
    for line in ("Traceback (most recent call last):", *lines):
        say(f"(APIServer pid={os.getpid()}) {line}")
    sys.exit(1)


def say(line: str) -> None:
    """To its log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
