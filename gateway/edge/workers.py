"""The parent of several edge processes on one listening socket.

It alone opens the socket and holds it, so that what waits there for one child is another's when
that one goes. A child's number is the end of its edge id: hosts know it by that, so no two living
children have the same, and a child that died is followed by one with its number.

uvicorn's own workers want an import string and get no name of their own; they are killed when they
answer late, and renewed by ending one before the next serves.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

from gateway.edge.line import NOW, STOP

logger = logging.getLogger(__name__)
FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
STEADY_SECONDS = 60.0
START_SECONDS = 60.0  # for a successor to serve
_NOT_FOR_CHILDREN = {signal.SIGINT, signal.SIGHUP}  # a terminal sends them to all


class Child:
    """One edge process, on a line to its parent (see line.py)."""

    def __init__(self, number: int, argv: tuple[str, ...], listening: socket.socket) -> None:
        self.number = number
        self._line, theirs = socket.socketpair()
        self._line.setblocking(False)
        line = ("--line", str(theirs.fileno()), "--number", str(number))
        with theirs, _blocked(_NOT_FOR_CHILDREN):
            self._process = subprocess.Popen(
                (*argv, *line), pass_fds=(listening.fileno(), theirs.fileno())
            )
        self._serves = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live())

    async def serves(self) -> bool:
        """Wait until it serves; False when it has ended instead."""
        is_serving: bool = await asyncio.shield(self._serves)
        return is_serving

    async def ended(self) -> int:
        """Wait for its end; its exit status, or minus the signal."""
        return await asyncio.shield(self._life)

    def on_end(self, forget: Callable[["Child"], None]) -> None:
        """Whom to call when it has ended."""
        self._life.add_done_callback(lambda _: forget(self))

    def tell(self, word: bytes) -> None:
        """STOP or NOW, if it lives. Not by signals: systemd may send those to it as well."""
        with contextlib.suppress(OSError):
            self._line.send(word)

    def kill(self) -> None:
        """End one that does not hear."""
        self._process.kill()

    async def _live(self) -> int:
        with self._line:
            word = await self._hear()
            self._serves.set_result(bool(word))
            if word:
                await self._hear()
        return await asyncio.to_thread(self._process.wait)  # its line has gone: it is ending

    async def _hear(self) -> bytes:
        try:
            return await asyncio.get_running_loop().sock_recv(self._line, 1)
        except OSError:  # it ended with a word unheard
            return b""


class Place:
    """One worker after another: a dead one is followed, a living one may be renewed."""

    def __init__(self, child: Child, spawn: Callable[[int], Child]) -> None:
        self.child = child
        self._spawn = spawn

    async def keep(self) -> None:
        """Start the worker again whenever it ends by itself, later and later."""
        wait = FIRST_WAIT
        while True:
            child, began = self.child, time.monotonic()
            status = await child.ended()
            if child is not self.child:
                continue  # its successor serves
            if time.monotonic() - began >= STEADY_SECONDS:
                wait = FIRST_WAIT
            words = "worker %d ended (%s); starting it again in %g s"
            logger.warning(words, child.number, _how(status), wait)
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
            if child is self.child:
                self.child = self._spawn(child.number)

    async def renew(self, number: int) -> bool:
        """Let a new worker serve, then the old one finish; False when the new one cannot serve."""
        new = self._spawn(number)
        try:
            async with asyncio.timeout(START_SECONDS):
                is_serving = await new.serves()
        except TimeoutError:
            is_serving = False
            new.kill()
        if is_serving:
            old, self.child = self.child, new  # the old one may have been followed meanwhile
            old.tell(STOP)
            await old.ended()
        return is_serving


class Workers:
    """All children, from the first one's start to the last one's end."""

    def __init__(self, argv: tuple[str, ...], listening: socket.socket, count: int) -> None:
        self._argv = argv
        self._listening = listening
        self._count = count
        self._living: set[Child] = set()
        self._places: list[Place] = []
        self._stop = asyncio.Event()
        self._renew = asyncio.Event()

    async def run(self) -> int:
        """Serve until TERM or INT; HUP renews one worker after another. The exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._renew.set)
        with self._listening:
            status = await self._start()
            if status is None:
                await self._keep()
        return status or 0

    async def _start(self) -> int | None:
        """Start the first alone, so that what hinders all is said once, then the others."""
        first = self._spawn(1)
        if not await first.serves():
            status = await first.ended()
            return None if self._stop.is_set() else abs(status) or 1
        numbers = range(2, self._count + 1) if not self._stop.is_set() else ()
        children = [first, *(self._spawn(number) for number in numbers)]
        self._places = [Place(child, self._spawn) for child in children]
        return None

    async def _keep(self) -> None:
        tasks = [asyncio.create_task(place.keep()) for place in self._places]
        tasks.append(asyncio.create_task(self._renew_when_asked()))
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._living:
            await next(iter(self._living)).ended()

    async def _renew_when_asked(self) -> None:
        while True:
            await self._renew.wait()
            self._renew.clear()
            logger.info("renewing the workers one after another")
            for place in self._places:
                if not await place.renew(self._free_number()):
                    logger.error("a new worker cannot start; the old ones go on")
                    break
            else:
                logger.info("all workers are renewed")

    def _spawn(self, number: int) -> Child:
        child = Child(number, self._argv, self._listening)
        self._living.add(child)
        child.on_end(self._living.discard)
        if self._stop.is_set():
            child.tell(STOP)
        return child

    def _free_number(self) -> int:
        """The lowest that nobody has, nor will have when it is started again."""
        taken = {child.number for child in self._living}
        taken |= {place.child.number for place in self._places}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _end(self) -> None:
        """Have all finish; asked again, they end at once."""
        word = NOW if self._stop.is_set() else STOP
        self._stop.set()
        for child in self._living:
            child.tell(word)


@contextlib.contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[None]:
    """Block signals; a process that is started meanwhile never gets them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
