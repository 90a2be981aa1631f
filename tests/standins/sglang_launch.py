"""A stand-in for `python -m sglang.launch_server`; see the package."""

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from tests.standins import sglang_flags
from tests.standins.openai_server import Served, serve


def main() -> None:
    """Read the flags, load, listen; /health says 503 until the warm-up is over."""
    asked = sglang_flags.parse(sys.argv[1:])
    told = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(asked).items()))
    say(f"server_args=ServerArgs({told})")  # with its key, as the real one does
    model = load(asked)
    is_up = threading.Event()
    served = Served(
        name=asked.model_path,
        names=(asked.served_model_name or asked.model_path,),
        max_model_len=int(asked.context_length or 8192),
        api_key=asked.api_key,
        is_guarded=lambda path: not path.startswith(("/health", "/metrics")),
        unauthorized=b'{"error":"Unauthorized"}',
        owned_by="sglang",
        is_up=is_up.is_set,
    )
    warming = threading.Thread(target=warm_up, args=(is_up, model), daemon=True)
    warming.start()
    serve(asked.host, asked.port, served)


def load(asked: argparse.Namespace) -> dict[str, Any]:
    """What the model folder says, or SGLang's words for why it cannot be loaded."""
    try:
        told: dict[str, Any] = json.loads((Path(asked.model_path) / "standin.json").read_text())
    except OSError:
        words = "is not a local folder and is not a valid model identifier"
        say(f"OSError: {asked.model_path} {words} listed on 'https://huggingface.co/models'")
        sys.exit(1)
    time.sleep(float(told.get("load_seconds", 0.3)))
    if told.get("fails"):
        child_fails(str(told["fails"]))
    share, least = float(asked.mem_fraction_static or 0.88), float(told.get("least_share", 0.0))
    if share < least:
        words = "Please try to increase --mem-fraction-static."
        child_fails(f"RuntimeError: Not enough memory. {words}")
    return told


def child_fails(reason: str) -> None:
    """The scheduler says why and the parent kills them all."""
    say(f"Scheduler hit an exception: Traceback (most recent call last):\n{reason}")
    say("Received sigquit from a child process. It usually means the child failed.")
    os.kill(os.getpid(), signal.SIGKILL)


def warm_up(is_up: threading.Event, told: dict[str, Any]) -> None:
    """The first request of its own."""
    time.sleep(float(told.get("warm_up_seconds", 0.1)))
    is_up.set()
    say("The server is fired up and ready to roll!")


def say(line: str) -> None:
    """To its log, at once, with the time in front."""
    sys.stdout.write(f"[2026-07-27 08:54:43] {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
