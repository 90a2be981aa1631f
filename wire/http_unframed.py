"""Answers to clients of HTTP/1.0 (RFC 9112, 6.3): uvicorn would send them chunks all the same.

Such a client sees no difference between an answer that was cut and a whole one.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class UnframedCycle(RequestResponseCycle):
    """A request of HTTP/1.0 and its answer: a body of unknown length ends with the connection."""

    _is_unframed = False

    @classmethod
    def take_over(cls, cycle: RequestResponseCycle) -> None:
        """Make it one of these, before anything has been received or sent."""
        cycle.__class__ = cls
        cycle.waiting_for_100_continue = False  # RFC 9110, 10.1.1: to be ignored

    async def send(self, message: Any) -> None:
        """Without a length the head tells none, and each piece is all that is expected."""
        if message["type"] == "http.response.start":
            if all(name.lower() != b"content-length" for name, _ in message["headers"]):
                self._is_unframed, self.chunked_encoding = True, False
        elif self._is_unframed:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)
