"""Keeps parts running: starts them, starts them again, stops them in order."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slotserve.stack.output import Output
from slotserve.stack.record import Record

FIRST_WAIT, LONGEST_WAIT = 0.5, 4.0  # a lane whose part was killed is right again in ten seconds
STEADY_SECONDS = 60.0
LAST_WORDS_SECONDS = 1.0
CANNOT_START = 127
CHILD = str(Path(__file__).with_name("child.py"))


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the product."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # beside bin/up's own
    grace: float = 5.0  # seconds from TERM to KILL


class Supervisor:
    """The parts of one bin/up. Each runs in a session of its own, out of Ctrl-C's reach."""

    def __init__(self, root: Path, record: Record, output: Output) -> None:
        self._root = root
        self._record = record
        self._output = output
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._hurry = asyncio.Event()

    def keep(self, part: Part) -> None:
        """Run a part from now on until `stop`; when it ends by itself it is started again."""
        self._keepers[part.name] = asyncio.create_task(self._keep(part))

    async def run(self, part: Part) -> int:
        """Run a part to its end; answers its exit status. Cancelled, it ends the part."""
        process, reads = await self._spawn(part)
        relay = asyncio.create_task(self._relay(reads, part.name))
        try:
            return await process.wait()  # not for its output: a grandchild may hold that open
        finally:
            await self._end(process, part.grace)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(relay, LAST_WORDS_SECONDS)
            self._record.remove(part.name)

    async def stop(self, *names: str) -> None:
        """TERM to these parts at once, KILL to those that outlast their grace."""
        tasks = [self._keepers.pop(name) for name in names if name in self._keepers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hurry(self) -> None:
        """From now on no part is given time to end."""
        self._hurry.set()

    async def _keep(self, part: Part) -> None:
        wait = 0.0
        while True:
            began = time.monotonic()
            status = await self._run_or_say_why(part)
            wait = next_wait(wait, lasted=time.monotonic() - began)
            how = how_it_ended(status)
            self._output.say(f"{part.name} ended ({how}); starting it again in {wait:g} s")
            await asyncio.sleep(wait)

    async def _run_or_say_why(self, part: Part) -> int:
        """`run`, with a line in place of an exception when the program cannot be started."""
        try:
            return await self.run(part)
        except OSError as error:
            self._output.say(f"{part.name} cannot be started: {error}")
            return CANNOT_START

    async def _spawn(self, part: Part) -> tuple[asyncio.subprocess.Process, int]:
        """The started part and the end of a pipe that its output can be read from."""
        reads, writes = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", CHILD, str(os.getpid()), *part.argv),
                cwd=self._root,
                env={**os.environ, **part.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writes,
                stderr=writes,
                start_new_session=True,
            )
        except BaseException:
            os.close(reads)
            raise
        finally:
            os.close(writes)
        self._record.add(part.name, process.pid)
        return process, reads

    async def _relay(self, reads: int, name: str) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb", 0)
        )
        try:
            await self._output.relay(reader, name)
        finally:
            transport.close()

    async def _end(self, process: asyncio.subprocess.Process, grace: float) -> None:
        """TERM, wait, KILL for the whole group; returns when the process is reaped."""
        if process.returncode is not None:
            return
        process.terminate()
        exit_, hurry = asyncio.create_task(process.wait()), asyncio.create_task(self._hurry.wait())
        await asyncio.wait({exit_, hurry}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not exit_.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await exit_


def next_wait(wait: float, *, lasted: float) -> float:
    """Seconds until a part that ended is started again, after the wait before (0: none yet)."""
    if lasted >= STEADY_SECONDS:
        return FIRST_WAIT
    return min(max(FIRST_WAIT, wait * 2), LONGEST_WAIT)


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
