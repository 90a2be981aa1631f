"""Usage records as edges report them."""

from dataclasses import replace

from tests import builders
from wire.usage import Usage

ARRIVAL = builders.NOON.timestamp()
CALL = Usage(
    request_id="r-1",
    at=ARRIVAL,
    route="/v1/chat/completions",
    status=200,
    duration_ms=812.5,
    first_byte_ms=40.0,
    preset="qwen",
    bytes_in=10,
    bytes_out=2000,
    queue_ms=250.5,
    prompt_tokens=5,
    cached_tokens=3,
    is_estimated=True,
    completion_tokens=60,
)


def many(count: int) -> list[Usage]:
    """So many, each of a request of its own."""
    return [replace(CALL, request_id=f"r-{number}") for number in range(count)]
