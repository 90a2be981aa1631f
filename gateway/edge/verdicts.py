"""The sentences of routing: each refusal with its code, its words and its Retry-After. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from gateway.edge.refusals import EdgeRefusal, moment, refuse
from gateway.edge.table import Closure, Grant, LaneRoute, Table, Upstream

LONGEST_NAME = 100  # of what a caller sent, when a sentence repeats it
_SOON, _LATEST = 2.0, 60.0  # seconds until a busy lane may be asked again
_OPEN_END = 3600.0  # seconds until maintenance without an end may be asked about again
_HELPFUL = MappingProxyType(
    {
        "model_not_found": 0,
        "model_loading": 1,
        "model_switching": 2,
        "gpu_exclusive": 3,
        "gpu_reserved": 4,
        "lane_maintenance": 5,
        "model_failed": 6,
        "host_unreachable": 7,
        "model_not_loaded": 8,
        "no_model_loaded": 9,
    }
)


def no_key() -> EdgeRefusal:
    """401: nothing was shown."""
    words = "no API key was sent; send a token as 'Authorization: Bearer ss_…' or 'x-api-key'."
    return refuse("invalid_api_key", words)


def bad_key() -> EdgeRefusal:
    """401: wrong or revoked."""
    return refuse("invalid_api_key", "this API key is not known; it is mistyped or revoked.")


def expired_key(expired_at: float) -> EdgeRefusal:
    """401: over by the edge's clock."""
    return refuse("invalid_api_key", f"this API key expired at {moment(expired_at)}.")


def early_key(starts_at: float) -> EdgeRefusal:
    """401: made for a slot that is yet to begin."""
    words = f"this API key is for a slot that begins at {moment(starts_at)}."
    return refuse("invalid_api_key", words)


def key_without_scope() -> EdgeRefusal:
    """401: a token for something else."""
    words = "this API key may not call models; make one with the scope 'inference'."
    return refuse("invalid_api_key", words)


def gateway_starting() -> EdgeRefusal:
    """503: no table yet, so nothing can be said of any key."""
    return refuse("gateway_starting", "it has just started and knows no lanes yet.", 2)


def gateway_stale(age: float) -> EdgeRefusal:
    """503: what is known is too old to admit anybody but holders of a booking."""
    words = f"it has had no word from SlotServe for {age:.0f} s and serves bookings only."
    return refuse("gateway_stale", words, 10)


def clock_was_set() -> EdgeRefusal:
    """503: until Valkey has told the time, which takes a second, nobody knows whose slot it is."""
    words = "the clock of its machine has been set, and it is asking for the time; ask again."
    return refuse("gateway_stale", words, 1)


def no_lane(slug: str | None) -> EdgeRefusal:
    """404 for a lane that is not there for this key; 503 when there is none at all."""
    if slug is None:
        return refuse("no_model_loaded", "there is no lane that this API key may use.", 60)
    return refuse("lane_not_found", f"there is no lane '{_cut(slug)}' that this API key may use.")


def gpu_reserved(lane: LaneRoute, grant: Grant, now: float) -> EdgeRefusal:
    """403: somebody else's slot."""
    words = f"lane '{lane.slug}' is reserved by another member until {moment(grant.end)}."
    return refuse("gpu_reserved", words, grant.end - now, about=lane.slug)


def lane_maintenance(lane: LaneRoute, closure: Closure, now: float) -> EdgeRefusal:
    """503: nobody is served, whoever has booked it."""
    until = "" if closure.end is None else f" until {moment(closure.end)}"
    why = f": {closure.reason}" if closure.reason else "."
    words = f"lane '{lane.slug}' is under maintenance{until}{why}"
    wait = _OPEN_END if closure.end is None else closure.end - now
    return refuse("lane_maintenance", words, wait, about=lane.slug)


def gpu_exclusive(lane: LaneRoute, grant: Grant, now: float) -> EdgeRefusal:
    """503: a whole-GPU slot that is open to the caller, so no model server runs."""
    words = (
        f"you have booked the whole GPU of lane '{lane.slug}' until {moment(grant.end)}, "
        "so no model server runs there."
    )
    return refuse("gpu_exclusive", words, grant.end - now, about=lane.slug)


def model_not_found(name: str) -> EdgeRefusal:
    """404: no preset has this name."""
    return refuse("model_not_found", f"no model is called '{_cut(name)}'; see /v1/models.")


def model_loading(lane: LaneRoute, preset: str | None, now: float) -> EdgeRefusal:
    """503: until it is loaded."""
    words = f"lane '{lane.slug}' is loading {_named(preset or lane.target)}."
    return refuse("model_loading", words, _until(lane.eta, now), lane=lane.slug)


def yet_to_come(lane: LaneRoute, preset: str | None, now: float) -> EdgeRefusal:
    """503 for the owner of a booking whose model is not there: it loads, as far as is known."""
    if lane.unreachable:
        return host_unreachable(lane.slug)
    return model_loading(lane, preset, now)


def model_switching(lane: LaneRoute, now: float) -> EdgeRefusal:
    """503: the rest of the drain and the load."""
    coming = f"to {_named(lane.target)}" if lane.target else "its model off"
    wait = _until(lane.eta, now)
    if wait is None:
        wait = _until(lane.drain_until, now)
    words = f"lane '{lane.slug}' is switching {coming}."
    comes_again = lane.slug if lane.target else ""
    return refuse("model_switching", words, wait, lane=comes_again, about=lane.slug)


def model_failed(lane: LaneRoute, now: float) -> EdgeRefusal:
    """503: until the next try."""
    reason = f": {lane.failure}" if lane.failure else ""
    words = f"{_named(lane.target)} failed to run on lane '{lane.slug}'{reason}"
    comes_again = lane.slug if lane.retry_at is not None else ""
    wait = _until(lane.retry_at, now)
    return refuse("model_failed", words, wait, lane=comes_again, about=lane.slug)


def host_unreachable(slug: str) -> EdgeRefusal:
    """503: the lane's machine does not answer, so nobody knows what it runs."""
    words = (
        f"the machine of lane '{slug}' does not answer, so nothing is known of its model server."
    )
    return refuse("host_unreachable", words, lane=slug)


def lane_busy(slug: str, waiting: int, pace: float | None) -> EdgeRefusal:
    """429: the server has as many requests as it works on at once, and others wait already.

    `pace` is how many seconds it takes until the next one is finished, if anybody knows.
    """
    words = f"lane '{slug}' is working on all the requests it takes"
    words += f" and {waiting} more are waiting." if waiting else "."
    wait = _SOON if pace is None else min(pace, _LATEST)
    return refuse("lane_busy", words, wait, lane=slug)


def for_good(refusal: EdgeRefusal) -> EdgeRefusal:
    """The same, where waiting does not help: what comes is not what was asked for."""
    return replace(refusal, lane="", about=refusal.lane or refusal.about)


def queue_full(slug: str, waiting: int, wait: float | None) -> EdgeRefusal:
    """429: what is in the way will pass, but enough requests wait for that."""
    words = f"{waiting} requests are waiting for lane '{slug}' already, and no more may."
    return refuse("lane_busy", words, wait, lane=slug)


def share_full(slug: str, mine: int, wait: float | None) -> EdgeRefusal:
    """429: there are places, but this person has half of the queue of a lane that is for all."""
    words = (
        f"{mine} requests of yours are waiting for lane '{slug}' already, and one person may have "
        "no more than half of its queue."
    )
    return refuse("lane_busy", words, wait, lane=slug)


def no_model_loaded(lane: LaneRoute) -> EdgeRefusal:
    """503: nothing is loaded and nothing is coming."""
    why = "has no model loaded" if lane.enabled else "is switched off by an administrator"
    return refuse("no_model_loaded", f"lane '{lane.slug}' {why}.", 60, about=lane.slug)


def model_not_loaded(
    table: Table, lane: LaneRoute, upstream: Upstream, name: str, now: float
) -> EdgeRefusal:
    """409: says what is loaded, and when the named model is next booked."""
    wanted = table.presets.get(name, name)
    upcoming = [
        (grant.start, each.slug)
        for each in table.lanes.values()
        for grant in each.grants
        if grant.preset == wanted and grant.end > now
    ]
    booked = "it is not booked in the next days"
    if upcoming:
        start, slug = min(upcoming)
        booked = f"it is next booked at {moment(start)} on lane '{slug}'"
    words = f"'{_cut(name)}' is not loaded: lane '{lane.slug}' runs {upstream.preset}; {booked}."
    return refuse("model_not_loaded", words, about=lane.slug)


def with_place(refusal: EdgeRefusal, url: str) -> EdgeRefusal:
    """The same; where booking the model helps, it says at which address that is done."""
    if refusal.code != "model_not_loaded":
        return refusal
    return replace(refusal, words=f"{refusal.words} Book it at {url}")


def condition(lane: LaneRoute, now: float) -> Upstream | EdgeRefusal:
    """The lane's server if it takes requests; else draining, loading, failed or none.

    Of an unreachable host a server that was ready may still be asked: it alone has the key to its
    answer. What else was reported of it is old.
    """
    if lane.unreachable and not _is_open(lane):
        return host_unreachable(lane.slug)
    if lane.draining or (lane.phase == "stopping" and lane.target):
        return model_switching(lane, now)
    if lane.upstream is not None and _is_open(lane):
        return lane.upstream
    if lane.phase == "failed":
        return model_failed(lane, now)
    if (lane.phase == "starting" or lane.target) and lane.enabled:
        return model_loading(lane, lane.target, now)
    return no_model_loaded(lane)


def most_helpful(
    refused: Sequence[tuple[LaneRoute, EdgeRefusal]], wanted: str | None
) -> EdgeRefusal:
    """Of several lanes' refusals the one that tells the caller most.

    A name that nobody knows is unknown everywhere. Then lanes that have to do with the named
    model, by code; of the others "not loaded" says more than what they are busy with.
    """

    def rank(one: tuple[LaneRoute, EdgeRefusal]) -> tuple[int, int, int, str]:
        lane, refusal = one
        is_about = wanted is None or _concerns(lane, wanted)
        order = _HELPFUL.get(refusal.code, 10)
        if refusal.code == "model_not_found":
            return (0, 0, 0, lane.slug)
        if is_about:
            return (1, order, refusal.retry_after or 0, lane.slug)
        return (2, -order if refusal.code == "model_not_loaded" else order, 0, lane.slug)

    return min(refused, key=rank)[1]


def _is_open(lane: LaneRoute) -> bool:
    is_up = lane.phase == "ready" and lane.upstream is not None
    return is_up and lane.enabled and not lane.draining


def _concerns(lane: LaneRoute, wanted: str) -> bool:
    return lane.target == wanted or (lane.upstream is not None and lane.upstream.preset == wanted)


def _until(at: float | None, now: float) -> float | None:
    return None if at is None else at - now


def _named(preset: str | None) -> str:
    return preset or "the next model"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"
