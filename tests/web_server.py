"""The web process inside the test's own: uvicorn, on a loop in a thread, as in production."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from django.test.utils import modify_settings

from slotserve.asgi import application
from tests import fleet
from wire.http_protocol import GuardedProtocol

HOST = "127.0.0.1"


class WebServer:
    """As pytest-django's LiveServer, whose place it takes: that one cannot stream."""

    def __init__(self) -> None:
        config = uvicorn.Config(
            application,
            host=HOST,
            port=0,
            lifespan="off",
            log_level="error",
            http=GuardedProtocol,
            timeout_graceful_shutdown=2,
        )
        self.server = uvicorn.Server(config)
        self._live_server_modified_settings = modify_settings(ALLOWED_HOSTS={"append": HOST})
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        fleet.until(lambda: self.server.started)

    @property
    def url(self) -> str:
        """Its address."""
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://{HOST}:{port}"

    @property
    def is_answering(self) -> bool:
        """Whether it still works for somebody."""
        return bool(self.server.server_state.tasks)

    def stop(self) -> None:
        """As by TERM."""
        self.server.should_exit = True
        self._thread.join(60)
        for thread in threading.enumerate():  # they close their database connections, then end
            if thread.name.startswith(("ThreadPoolExecutor", "live")):
                thread.join(2)


running: list[WebServer] = []


@contextmanager
def web_server() -> Iterator[WebServer]:
    """One that is stopped at the end."""
    server = WebServer()
    running.append(server)
    try:
        yield server
    finally:
        running.remove(server)
        server.stop()
