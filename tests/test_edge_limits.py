"""Rate limits of one edge: whose they are, what is said, what is remembered. No Valkey."""

import asyncio
from collections.abc import Callable

import pytest

from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company
from gateway.edge.limits import Limits
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.table import TokenEntry


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def company() -> Company:
    return Company()


@pytest.fixture
def limits(time: Time, company: Company) -> Limits:
    return Limits(EdgeClock(monotonic=time, wall=time), company)


def token(token_id: int = 1, owner: int = 1, **limits: int) -> TokenEntry:
    return TokenEntry(token_id, owner, ("inference",), **limits)  # type: ignore[arg-type]


def ask(limits: Limits, entry: TokenEntry) -> EdgeRefusal | None:
    """What it answers without awaiting anything."""
    work = limits.admit(entry)
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    found: EdgeRefusal | None = ended.value.value
    return found


def count(limits: Limits, entry: TokenEntry, asked: int = 50) -> int:
    """How many of so many requests are let in."""
    return sum(ask(limits, entry) is None for _ in range(asked))


def test_a_token_without_limits_asks_and_keeps_nothing(limits: Limits, company: Company) -> None:
    company.is_alone = company.is_away = False
    assert count(limits, token()) == 50
    limits.charge(token(), 1000)
    assert not company.wanted.is_set()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("requests_per_minute", "this API token has a limit of 3 requests a minute"),
        ("owner_requests_per_minute", "all your API tokens share a limit of 3 requests a minute"),
    ],
)
def test_requests_beyond_the_limit_are_refused_in_words(
    limits: Limits, name: str, words: str
) -> None:
    entry = token(**{name: 3})
    assert count(limits, entry) == 3
    refusal = ask(limits, entry)
    assert refusal is not None
    assert (refusal.status, refusal.code, refusal.retry_after) == (429, "rate_limited", 20)
    assert words in refusal.words


@pytest.mark.parametrize("name", ["tokens_per_minute", "owner_tokens_per_minute"])
def test_an_answers_tokens_may_cost_more_than_is_left_and_then_refill(
    limits: Limits, time: Time, name: str
) -> None:
    entry = token(**{name: 60})
    assert ask(limits, entry) is None
    limits.charge(entry, 90)
    refusal = ask(limits, entry)
    assert refusal is not None
    assert refusal.retry_after == 31
    assert "60 tokens a minute" in refusal.words
    time.seconds += 31
    assert ask(limits, entry) is None


def test_all_tokens_of_a_person_share_the_persons_limit(limits: Limits) -> None:
    mine, other, stranger = token(1), token(2), token(3, 2)
    entries = [
        TokenEntry(each.token_id, each.owner_id, (), owner_requests_per_minute=4)
        for each in (mine, other, stranger)
    ]
    assert [count(limits, entries[0], 3), count(limits, entries[1]), count(limits, entries[2])] == [
        3,
        1,
        4,
    ]


def test_who_is_refused_for_one_token_keeps_the_persons_requests(limits: Limits) -> None:
    tight = token(1, requests_per_minute=1, owner_requests_per_minute=5)
    assert count(limits, tight) == 1
    assert count(limits, token(2, owner_requests_per_minute=5)) == 4


def test_a_new_table_with_the_same_or_a_higher_limit_does_not_forget(limits: Limits) -> None:
    assert count(limits, token(requests_per_minute=5)) == 5
    assert count(limits, token(requests_per_minute=5)) == 0
    assert count(limits, token(requests_per_minute=8)) == 3


def test_buckets_that_have_refilled_are_forgotten_and_no_others(limits: Limits, time: Time) -> None:
    for token_id in range(1200):
        ask(limits, token(token_id, token_id, requests_per_minute=5, owner_requests_per_minute=5))
    time.seconds += 59
    busy = token(7, 7, requests_per_minute=5, owner_requests_per_minute=5)
    assert count(limits, busy) == 5
    time.seconds += 2
    for _ in range(6):
        limits.tick()
    assert limits.remembered == 2
    assert count(limits, busy) == 0


@pytest.fixture
def accompany(company: Company) -> Callable[..., None]:
    """Let the edge live with others."""

    def change(edges: int, *, is_away: bool = False) -> None:
        company.edges, company.is_alone, company.is_away = edges, edges == 1, is_away

    return change


def test_without_an_answer_the_limit_is_divided(
    limits: Limits, accompany: Callable[..., None]
) -> None:
    accompany(3, is_away=True)
    assert count(limits, token(requests_per_minute=12)) == 4


def test_what_was_used_alone_counts_in_company_too(
    limits: Limits, accompany: Callable[..., None]
) -> None:
    entry = token(requests_per_minute=12)
    count(limits, entry, 6)
    accompany(2)
    limits.tell_all()
    assert limits.question(is_bare=False).arguments == [1, 12, "1", 6.0, 6.0, 0]


async def test_requests_and_use_go_into_one_question(
    limits: Limits, accompany: Callable[..., None]
) -> None:
    accompany(2)
    entry, other = token(1, requests_per_minute=9), token(2, tokens_per_minute=100)
    tasks = [asyncio.create_task(limits.admit(entry)) for _ in range(2)]
    await asyncio.sleep(0)
    limits.charge(other, 40)
    question = limits.question(is_bare=False)
    assert question.arguments == [2, 9, "1", 0.0, 0.0, 100, "", 40.0, 40.0, 2, 1, 1, 1, 1]
    limits.answer([b"9.0", b"70.0"], [(0, 0), (1, 6500)])
    admitted, refused = await asyncio.gather(*tasks)
    assert admitted is None
    assert refused is not None
    assert refused.retry_after == 7


async def test_use_that_could_not_be_told_is_told_later(
    limits: Limits, accompany: Callable[..., None]
) -> None:
    accompany(2)
    limits.charge(token(tokens_per_minute=100), 40)
    limits.question(is_bare=False)
    limits.charge(token(tokens_per_minute=100), 2)
    limits.give_up()
    assert limits.question(is_bare=True).arguments == [0, 0]
    assert limits.question(is_bare=False).arguments == [1, 100, "", 42.0, 42.0, 0]


async def test_what_others_have_used_counts_when_they_are_gone(
    limits: Limits, accompany: Callable[..., None]
) -> None:
    accompany(2)
    entry = token(requests_per_minute=10)
    task = asyncio.create_task(limits.admit(entry))
    await asyncio.sleep(0)
    limits.question(is_bare=False)
    limits.answer([b"8.0"], [(0, 0)])
    assert await task is None
    accompany(1)
    assert count(limits, entry) == 2
