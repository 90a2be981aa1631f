"""Chat rooms, by Apprise. Its addresses can reach files and hosts of the installation, so they are
administrators' to give, of those services alone that talk to a network, and connected to as
webhooks are: no private addresses, and no redirects.

Apprise waits as long as a server talks. So it is asked in a thread that is left alone after a
while; whether the room was told is not known then, and it is not told again.
"""

from concurrent.futures import Future
from threading import Thread

import apprise

from lanes import clock
from notices.events import Channel
from notices.models import Delivery
from notices.outbox import SENT, Outcome, in_turn, refused, send_all, waiting
from notices.posting import PostError, guarded
from notices.sealed import opened

LONGEST_SECONDS = 20.0
SCHEMES = frozenset(
    ("discord", "gchat", "gotify", "gotifys", "guilded", "matrix", "matrixs", "mmost", "mmosts",
     "msteams", "ntfy", "ntfys", "pover", "rocket", "rockets", "signal", "signals", "slack",
     "tgram", "twist", "workflows", "wxteams", "zulip")
)  # fmt: skip


def send_chats() -> int:
    """Tell chat rooms what is due, in turn; how many were told."""
    return in_turn(
        Channel.CHAT, lambda: send_all(waiting(Channel.CHAT, clock.database_now()), send)
    )


def scheme_of(url: str) -> str:
    """The service that an address names."""
    return url.partition("://")[0].lower()


def is_usable(url: str) -> bool:
    """Whether Apprise knows such a room, at a service that is allowed. Nothing is asked for."""
    return _room(url) is not None


def send(delivery: Delivery) -> Outcome:
    """Tell one."""
    assert delivery.endpoint is not None  # noqa: S101 - a chat is always one's
    url = opened(delivery.endpoint.sealed_url)
    room = _room(url) if url else None
    if room is None:
        return Outcome(Delivery.State.FAILED, "its address can no longer be used: add it anew")
    told: Future[bool] = Future()
    Thread(target=_tell, args=(room, _text(delivery), told), daemon=True).start()
    try:
        return SENT if told.result(LONGEST_SECONDS) else refused("the service did not take it")
    except TimeoutError:
        return Outcome(Delivery.State.IN_DOUBT, "the service did not answer in time")
    except PostError as error:
        return refused(str(error))
    except Exception as error:  # noqa: BLE001 - whatever one of a hundred plugins raises
        return refused(type(error).__name__)  # its text may hold the address


def _room(url: str) -> apprise.NotifyBase | None:
    """Of an address; None where there is none at a service that is allowed."""
    if scheme_of(url) not in SCHEMES:
        return None
    asset = apprise.AppriseAsset(http_redirects=False)
    room = apprise.Apprise.instantiate(url, asset=asset)
    if room is not None:
        room.redirects = False  # whatever the address asks for
    return room


def _tell(room: apprise.NotifyBase, text: str, told: "Future[bool]") -> None:
    try:
        with guarded():
            is_told = bool(room.notify(body=text, title="SlotServe"))
        told.set_result(is_told)
    except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
        told.set_exception(error)


def _text(delivery: Delivery) -> str:
    data = delivery.payload.get("data", {})
    lines = (data.get("sentence"), data.get("advice"), data.get("url"))
    return "\n".join(line for line in lines if line)
