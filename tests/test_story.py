"""The whole product through bin/up itself, everything real: a slot is booked, used, given back."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
import pytest
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from slotserve.stack.parts import ROOT
from tests.running import Up, clean_environment, eventually

pytestmark = [pytest.mark.story, pytest.mark.process]
BANNER = "SlotServe runs."
FIRST_START_SECONDS = 300.0  # the demo model is fetched
LOAD_SECONDS = 90.0
QUESTION: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "Say one sentence about the sea."}
]


@dataclass(frozen=True, slots=True)
class Member:
    """A person with a token: books through REST, calls models with OpenAI's own client."""

    rest: httpx.Client
    models: openai.OpenAI

    def book(self, **wish: Any) -> httpx.Response:
        """Ask for a slot on the demo lane from now on."""
        return self.rest.post("bookings/", json={"lane": "demo", **wish})

    def lane(self) -> dict[str, Any]:
        """The demo lane as REST shows it."""
        answer = self.rest.get("lanes/demo/")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def runs(self, preset: str | None) -> Callable[[], bool]:
        """Whether the lane has come to this: a ready preset, or no server."""

        def ask() -> bool:
            runtime = self.lane()["runtime"]
            if preset is None:
                return bool(runtime["phase"] == "stopped")
            return (runtime["phase"], runtime["preset"]) == ("ready", preset)

        return ask

    def streamed(self, model: str) -> str:
        """The text of a streamed chat; more than one piece must arrive."""
        stream = self.models.chat.completions.create(
            model=model,
            messages=QUESTION,
            max_tokens=24,
            stream=True,
        )
        pieces = [
            chunk.choices[0].delta.content
            for chunk in stream
            if isinstance(chunk, ChatCompletionChunk) and chunk.choices
        ]
        text = [piece for piece in pieces if piece]
        assert len(text) > 1
        return "".join(text)

    def served(self, model: str) -> str:
        """The text of a streamed chat, asking again while told to: edges learn of a load's end
        a moment after REST does."""
        return eventually(lambda: self._unless_told_to_wait(model), f"an answer of {model}")

    def _unless_told_to_wait(self, model: str) -> str:
        try:
            return self.streamed(model)
        except openai.InternalServerError as refusal:
            if refusal.code in {"model_loading", "model_switching"}:
                return ""
            raise

    def refusal(self, model: str = "auto") -> openai.APIStatusError:
        """How the gateway refuses this person now."""
        with pytest.raises(openai.APIStatusError) as refused:
            self.streamed(model)
        return refused.value


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """bin/up on a fresh data folder, with the environment that runs these tests."""
    data = tmp_path_factory.mktemp("story") / "data"
    product = Up(data, sys.executable, str(ROOT / "bin" / "up"), SLOTSERVE_VENV=sys.prefix)
    yield product
    product.end()


@pytest.fixture
def members(up: Up) -> Iterator[Callable[[str], Member]]:
    """Makes members; their connections are closed at the end."""
    opened: list[httpx.Client | openai.OpenAI] = []

    def join(name: str) -> Member:
        token = manage(up.data, "create_token", name, "--create-user").strip()
        web, gateway = (f"http://127.0.0.1:{port}" for port in up.ports)
        headers = {"Authorization": f"Bearer {token}"}
        rest = httpx.Client(base_url=f"{web}/api/v1/", headers=headers, timeout=60)
        models = openai.OpenAI(base_url=f"{gateway}/v1", api_key=token, max_retries=0, timeout=60)
        opened.extend([rest, models])
        return Member(rest, models)

    yield join
    for client in opened:
        client.close()


def manage(data: Path, *arguments: str) -> str:
    """What `manage.py` of the running installation prints."""
    environment = clean_environment(SLOTSERVE_DATA=str(data))
    argv = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout


def from_now(seconds: float) -> str:
    """A moment as REST takes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def code_of(refusal: openai.APIStatusError) -> tuple[int, str | None]:
    """Status and code of a refusal; each must say when to come again."""
    assert int(refusal.response.headers["retry-after"]) >= 1
    return refusal.status_code, refusal.code


def test_the_story(up: Up, members: Callable[[str], Member]) -> None:
    up.start().wait_for(BANNER, FIRST_START_SECONDS)
    owner, other = members("owner"), members("other")

    booked = owner.book(kind="model", preset="smollm2-long", end=from_now(3600))
    assert booked.status_code == 201, booked.text
    eventually(owner.runs("smollm2-long"), "the booked model", LOAD_SECONDS)
    assert re.search(r"[a-z]{3}", owner.served("smollm2-long"))

    assert code_of(other.refusal()) == (403, "gpu_reserved")
    refused = other.book(kind="model", preset="smollm2", end=from_now(1800))
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_taken")
    in_the_way = datetime.fromisoformat(refused.json()["conflicts"][0]["end"])
    nearest = datetime.fromisoformat(refused.json()["nearest"][0]["start"])
    assert in_the_way == nearest == datetime.fromisoformat(booked.json()["end"])

    released = owner.rest.post(f"bookings/{booked.json()['id']}/release/")
    assert released.status_code == 200, released.text
    eventually(other.runs("smollm2"), "the default", LOAD_SECONDS)
    assert other.served("auto")

    whole = owner.book(kind="gpu", end=from_now(3600))
    assert whole.status_code == 201, whole.text
    eventually(owner.runs(None), "no server", LOAD_SECONDS)
    assert code_of(owner.refusal()) == (503, "gpu_exclusive")
    assert code_of(other.refusal()) == (403, "gpu_reserved")

    sooner = owner.rest.patch(f"bookings/{whole.json()['id']}/", json={"end": from_now(3)})
    assert sooner.status_code == 200, sooner.text
    eventually(owner.runs("smollm2"), "the default after the slot's end", LOAD_SECONDS)
    assert other.served("smollm2")
    assert up.stop(signal.SIGINT, seconds=30) == 0
    assert up.processes() == []


def test_a_second_start_keeps_everything_and_outlives_a_kill(
    up: Up, members: Callable[[str], Member]
) -> None:
    up.start().wait_for(BANNER, FIRST_START_SECONDS)
    up.stop()
    up.start().wait_for(BANNER, FIRST_START_SECONDS)
    assert "password" not in up.screen
    assert "manage.py create_token admin" in up.screen
    member = members("owner")
    eventually(member.runs("smollm2"), "the default", LOAD_SECONDS)
    server = model_server(up)

    up.send(signal.SIGKILL)
    up.status()
    up.start().wait_for(BANNER, 60)
    assert "the last bin/up was killed" in up.screen
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    eventually(member.runs("smollm2"), "the default again", LOAD_SECONDS)
    assert up.stop(seconds=30) == 0
    assert up.processes() == []


def model_server(up: Up) -> psutil.Process:
    """The one process that has a model open."""
    (server,) = [p for p in up.processes() if "--port" in p.cmdline() and is_of_engine(p)]
    return server


def is_of_engine(process: psutil.Process) -> bool:
    """Whether its command line names a GGUF file."""
    return any(word.endswith(".gguf") for word in process.cmdline())
