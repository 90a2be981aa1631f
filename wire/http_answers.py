"""Ways to write an answer that ASGI does not have: fewer writes, and chunks without a task."""

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class AnswerLine:
    """What a request's answer is written to, below uvicorn's `send`, which begins and ends it."""

    def __init__(
        self, cycle: RequestResponseCycle, transport: Transport, flow: FlowControl
    ) -> None:
        self._cycle = cycle
        self._transport = transport
        self._flow = flow

    def hold_head(self) -> None:
        """Keep what is written next until something else is written, or the end.

        Each write is a system call and a packet of its own, and the usual answer is a head and a
        piece of a body.
        """
        self._cycle.transport = HoldingTransport(self._cycle, self._transport)  # type: ignore[assignment]

    def takes_chunks(self) -> bool:
        """Whether a piece of an answer in chunks can be written now."""
        cycle = self._cycle
        return (
            cycle.chunked_encoding is True
            and cycle.response_started
            and not (cycle.response_complete or self._flow.write_paused)
            and not self._transport.is_closing()
        )

    def write_chunk(self, data: bytes) -> None:
        """Write it."""
        self._cycle.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


class HoldingTransport:
    """Stands in for a transport until its second write."""

    def __init__(self, cycle: RequestResponseCycle, transport: Transport) -> None:
        self._cycle = cycle
        self._transport = transport
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        """Whatever else a transport has."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep the first, write both with the second."""
        if self._held:
            self._leave(data)
        else:
            self._held = data

    def close(self) -> None:
        """Write what is kept, and close."""
        self._leave()
        self._transport.close()

    def _leave(self, data: bytes = b"") -> None:
        self._cycle.transport = self._transport
        if self._held or data:
            self._transport.write(self._held + data)
