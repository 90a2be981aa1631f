"""One bin/up from its first line to its last."""

import asyncio
import contextlib
import os
import shutil
import signal

from slotserve.stack.banner import FirstStart, banner, read_report, secrets_made
from slotserve.stack.errors import StartError
from slotserve.stack.health import wait_for_pages, wait_for_valkey
from slotserve.stack.output import Output
from slotserve.stack.parts import ROOT, Product
from slotserve.stack.ports import check_ports
from slotserve.stack.record import Record
from slotserve.stack.supervisor import Supervisor, how_it_ended

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_until_stopped(product: Product) -> int:
    """Bring everything up, wait for a signal, stop everything; answers the exit status."""
    output = Output(product.folder.logs / "up.log")
    try:
        return asyncio.run(Run(product, output).go())
    finally:
        output.close()


class Run:
    """What one bin/up does, in order."""

    def __init__(self, product: Product, output: Output) -> None:
        self._product = product
        self._output = output
        self._record = Record(product.folder.record, product.folder.text("installation-id"))
        self._supervisor = Supervisor(ROOT, self._record, output)
        self._stop = asyncio.Event()
        self._had_servers = False

    async def go(self) -> int:
        """Start, wait, stop. A start that fails is stopped like one that did not."""
        for number in STOPPING:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)  # bin/up holds Ctrl-C back until now
        stopping = asyncio.create_task(self._stop.wait())
        starting = asyncio.create_task(self._start())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        failure = await self._failure(starting)
        if failure is None:
            await stopping
        stopping.cancel()
        is_clean = await self._stop_all()
        if not is_clean:
            self._output.say("model servers may still run: the next bin/up ends them")
        elif not failure:
            self._output.say("everything has stopped")
        if failure:
            self._output.say(failure)
        return 1 if failure or not is_clean else 0

    def _on_signal(self) -> None:
        """The first stops everything in order; the next gives nobody time."""
        if self._stop.is_set():
            self._output.say("stopping at once")
            self._supervisor.hurry()
        else:
            self._output.say("stopping …")
            self._stop.set()

    async def _failure(self, starting: asyncio.Task[None]) -> str | None:
        """Why the start failed; None when it did not. One that still goes on is given up."""
        starting.cancel()
        try:
            await starting
        except StartError as error:
            return str(error)
        except OSError as error:  # a disk that filled up meanwhile
            return f"The start failed: {error}."
        except asyncio.CancelledError:
            return None
        return None

    async def _start(self) -> None:
        product, supervisor = self._product, self._supervisor
        await self._end_leftovers()
        options = product.options
        check_ports({"--web-port": options.web_port, "--gateway-port": options.gateway_port})
        product.socket.unlink(missing_ok=True)
        supervisor.keep(product.valkey())
        await wait_for_valkey(product.socket)
        product.folder.write_secret("redis-url", product.redis_url)
        # One after the other they would cost a lane whose supervisor was killed a second and more.
        report, _ = await asyncio.gather(self._set_up(), self._end_old_servers())
        try:
            await self._start_parts()
        except BaseException:
            self._output.show(secrets_made(report))  # they are not told again
            raise
        else:
            self._output.show(banner(options, report))
        finally:
            product.report.unlink(missing_ok=True)

    async def _end_leftovers(self) -> None:
        """What a killed bin/up left: first the parts, which could start servers."""
        was_killed = self._record.is_unclean
        ended = await asyncio.to_thread(self._record.end_leftovers)
        if not was_killed and not ended:
            return
        self._output.say(f"the last bin/up was killed; ended {ended} of its processes")
        self._had_servers = True

    async def _end_old_servers(self) -> None:
        """Then the servers, before a worker starts new ones."""
        if self._had_servers:
            await self._stop_servers()

    async def _set_up(self) -> FirstStart:
        self._output.say("setting up …")
        status = await self._supervisor.run(self._product.setup())
        os.environ.pop("SLOTSERVE_ADMIN_PASSWORD", None)  # no other part has use for it
        if status:
            how = how_it_ended(status)
            raise StartError(f"Setting up failed ({how}): the lines above say why.")
        return read_report(self._product.report)

    async def _start_parts(self) -> None:
        product = self._product
        self._had_servers = True
        for part in (product.web(), product.edge(), product.worker(), product.beat()):
            self._supervisor.keep(part)
        web = f"{product.options.web_url}/accounts/login/"
        await wait_for_pages({"web": web, "edge": f"{product.options.gateway_url}/health"})

    async def _stop_all(self) -> bool:
        """In order: who sends requests and who starts servers, the servers, the broker."""
        await self._supervisor.stop("web", "edge", "beat", "worker")
        is_clean = not self._had_servers or await self._stop_servers()
        await self._supervisor.stop("valkey")
        if is_clean:
            self._record.clear()
            with contextlib.suppress(OSError):
                shutil.rmtree(self._product.runtime)
        return is_clean

    async def _stop_servers(self) -> bool:
        """By the host's own command; where it fails or its folder was deleted, by their name."""
        product = self._product
        if product.folder.is_kept and await self._supervisor.run(product.stop_servers()) == 0:
            return True
        return await asyncio.to_thread(self._record.end_servers)
