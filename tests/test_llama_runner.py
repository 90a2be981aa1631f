"""The engine's servers for real: the built-in runner, and any other llama-server that is set."""

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from lanes import probing
from lanes.engines.base import Launch, ServerFacts, ServerSpec
from lanes.engines.llama_cpp import SOURCE_FOLDER
from lanes.engines.registry import engine
from lanes.failures.causes import Evidence
from lanes.failures.reading import read_cause
from tests.ports import free_port

pytestmark = pytest.mark.process
KEY = "the-server-s-own-key"
LLAMA = engine("llama.cpp")
HEADERS = {"Authorization": f"Bearer {KEY}"}
Serve = Callable[..., "Served"]


class Served:
    """A started server with its address and log."""

    def __init__(self, launch: Launch, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                launch.argv, env=dict(launch.environment), stdout=output, stderr=output, cwd="/"
            )

    def statuses_until_healthy(self) -> list[int]:
        """What /health answered, in its order, up to the first 200."""
        seen: list[int] = []
        deadline = time.monotonic() + 60
        # Without TLS there are no certificates to read, which takes 50 ms each time.
        with httpx.Client(timeout=1, verify=False) as client:
            while time.monotonic() < deadline and self.process.poll() is None:
                time.sleep(0.005)
                with contextlib.suppress(httpx.TransportError):
                    seen.append(client.get(f"{self.url}/health").status_code)
                if 200 in seen:
                    return [status for status, _ in itertools.groupby(seen)]
        raise AssertionError(f"never healthy: {self.log.read_text()[-2000:]}")

    def reason(self) -> str:
        """What the adapter says of its end, once it has ended."""
        status = self.process.wait(timeout=60)
        return read_cause(Evidence(self.log.read_text(), status), LLAMA.failure_words).sentence


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers; what still runs at the test's end is killed."""
    started: list[Served] = []

    def start(model: Path, *arguments: str, port: int = 0) -> Served:
        port = port or free_port()
        spec = ServerSpec(str(model), "smol", arguments, {}, "127.0.0.1", port, KEY)
        started.append(Served(LLAMA.launch(spec), port, tmp_path / f"{len(started)}.log"))
        return started[-1]

    yield start
    for served in started:
        served.process.kill()
        served.process.wait()


@pytest.fixture
def ready(serve: Serve, demo_model: Path) -> Served:
    """A healthy server of the demo model."""
    served = serve(demo_model, "-c", "1024", "-np", "2", "--no-warmup")
    served.statuses_until_healthy()
    return served


def test_health_turns_from_503_to_200_without_a_key(serve: Serve, demo_model: Path) -> None:
    served = serve(demo_model, "-c", "1024")
    assert served.statuses_until_healthy() in ([503, 200], [200])


def test_the_protected_path_wants_the_key_and_the_key_is_not_in_argv(ready: Served) -> None:
    path = f"{ready.url}{LLAMA.protected_path}"
    assert httpx.get(path, timeout=60).status_code == 401
    assert httpx.get(path, headers={"Authorization": "Bearer other"}, timeout=60).status_code == 401
    assert httpx.get(path, headers=HEADERS, timeout=60).status_code == 200
    assert KEY not in " ".join(psutil.Process(ready.process.pid).cmdline())


def test_the_arguments_are_in_force(ready: Served) -> None:
    props = httpx.get(f"{ready.url}/props", headers=HEADERS, timeout=60).json()
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert props["model_alias"] == "smol"


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ((), ServerFacts(4, 1024, ("completion",))),  # both servers' own default: they share it
        (("-np", "2"), ServerFacts(2, 512, ("completion",))),
        (("-np", "1", "--embedding"), ServerFacts(1, 1024, ("embedding",))),
    ],
)
def test_a_ready_server_tells_its_slots_and_its_context(
    serve: Serve, demo_model: Path, arguments: tuple[str, ...], facts: ServerFacts
) -> None:
    served = serve(demo_model, "-c", "1024", "--no-warmup", *arguments)
    served.statuses_until_healthy()
    endpoint = probing.Endpoint(served.process.pid, 0, "127.0.0.1", served.port, KEY)
    answer = probing.fetch(endpoint, str(LLAMA.facts_path))
    assert answer is not None
    assert LLAMA.facts(arguments, answer) == facts


def test_it_listens_on_the_given_address_alone(ready: Served) -> None:
    sockets = psutil.Process(ready.process.pid).net_connections(kind="inet")
    listening = {s.laddr for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", ready.port)}


def test_a_chat_streams_text_token_by_token(ready: Served) -> None:
    wish = {
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 12,
        "stream": True,
    }
    address = f"{ready.url}/v1/chat/completions"
    with httpx.stream("POST", address, json=wish, headers=HEADERS, timeout=60) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    pieces = [delta["content"] for delta in deltas if delta.get("content")]
    assert len(pieces) > 3
    assert "".join(pieces).strip()


def test_term_ends_it_also_while_it_loads(serve: Serve, demo_model: Path) -> None:
    served = serve(demo_model, "-c", "1024")
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=20) in {-signal.SIGTERM, 0}


def test_term_ends_it_when_it_is_idle(ready: Served) -> None:
    ready.process.send_signal(signal.SIGTERM)
    assert ready.process.wait(timeout=20) in {-signal.SIGTERM, 0}


def test_an_embedding_server_answers_with_vectors(serve: Serve, demo_model: Path) -> None:
    served = serve(demo_model, "-c", "512", "--embeddings", "--pooling", "mean", "--no-warmup")
    served.statuses_until_healthy()
    wish = {"input": "cat", "model": "smol"}
    answer = httpx.post(f"{served.url}/v1/embeddings", json=wish, headers=HEADERS, timeout=60)
    assert len(answer.json()["data"][0]["embedding"]) == 576


def test_a_missing_file_is_named(serve: Serve, tmp_path: Path) -> None:
    served = serve(tmp_path / "none.gguf")
    assert served.reason() == "The model file none.gguf does not exist on this host."


@pytest.mark.parametrize(
    ("content", "words"), [(b"not a model", "not a GGUF file"), (b"", "not a GGUF file")]
)
def test_another_kind_of_file_is_named(
    serve: Serve, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "other.gguf"
    file.write_bytes(content)
    assert words in serve(file).reason()


def test_a_cut_off_file_is_named(serve: Serve, tmp_path: Path, demo_model: Path) -> None:
    file = tmp_path / "half.gguf"
    with demo_model.open("rb") as whole:
        file.write_bytes(whole.read(10_000_000))
    assert serve(file).reason() == "The model file is cut off or damaged."


def test_an_unknown_argument_is_named(serve: Serve, demo_model: Path) -> None:
    assert (
        "does not know the argument --no-such-flag" in serve(demo_model, "--no-such-flag").reason()
    )


def test_a_wrong_value_is_named(serve: Serve, demo_model: Path) -> None:
    assert "value of the argument -c" in serve(demo_model, "-c", "many").reason()


def test_a_busy_port_is_named(serve: Serve, ready: Served, demo_model: Path) -> None:
    second = serve(demo_model, port=ready.port)
    assert f"Port {ready.port} of 127.0.0.1 is in use" in second.reason()


def test_memory_that_does_not_suffice_is_named(serve: Serve, demo_model: Path) -> None:
    arguments = ("-c", "20000000", "-np", "1", "-fit", "off", "--no-warmup", "-fa", "on")
    assert "ran out of memory" in serve(demo_model, *arguments).reason()


def test_the_runner_s_modules_load_no_django() -> None:
    code = "import sys, lanes.llama_runner; sys.exit('django' in sys.modules)"
    environment = {"PYTHONPATH": str(SOURCE_FOLDER)}
    argv = [sys.executable, "-P", "-c", code]
    subprocess.run(argv, env=environment, cwd="/", check=True, timeout=120)
