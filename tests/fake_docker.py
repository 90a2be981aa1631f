"""A stand-in for the Docker Engine's API on a Unix socket, whose containers are real processes.

`python -m tests.fake_docker SOCKET IMAGES`: IMAGES is a JSON file of entry points by image name.
It answers the calls that the `docker` package makes of API 1.47 as the engine does, wrong ones
included: names that are taken, images that are not there, ports that are in use, containers that
have ended. A container has no network or file system of its own: it listens where its port is
published. It outlives who made it, and ends with this program.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

API_VERSION = "1.47"
INSIDE = "0.0.0.0"


class EngineError(Exception):
    """A refusal in the engine's words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


@dataclass
class FakeContainer:
    """One container."""

    name: str
    config: dict[str, Any]
    argv: list[str]
    id: str = field(default_factory=lambda: secrets.token_hex(32))
    process: asyncio.subprocess.Process | None = None
    exit_code: int = 0
    oom_killed: bool = False
    output: bytearray = field(default_factory=bytearray)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.ended.is_set()

    def published(self) -> tuple[str, int]:
        ports = self.config["HostConfig"]["PortBindings"]
        (binding,) = next(iter(ports.values()))
        return binding["HostIp"], int(binding["HostPort"])

    def described(self) -> dict[str, Any]:
        status = "running" if self.is_running else "exited" if self.process else "created"
        state = {
            "Status": status,
            "Running": self.is_running,
            "Pid": self.process.pid if self.process and self.is_running else 0,
            "ExitCode": self.exit_code,
            "OOMKilled": self.oom_killed,
            "Error": "",
        }
        config = {name: self.config[name] for name in ("Labels", "Image", "Env", "Tty")}
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "State": state,
            "Config": config,
            "HostConfig": self.config["HostConfig"],
            "Image": "sha256:" + "0" * 64,
        }

    async def start(self) -> None:
        address, port = self.published()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                raise EngineError(
                    500,
                    "driver failed programming external connectivity on endpoint "
                    f"{self.name}: Bind for {address}:{port} failed: port is already allocated",
                ) from None
        told = [pair.replace(f"={INSIDE}", f"={address}") for pair in self.config["Env"]]
        pairs = (pair.split("=", 1) for pair in told)
        self.process = await asyncio.create_subprocess_exec(
            *[address if word == INSIDE else word for word in self.argv],
            env={"PATH": os.environ["PATH"], **dict(pairs)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.follower = asyncio.create_task(self._follow(self.process))

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(65536):
            async with self.changed:
                self.output += chunk
                self.changed.notify_all()
        code = await process.wait()
        self.exit_code = 128 - code if code < 0 else code
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self.ended.set()
        async with self.changed:
            self.changed.notify_all()

    async def frames(self, follow: bool) -> AsyncIterator[bytes]:
        """Its output in frames of the engine's: kind, three zeros, length, bytes."""
        at = 0
        while True:
            if chunk := bytes(self.output[at:]):
                at += len(chunk)
                yield struct.pack(">BxxxI", 1, len(chunk)) + chunk
            elif self.ended.is_set() or not follow:
                return
            else:
                async with self.changed:
                    if len(self.output) == at and not self.ended.is_set():
                        await self.changed.wait()


class FakeEngine:
    """All containers, and the calls."""

    def __init__(self, images: Path) -> None:
        self._images = images
        self._containers: dict[str, FakeContainer] = {}
        self.app = web.Application(middlewares=[_in_the_engine_s_words])
        route = self.app.router.add_route
        for prefix in ("", f"/v{API_VERSION}"):
            route("GET", f"{prefix}/_ping", self.ping)
            route("GET", f"{prefix}/version", self.version)
            route("GET", f"{prefix}/images/{{image:.+}}/json", self.image)
            route("GET", f"{prefix}/containers/json", self.listed)
            route("POST", f"{prefix}/containers/create", self.create)
            route("GET", f"{prefix}/containers/{{id}}/json", self.inspect)
            route("GET", f"{prefix}/containers/{{id}}/logs", self.logs)
            route("POST", f"{prefix}/containers/{{id}}/start", self.start)
            route("POST", f"{prefix}/containers/{{id}}/kill", self.kill)
            route("POST", f"{prefix}/containers/{{id}}/wait", self.wait)
            route("DELETE", f"{prefix}/containers/{{id}}", self.remove)
            route("POST", f"{prefix}/test/{{id}}/oom", self.oom)

    async def ping(self, _: web.Request) -> web.Response:
        return web.Response(text="OK", headers={"Api-Version": API_VERSION})

    async def version(self, _: web.Request) -> web.Response:
        told = {"ApiVersion": API_VERSION, "MinAPIVersion": "1.24", "Version": "27.3.1"}
        return web.json_response(told)

    async def image(self, request: web.Request) -> web.Response:
        self._entry_point(request.match_info["image"])
        return web.json_response({"Id": "sha256:" + "0" * 64, "RepoTags": []})

    async def listed(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("filters", "{}")).get("label", [])
        is_all = request.query.get("all") in ("1", "true", "True")
        found = [
            {"Id": c.id, "Names": [f"/{c.name}"], "Labels": c.config["Labels"]}
            for c in self._containers.values()
            if (is_all or c.is_running) and _has_labels(c, wanted)
        ]
        return web.json_response(found)

    async def create(self, request: web.Request) -> web.Response:
        config, name = await request.json(), request.query["name"]
        entry_point = self._entry_point(config["Image"])
        taken = next((c for c in self._containers.values() if c.name == name), None)
        if taken:
            words = f'Conflict. The container name "/{name}" is already in use by container'
            raise EngineError(409, f'{words} "{taken.id}".')
        for mount in config["HostConfig"].get("Mounts", ()):
            if mount["Type"] == "bind" and not Path(mount["Source"]).exists():
                words = f"bind source path does not exist: {mount['Source']}"
                raise EngineError(400, f'invalid mount config for type "bind": {words}')
        program = config.get("Entrypoint") or entry_point
        made = FakeContainer(name, config, [*program, *config["Cmd"]])
        self._containers[made.id] = made
        return web.json_response({"Id": made.id, "Warnings": []}, status=201)

    async def inspect(self, request: web.Request) -> web.Response:
        return web.json_response(self._found(request).described())

    async def start(self, request: web.Request) -> web.Response:
        container = self._found(request)
        if container.is_running:
            return web.Response(status=304)
        await container.start()
        return web.Response(status=204)

    async def kill(self, request: web.Request) -> web.Response:
        container = self._found(request)
        if not container.is_running or container.process is None:
            words = f"cannot kill container: {container.id}: container {container.id} "
            raise EngineError(409, f"{words}is not running")
        number = signal.Signals[request.query.get("signal", "SIGKILL")]
        with contextlib.suppress(ProcessLookupError):
            container.process.send_signal(number)
        return web.Response(status=204)

    async def oom(self, request: web.Request) -> web.Response:
        """As the kernel would end it."""
        container = self._found(request)
        container.oom_killed = True
        assert container.process is not None
        container.process.kill()
        return web.Response(status=204)

    async def wait(self, request: web.Request) -> web.StreamResponse:
        container = self._found(request)
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)  # the engine sends the head at once
        await container.ended.wait()
        await answer.write(json.dumps({"StatusCode": container.exit_code}).encode())
        return answer

    async def logs(self, request: web.Request) -> web.StreamResponse:
        container = self._found(request)
        kind = "application/vnd.docker.multiplexed-stream"
        answer = web.StreamResponse(headers={"Content-Type": kind})
        await answer.prepare(request)
        if float(request.query.get("since") or 0) > time.time():
            return answer
        async for frame in container.frames(request.query.get("follow") in ("1", "true", "True")):
            with contextlib.suppress(ConnectionError):  # the reader has left
                await answer.write(frame)
        return answer

    async def remove(self, request: web.Request) -> web.Response:
        container = self._found(request)
        is_forced = request.query.get("force") in ("1", "true", "True")
        if container.is_running and not is_forced:
            words = f'cannot remove container "/{container.name}": container is running: stop the '
            raise EngineError(409, f"{words}container before removing or force remove")
        if container.is_running and container.process is not None:
            container.process.kill()
            await container.ended.wait()
        self._containers.pop(container.id, None)
        container.ended.set()
        return web.Response(status=204)

    async def end(self, _: web.Application) -> None:
        """Containers end with this program."""
        for container in self._containers.values():
            if container.is_running and container.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(container.process.pid, signal.SIGKILL)

    def _entry_point(self, image: str) -> list[str]:
        found: dict[str, list[str]] = json.loads(self._images.read_text())
        if image not in found:
            raise EngineError(404, f"No such image: {image}")
        return found[image]

    def _found(self, request: web.Request) -> FakeContainer:
        wanted = request.match_info["id"]
        for container in self._containers.values():
            if container.id.startswith(wanted) or container.name == wanted:
                return container
        raise EngineError(404, f"No such container: {wanted}")


@web.middleware
async def _in_the_engine_s_words(request: web.Request, handler: Any) -> web.StreamResponse:
    try:
        answer: web.StreamResponse = await handler(request)
    except EngineError as error:
        return web.json_response({"message": error.words}, status=error.status)
    except web.HTTPNotFound:
        return web.json_response({"message": "page not found"}, status=404)
    return answer


def _has_labels(container: FakeContainer, wanted: list[str]) -> bool:
    labels = container.config["Labels"]
    return all(labels.get(name) == value for name, _, value in (w.partition("=") for w in wanted))


def main() -> None:
    """Serve until TERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket")
    parser.add_argument("images", type=Path)
    given = parser.parse_args()
    engine = FakeEngine(given.images)
    engine.app.on_shutdown.append(engine.end)
    web.run_app(engine.app, path=given.socket, print=None, access_log=None, shutdown_timeout=0.1)


if __name__ == "__main__":
    main()
