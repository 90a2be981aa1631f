"""What a model server says in place of a stream, when the client's 200 is out already: a refusal
in its own words, for an event of the stream."""

import time

import orjson

from gateway.edge.asking import ServerAnswer
from gateway.edge.exchange import Exchange
from gateway.edge.refusals import EdgeRefusal

_MOST_BYTES = 65_536
_MOST_WORDS = 500


def is_stream(response: ServerAnswer) -> bool:
    """Whether it goes on where the comments end."""
    return response.status == 200 and response.kind.startswith(b"text/event-stream")


async def retell(response: ServerAnswer, exchange: Exchange) -> EdgeRefusal:
    """The server's own status and words, as far as they are needed."""
    body = b""
    async for chunk in response.content.iter_any():
        exchange.waiting_since = time.monotonic()
        body += chunk
        if len(body) >= _MOST_BYTES:
            break
    words = server_words(body[:_MOST_BYTES])
    is_callers = 400 <= response.status < 500
    return EdgeRefusal(
        response.status if response.status >= 400 else 502,
        "upstream_refused" if is_callers else "upstream_failed",
        f"the model server answered {response.status} in place of a stream: {words}",
    )


def server_words(body: bytes) -> str:
    """The message of an error in any of the usual shapes, else the text; bounded."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return text[:_MOST_WORDS] or "nothing"
    error = value.get("error", value) if isinstance(value, dict) else value
    message = error.get("message") if isinstance(error, dict) else error
    return (message if isinstance(message, str) else text)[:_MOST_WORDS]
