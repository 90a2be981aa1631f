"""The Docker Engine: connecting, creating one container, and removing what is left of a lane.

No Django: the attendant uses it. What goes wrong is a ContainerError with a sentence for a person.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig, Mount

from lanes.containers.order import ContainerOrder
from wire.words import said, together

CALL_SECONDS = 30
ENDLESS_SECONDS = 20 * 86_400  # for waiting and following; as much as poll takes
REMOVE_SECONDS = 30.0  # until a container that was killed is gone
_POLL_SECONDS = 0.05
CALLS_THAT_FAIL = (DockerException, requests.RequestException)


class ContainerError(Exception):
    """What is wrong and what to do: `words`, of `wire.words.said`."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


@contextmanager
def connected(socket: str, seconds: int = CALL_SECONDS) -> Iterator[docker.DockerClient]:
    """A connection to the engine at this socket's path; seconds are for one call."""
    if not is_socket(socket):
        raise _no_answer(socket, said("there is no such socket"))
    try:
        client = _client(socket, _api_version(socket, seconds), seconds)
    except CALLS_THAT_FAIL as error:
        raise _no_answer(socket, _short(error)) from error
    try:
        yield client
    finally:
        client.close()


def _api_version(socket: str, seconds: int) -> str:
    """The engine's. The client that asks by itself leaves its connection open when it gets none."""
    with contextlib.closing(_client(socket, DEFAULT_DOCKER_API_VERSION, seconds)) as client:
        return str(client.version(api_version=False)["ApiVersion"])


def _client(socket: str, version: str, seconds: int) -> docker.DockerClient:
    return docker.DockerClient(base_url=f"unix://{socket}", version=version, timeout=seconds)


def is_socket(path: str) -> bool:
    """Whether there is a socket that we may reach."""
    try:
        return Path(path).is_socket()
    except OSError:
        return False


def create(client: docker.DockerClient, order: ContainerOrder) -> Container:
    """The container, not yet started. Nothing is downloaded."""
    try:
        return client.containers.create(
            order.image,
            list(order.command),
            entrypoint=list(order.entry_point) or None,
            name=order.name,
            environment=dict(order.environment),
            labels=dict(order.labels),
            ports={f"{order.port}/tcp": (order.address, order.port)},
            mounts=_mounts(order),
            device_requests=_gpus(order.gpu_uuids),
            shm_size=order.shm_bytes,
            init=True,  # zombies of its workers are reaped, and TERM arrives
            detach=True,
            stdin_open=False,
            tty=False,
            security_opt=["no-new-privileges"],
            cap_drop=["NET_RAW", "MKNOD"],
            log_config=LogConfig(type="json-file", config={"max-size": "8m", "max-file": "2"}),
        )
    except ImageNotFound as error:
        words = "the image {image} is not on this host: docker pull {image}"
        raise ContainerError(said(words, image=order.image)) from error
    except CALLS_THAT_FAIL as error:
        words = said("the container could not be made: {why}", why=_short(error))
        raise ContainerError(words) from error


def start(container: Container) -> None:
    """Start it, or say why it does not start."""
    try:
        container.start()
    except CALLS_THAT_FAIL as error:
        words = said("the container could not be started: {why}", why=_short(error))
        raise ContainerError(words) from error


def ours(client: docker.DockerClient, filters: Mapping[str, list[str]]) -> list[Container]:
    """Our containers, living or not."""
    try:
        return list(client.containers.list(all=True, filters={**filters}, ignore_removed=True))
    except CALLS_THAT_FAIL as error:
        words = said("the containers could not be listed: {why}", why=_short(error))
        raise ContainerError(words) from error


def remove(containers: Sequence[Container], seconds: float = REMOVE_SECONDS) -> None:
    """Kill and remove them, and wait until they are gone; ContainerError when some stay."""
    deadline = time.monotonic() + seconds
    stuck = [trouble for container in containers if (trouble := _remove_one(container, deadline))]
    if stuck:
        raise ContainerError(together("; ", stuck))


def _remove_one(container: Container, deadline: float) -> str:
    """Why it stays; empty: it is gone. It is tried once at least."""
    while True:
        try:
            container.remove(force=True, v=True)
        except NotFound:
            return ""
        except CALLS_THAT_FAIL as error:  # such as: its removal is under way
            if time.monotonic() > deadline:
                return said(
                    "the container {container} cannot be removed: {why}",
                    container=str(container.name),
                    why=_short(error),
                )
        time.sleep(_POLL_SECONDS)


def send(container: Container, signal_name: str) -> None:
    """Send a signal to its first process, which hands it on; nothing when it has ended."""
    with contextlib.suppress(*CALLS_THAT_FAIL):  # waiting tells of an end; a next signal comes
        container.kill(signal=signal_name)


def _no_answer(socket: str, reason: str) -> ContainerError:
    words = said(
        "the Docker Engine does not answer at {socket} ({reason}): start it, let this user reach "
        "its socket, or set SLOTSERVE_DOCKER_SOCKET",
        socket=socket,
        reason=reason,
    )
    return ContainerError(words)


def _mounts(order: ContainerOrder) -> list[Mount]:
    read_only = [Mount(path, path, type="bind", read_only=True) for path in order.read_only]
    return [*read_only, *(Mount(path, path, type="bind") for path in order.writable)]


def _gpus(uuids: Sequence[str]) -> list[DeviceRequest]:
    if not uuids:
        return []
    return [DeviceRequest(device_ids=list(uuids), capabilities=[["gpu"]])]


def _short(error: Exception) -> str:
    """The engine's own words, without the address of the call."""
    words = error.explanation if isinstance(error, APIError) and error.explanation else str(error)
    return " ".join(str(words).split())[:400]
