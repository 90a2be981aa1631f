"""Two deeds that know nothing of each other, by many processes at once:
`python -m tests.booking_race_pairs SCENARIO`, as tests.booking_race."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.booking_race import HOUR, Scenario, answer_of, main, member  # sets Django up

# isort: split
from django.contrib.auth.models import User
from django.db.models import Count

from bookings import services
from bookings.models import Booking, Policy, Series, State, Waiting
from bookings.policy_service import save_policy
from bookings.recurrence import Every, Pattern
from bookings.series import AskedSeries, book_series
from bookings.waitlist import Wanted, wait
from bookings.waitlist_keeping import offer_freed
from gateway.models import ApiToken
from gateway.tokens import create_token
from lanes import clock
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.members import remove_member
from tests import builders
from tests.booking_race_sizes import FREED, PROCESSES, QUOTA, ROUNDS, SERIES, WAITERS

Answers = list[dict[str, Any]]
PENDING = {"state": State.PENDING, "confirmed_at": None, "purpose": "decided"}


def first_lane() -> Lane:
    return Lane.objects.get(slug="lane-0")


def book(owner: User, start: datetime, lane: Lane | None = None) -> Booking | Refusal:
    """An hour of the whole GPU."""
    return services.book(
        owner=owner,
        lane=lane or first_lane(),
        kind="gpu",
        preset=None,
        start=start,
        end=start + HOUR,
    )


def series(owner: User, start: datetime, lane: Lane | None = None) -> object:
    """The same hour of some days."""
    wall = start.replace(tzinfo=None)
    pattern = Pattern(Every.DAY, count=SERIES)
    asked = AskedSeries(lane or first_lane(), "gpu", None, wall, wall + HOUR, "UTC", pattern)
    return book_series(owner=owner, asked=asked)


def code_of(answer: object) -> str:
    return answer.code if isinstance(answer, Refusal) else ""


def pieces(number: int) -> Answers:
    """Of each series how much was booked; told by one of the processes."""
    if number:
        return []
    found = Series.objects.annotate(most=Count("bookings")).values_list("most", flat=True)
    return [{"code": "of series", "count": count} for count in found]


def series_against_singles(number: int, barrier: Barrier, day: datetime) -> Answers:
    """Some want an hour of five days, or none; others that very hour of one of them."""
    owner, answers = member(number), Answers()
    for turn in range(ROUNDS):
        start = day + turn * HOUR
        barrier.wait()
        if number % 3:
            answer: object = book(owner, start + timedelta(days=number % SERIES))
        else:
            answer = series(owner, start)
        answers.append({"code": code_of(answer), "is_series": not number % 3, "turn": turn})
    barrier.wait()
    return answers + pieces(number)


def series_against_a_quota(number: int, barrier: Barrier, day: datetime) -> Answers:
    """All of one member's devices book, hours and series of them, more than she may have."""
    owner, answers = member(0), Answers()
    lane = list(Lane.objects.order_by("slug"))[number % 2]
    for turn in range(2):
        start = day + (number * 2 + turn) * HOUR
        barrier.wait()
        answer = book(owner, start, lane) if number % 3 else series(owner, start, lane)
        answers.append({"code": code_of(answer)})
    barrier.wait()
    return answers + pieces(number)


def approve_against_cancel(number: int, barrier: Barrier, day: datetime) -> Answers:
    """Administrators approve or reject what its owner cancels at that moment."""
    actor, answers = member(number), Answers()
    deeds = (services.approve, services.cancel, services.reject)
    for turn in range(ROUNDS):
        booking = Booking.objects.get(start=day + turn * HOUR, purpose="decided")
        deed = deeds[(number + turn) % 3]
        barrier.wait()
        answer = deed(booking, actor=actor)
        barrier.wait()
        booking.refresh_from_db()
        said = {"deed": deed.__name__, "turn": turn, "state": booking.state}
        answers.append({"code": code_of(answer), **said})
    return answers


def hold_against_booking(number: int, barrier: Barrier, day: datetime) -> Answers:
    """Half of them hold free hours for those who wait, the others book these hours."""
    owner, answers = member(number), Answers()
    barrier.wait()
    for turn in range(FREED):
        if number % 2:
            offer_freed(clock.database_now())
        else:
            answers.append(answer_of(book(owner, day + ((number + turn) % FREED) * HOUR)))
    barrier.wait()
    offer_freed(clock.database_now())
    return answers


def hold_against_a_quota(number: int, barrier: Barrier, day: datetime) -> Answers:
    """One member, who waits, may have one booking ahead: it is held, or she books it."""
    owner, answers = member(0), Answers()
    barrier.wait()
    for turn in range(ROUNDS):
        if number % 2:
            offer_freed(clock.database_now())
        else:
            answers.append(answer_of(book(owner, day + (FREED + number * ROUNDS + turn) * HOUR)))
    return answers


def transfer_against_release(number: int, barrier: Barrier, day: datetime) -> Answers:
    """Half of the owner's devices give the slot in progress away, the others release it."""
    answers = Answers()
    for turn in range(ROUNDS):
        lane = Lane.objects.get(slug=f"given-{turn}")
        booking, owner = Booking.objects.get(lane=lane), member(0)
        heir = member(1 + (number + turn) % (PROCESSES - 1))
        barrier.wait()
        if number % 2:
            answer = services.transfer(booking, actor=owner, to=heir)
        else:
            answer = services.release(booking, actor=owner)
        barrier.wait()
        booking.refresh_from_db()
        facts = {"turn": turn, "deed": "transfer" if number % 2 else "release"}
        was = {"is_given": booking.owner_id != owner.pk, "is_over": bool(booking.released_at)}
        answers.append({"code": code_of(answer), **facts, **was})
    return answers


def remove_against_booking(number: int, barrier: Barrier, day: datetime) -> Answers:
    """One member is removed while she books, waits, is given bookings and makes tokens."""
    her, lane = member(0), first_lane()
    mine = book(member(2), day + (100 + number) * HOUR)
    assert isinstance(mine, Booking)
    wanted = Wanted([lane], "gpu", None, 60, day, day + 50 * HOUR)
    deeds: list[Callable[[], object]] = [
        partial(remove_member, her, actor=member(1), releases=True),
        partial(book, her, day + number * HOUR),
        partial(series, her, day + number * HOUR),
        partial(wait, owner=her, wanted=wanted),
        lambda: offer_freed(clock.database_now()),
        partial(services.transfer, mine, actor=member(2), to=her),
        lambda: create_token(
            owner=her, name=str(number), scopes=["inference"], lanes=[], expires_at=None
        ),
    ]
    barrier.wait()
    answers = Answers()
    for turn in range(4):
        deed = deeds[0 if number == 1 and turn == 1 else 1 + (number + turn) % 6]
        answers.append({"code": code_of(deed())})
    barrier.wait()
    offer_freed(clock.database_now())
    barrier.wait()
    left = {
        "bookings": Booking.objects.filter(owner=her).current(clock.database_now()).count(),
        "waits": Waiting.objects.filter(owner=her).unserved(clock.database_now()).count(),
        "tokens": ApiToken.objects.filter(owner=her, revoked_at=None).count(),
    }
    return [*answers, {"code": "left", **left}]


def rules_against_booking(number: int, barrier: Barrier, day: datetime) -> Answers:
    """In the middle of it all an administrator forbids slots of more than half an hour."""
    owner, answers = member(number), Answers()
    for turn in range(ROUNDS):
        barrier.wait()
        if number == 0 and turn == ROUNDS // 2:
            save_policy(None, actor=owner, max_minutes=30)
        else:
            answer = book(owner, day + (turn * PROCESSES + number) * 2 * HOUR)
            answers.append({"code": code_of(answer), "turn": turn})
    return answers


SCENARIOS: dict[str, Scenario] = {
    work.__name__: work
    for work in (
        series_against_singles,
        series_against_a_quota,
        approve_against_cancel,
        hold_against_booking,
        hold_against_a_quota,
        transfer_against_release,
        remove_against_booking,
        rules_against_booking,
    )
}


def equip(name: str, day: datetime) -> None:
    """What this scenario needs, beside lanes and members."""
    Series.objects.all().delete()
    Waiting.objects.all().delete()
    User.objects.update(is_active=True, is_staff=True)
    lane, owner = first_lane(), member(0)
    if name in {"series_against_a_quota", "hold_against_a_quota"}:
        Policy.objects.create(bookings_ahead=1 if name.startswith("hold") else QUOTA)
    if name in {"hold_against_a_quota", "transfer_against_release", "remove_against_booking"}:
        User.objects.exclude(username="member-1").update(is_staff=False)
    for turn in range(ROUNDS):
        start = day + turn * HOUR
        if name == "approve_against_cancel":
            builders.booking(
                owner=owner, lane=lane, kind="gpu", preset=None, start=start, **PENDING
            )
        if name == "transfer_against_release":
            begun = {"start": clock.database_now() - HOUR, "end": day}
            own, _ = Lane.objects.get_or_create(slug=f"given-{turn}", host=builders.host())
            builders.booking(owner=owner, lane=own, kind="gpu", preset=None, **begun)
    if name.startswith("hold_against"):
        for number in range(WAITERS if name == "hold_against_booking" else 1):
            wanted = Wanted([lane], "gpu", None, 60, day, day + FREED * HOUR)
            wait(owner=member(number), wanted=wanted)


if __name__ == "__main__":
    main(sys.argv[1], SCENARIOS, equip)
