"""A PostgreSQL of a test's own, which it may stop and start again."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port

OPTIONS = "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where it is, and its port."""

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Its database."""
        return f"postgres://slotserve@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        """One of PostgreSQL's programs, as a user that it works for."""
        argv = [str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", *argv]
        log = self.folder / "log"
        with log.open("ab") as out:
            subprocess.run(argv, check=True, cwd="/", stdout=out, stderr=out)

    def start(self) -> None:
        """It answers when this returns."""
        options = OPTIONS.format(port=self.port, folder=self.folder)
        self.run("pg_ctl", "-w", "-o", options, "start")

    def stop(self, *, mode: str = "immediate") -> None:
        """Each connection is cut."""
        self.run("pg_ctl", "-w", "-m", mode, "stop")


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A new one, empty; the test is skipped where PostgreSQL's programs are not."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("NOT TESTED: PostgreSQL's programs are not in /usr/lib/postgresql")
    with tempfile.TemporaryDirectory(prefix="ss-pg-") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        cluster = Cluster(found[-1], Path(folder), free_port())
        cluster.run("initdb", "-U", "slotserve", "-A", "trust", "--locale=C.UTF-8")
        cluster.start()
        try:
            yield cluster
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                cluster.stop()
