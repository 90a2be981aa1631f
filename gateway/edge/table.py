"""The route table: what tells an edge which lane serves whom, until when.

A small signed head names the parts by digest; parts ("tokens", "presets", "lane:<slug>") are read
when their digest changes. All times are seconds since 1970 by the database's clock.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import orjson

FORMAT = 3  # of heads and parts; an edge keeps what it holds when it meets another
TOKENS_PART = "tokens"
SLOT_TOKENS_PART = "slot-tokens"  # a release that does not know them never learns of them
PRESETS_PART = "presets"
CATALOGUE_PART = "catalogue"
LANE_PREFIX = "lane:"
SHARES_PART = "shares"  # an edge that does not know it admits owners alone
MAINTENANCE_PART = "maintenance"  # apart from the lanes: an edge of the release before skips it


@dataclass(frozen=True, slots=True)
class Grant:
    """One confirmed booking of the next days: the lane is its owner's alone in [start, end)."""

    booking_id: int
    owner_id: int
    start: float  # from when it is active: max(start, confirmed_at)
    end: float
    preset: str | None  # slug; None: the whole GPU

    @property
    def people(self) -> frozenset[int]:
        """Those whom it admits."""
        return frozenset((self.owner_id,))

    def admits(self, person_id: int) -> bool:
        """Whether this person may use the slot."""
        return person_id == self.owner_id


@dataclass(frozen=True, slots=True)
class SharedGrant(Grant):
    """One whose owner shares it. Made by edges alone: as a part of a lane, an edge of a release
    before would not understand it and take no table at all."""

    guest_ids: frozenset[int] = frozenset()

    @property
    def people(self) -> frozenset[int]:
        """Its owner and who may use it beside them."""
        return self.guest_ids | {self.owner_id}

    def admits(self, person_id: int) -> bool:
        """Whether this person may use the slot."""
        return person_id == self.owner_id or person_id in self.guest_ids


@dataclass(frozen=True, slots=True)
class Closure:
    """Maintenance of a lane: nobody is served there in [start, end), or from start on."""

    start: float
    end: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The model server of a lane: where it listens, what it runs, and under which names."""

    generation: int
    preset: str  # slug
    names: tuple[str, ...]  # slug and aliases that callers may use
    base_url: str  # http://127.0.0.1:18100
    sealed_key: str
    engine: str = "llama.cpp"
    slots: int | None = None  # requests it works on at once; None: nobody knows, so no limit


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What callers may want to know of a preset before they name it."""

    name: str  # for people
    context_length: int | None = None  # tokens for one request
    capabilities: tuple[str, ...] = ()  # such as "completion", "vision", "embedding"
    size_bytes: int | None = None
    load_seconds: float | None = None  # on a lane that has never loaded it
    lane_seconds: Mapping[str, float] = field(default_factory=dict)  # by lane slug, where it has
    lanes: tuple[str, ...] = ()  # slugs of the lanes that can hold it: its file is on their host


@dataclass(frozen=True, slots=True)
class LaneRoute:
    """One lane as the edge sees it."""

    slug: str
    enabled: bool
    generation: int  # of the order; edges echo it with their counts
    phase: str  # of the newest runtime: stopped, starting, ready, draining, stopping, failed
    upstream: Upstream | None  # the server that answers, while ready or draining
    draining: bool = False  # refuse new requests: model_switching
    drain_until: float | None = None  # end what still runs at this time
    cut: bool = False  # a reload: end what runs now, as model_switching
    target: str | None = None  # preset slug that the order wants
    eta: float | None = None  # when the target is expected to be ready
    is_fallback: bool = False  # the default serves in place of the booked preset
    failure: str | None = None  # why the target failed
    retry_at: float | None = None
    unreachable: bool = False  # nothing is known of its host: all of this may be old
    grants: tuple[Grant, ...] = ()  # kept in order of start, whatever order they are given in
    _people: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the grants, so that a look-up may stop at the first one that is yet to start."""
        object.__setattr__(self, "grants", tuple(sorted(self.grants, key=lambda one: one.start)))
        people = (person for one in self.grants for person in one.people)
        object.__setattr__(self, "_people", frozenset(people))

    def may_admit(self, person_id: int) -> bool:
        """Whether any of its bookings admits this person; spares a look at each for all others."""
        return person_id in self._people


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One API token, found by the SHA-256 of its text."""

    token_id: int
    owner_id: int
    scopes: tuple[str, ...]
    lanes: tuple[str, ...] = ()  # slugs; empty: every lane
    expires_at: float | None = None
    requests_per_minute: int | None = None  # None: no limit
    tokens_per_minute: int | None = None
    owner_requests_per_minute: int | None = None  # for all tokens of the owner together
    owner_tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class SlotToken(TokenEntry):
    """A token for one booking alone: its lane, from `starts_at` to `expires_at`."""

    starts_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """A whole table, as an edge holds it."""

    version: int
    confirmed_at: float
    tokens: Mapping[str, TokenEntry] = field(default_factory=dict)  # by SHA-256, hex
    lanes: Mapping[str, LaneRoute] = field(default_factory=dict)  # by slug
    presets: Mapping[str, str] = field(default_factory=dict)  # any known name -> preset slug
    catalogue: Mapping[str, ModelInfo] = field(default_factory=dict)  # by preset slug
    closures: Mapping[str, tuple[Closure, ...]] = field(default_factory=dict)  # by lane slug
    own_lanes: "dict[int, OwnLanes]" = field(  # by owner: found once, not for each request
        init=False, repr=False, compare=False, default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class OwnLanes:
    """The lanes whose booking in progress admits a person, which holds in [since, until)."""

    lanes: tuple[LaneRoute, ...]  # booked by the person
    shared: tuple[LaneRoute, ...]  # booked by somebody who shares the slot with the person
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Head:
    """What is read each second: order, age, clock, and a digest of each part."""

    version: int
    confirmed_at: float
    clock_offset: float  # the database's clock minus Valkey's TIME, seconds
    parts: Mapping[str, str]  # part name -> digest
    format: int = FORMAT


class Signer(Protocol):
    """What signs heads: `wire.sealing.Sealer`, which the pure routing does not import."""

    def sign(self, payload: bytes) -> str:
        """The payload's signature."""

    def verify(self, payload: bytes, signature: str) -> bool:
        """Whether one of our keys made this signature."""


class TableError(ValueError):
    """A head or part that is not what it says: unsigned, altered, or of another format."""


def digest_of(payload: bytes) -> str:
    """SHA-256 of a part, hex."""
    return hashlib.sha256(payload).hexdigest()


def encode_head(head: Head, sealer: Signer) -> tuple[bytes, str]:
    """The head's bytes and their signature."""
    payload = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
    return payload, sealer.sign(payload)


def decode_head(payload: bytes, signature: str, sealer: Signer) -> Head:
    """The head; TableError when none of the keys signed it, or when its format is not ours."""
    if not sealer.verify(payload, signature):
        raise TableError("the route table's head is not signed by a known key")
    try:
        raw = orjson.loads(payload)
        if raw.get("format") != FORMAT:
            words = f"the route table has format {raw.get('format')}, this gateway reads {FORMAT}"
            raise TableError(f"{words}: run the same release everywhere")
        return Head(**raw)
    except (TypeError, AttributeError, orjson.JSONDecodeError) as error:
        raise TableError(f"the route table's head is of another format: {error}") from error


def encode_part(value: Any) -> bytes:
    """A part's bytes, the same for the same facts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def decode_tokens(payload: bytes) -> dict[str, TokenEntry]:
    """The "tokens" part."""
    return {digest: TokenEntry(**_tuples(raw)) for digest, raw in orjson.loads(payload).items()}


def decode_slot_tokens(payload: bytes) -> dict[str, TokenEntry]:
    """The "slot-tokens" part; one that names no lane opens none."""
    raw = orjson.loads(payload)
    found = {digest: SlotToken(**_tuples(fields)) for digest, fields in raw.items()}
    return {digest: token for digest, token in found.items() if token.lanes and token.expires_at}


def decode_presets(payload: bytes) -> dict[str, str]:
    """The "presets" part: every name a caller may use, with its preset's slug."""
    return dict(orjson.loads(payload))


def decode_shares(payload: bytes) -> dict[int, frozenset[int]]:
    """The "shares" part: for each booking that is shared, who may use it beside its owner."""
    return {int(pk): frozenset(map(int, people)) for pk, people in orjson.loads(payload).items()}


def with_guests(lane: LaneRoute, shares: Mapping[int, frozenset[int]]) -> LaneRoute:
    """The lane, whose bookings admit those with whom they are shared."""
    if not any(grant.booking_id in shares for grant in lane.grants):
        return lane
    return replace(lane, grants=tuple(_with_guests(grant, shares) for grant in lane.grants))


def decode_catalogue(payload: bytes) -> dict[str, ModelInfo]:
    """The "catalogue" part."""
    return {slug: ModelInfo(**_tuples(raw)) for slug, raw in orjson.loads(payload).items()}


def decode_maintenance(payload: bytes) -> dict[str, tuple[Closure, ...]]:
    """The "maintenance" part: closures by lane slug."""
    found = orjson.loads(payload)
    return {slug: tuple(Closure(**raw) for raw in closures) for slug, closures in found.items()}


def decode_lane(payload: bytes) -> LaneRoute:
    """A "lane:<slug>" part."""
    raw = _tuples(orjson.loads(payload))
    raw["grants"] = tuple(Grant(**grant) for grant in raw["grants"])
    if raw["upstream"] is not None:
        raw["upstream"] = Upstream(**_tuples(raw["upstream"]))
    return LaneRoute(**raw)


def _with_guests(grant: Grant, shares: Mapping[int, frozenset[int]]) -> Grant:
    guests = shares.get(grant.booking_id)
    return SharedGrant(**asdict(grant), guest_ids=guests) if guests else grant


def _tuples(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
