"""Many processes at once on one database: `python -m tests.booking_race SCENARIO`.

Reads DATABASE_URL as the product does. Forks its processes before any of them is connected, lets
them start together, and prints a JSON list of what each was answered, and what the table holds.
"""

import json
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.db import Error, connections  # noqa: E402

from bookings import services  # noqa: E402
from bookings.guards import verdict  # noqa: E402
from bookings.models import Booking, Policy  # noqa: E402
from bookings.policy_service import save_policy  # noqa: E402
from bookings.recurrence import Every, Pattern  # noqa: E402
from bookings.refusals import SlotTaken  # noqa: E402
from bookings.series import AskedSeries, book_series  # noqa: E402
from bookings.states import OCCUPYING, State  # noqa: E402
from bookings.waitlist import Wanted, wait  # noqa: E402
from bookings.waitlist_keeping import offer_freed  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import Lane  # noqa: E402
from lanes.refusals import Refusal  # noqa: E402
from slotserve.groups import delete_group  # noqa: E402
from tests import builders  # noqa: E402
from tests.booking_race_sizes import (  # noqa: E402
    FREED,
    GIVEN,
    LONGEST,
    PROCESSES,
    QUOTA,
    RAW_ROUNDS,
    ROUNDS,
    SERIES,
    WAITERS,
)

HOUR = timedelta(hours=1)
QUARTERS = 192  # of hours, among which starts are drawn: room for many, too little for all


def answer_of(answer: Booking | Refusal) -> dict[str, Any]:
    """What the test is to know of an answer."""
    if isinstance(answer, Booking):
        return {"code": "", "booking": answer.pk}
    conflicts = answer.conflicts if isinstance(answer, SlotTaken) else ()
    return {"code": answer.code, "conflicts": [c.booking_id for c in conflicts]}


def book_one_slot(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody wants the same slot, round after round."""
    owner, lane = member(number), Lane.objects.get(slug="lane-0")
    answers = []
    for turn in range(ROUNDS):
        start = day + turn * HOUR
        barrier.wait()
        answer = services.book(
            owner=owner, lane=lane, kind="gpu", preset=None, start=start, end=start + HOUR
        )
        answers.append({"round": turn, **answer_of(answer)})
    return answers


def book_at_random(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody books, shifts, extends and gives back on two lanes, wherever it may be."""
    chance, owner = random.Random(number), member(number)
    lanes = list(Lane.objects.order_by("slug"))
    mine: list[Booking] = []
    answers = []
    barrier.wait()
    for _ in range(25):
        lane, start = chance.choice(lanes), day + chance.randrange(QUARTERS) * HOUR / 4
        end = start + chance.randrange(1, 8) * HOUR / 4
        deed = chance.choice(("book", "book", "move", "extend", "cancel")) if mine else "book"
        booking = chance.choice(mine) if mine else None
        answer: Booking | Refusal
        if deed == "book" or booking is None:
            answer = services.book(
                owner=owner, lane=lane, kind="gpu", preset=None, start=start, end=end
            )
        elif deed == "move":
            answer = services.move(booking, actor=owner, lane=lane, start=start, end=end)
        elif deed == "extend":
            answer = services.extend(booking, actor=owner, end=end)
        else:
            answer = services.cancel(booking, actor=owner)
        if deed == "book" and isinstance(answer, Booking):
            mine.append(answer)
        answers.append({"deed": deed, **answer_of(answer)})
    return answers


def move_crosswise(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """One half moves bookings from lane 0 to lane 1 and back, the other the other way round."""
    owner = member(number)
    there, back = Lane.objects.order_by("slug")[:2][:: 1 if number % 2 else -1]
    start = day + number * HOUR
    booking = services.book(
        owner=owner, lane=back, kind="gpu", preset=None, start=start, end=start + HOUR
    )
    if isinstance(booking, Refusal):
        return [answer_of(booking)]
    answers = []
    barrier.wait()
    for turn in range(ROUNDS):
        lane = back if turn % 2 else there
        moved = services.move(booking, actor=owner, start=start, end=start + HOUR, lane=lane)
        answers.append(answer_of(moved))
    return answers


def move_the_same(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody (administrators) moves one and the same booking between lanes and times."""
    actor = member(number)
    booking = Booking.objects.get()
    lanes = list(Lane.objects.order_by("slug"))
    answers = []
    barrier.wait()
    for turn in range(ROUNDS):
        start = day + ((number + turn) % 24) * HOUR
        lane = lanes[(number + turn) % 2]
        moved = services.move(booking, actor=actor, start=start, end=start + HOUR, lane=lane)
        answers.append(answer_of(moved))
    return answers


def book_up_to_a_quota(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """All of one and the same member's devices book, on two lanes, more than she may have."""
    owner = member(0)
    lane = list(Lane.objects.order_by("slug"))[number % 2]
    answers = []
    for turn in range(ROUNDS):
        start = day + (number * ROUNDS + turn) * HOUR / 12
        barrier.wait()
        answer = services.book(
            owner=owner, lane=lane, kind="gpu", preset=None, start=start, end=start + HOUR / 12
        )
        answers.append(answer_of(answer))
    return answers


def book_in_pieces(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """All of one and the same member's devices book slots that touch, each an hour of one day."""
    owner, lane = member(0), Lane.objects.get(slug="lane-0")
    answers = []
    for turn in range(ROUNDS):
        start = day + turn * 2 * PROCESSES * HOUR + number * HOUR
        barrier.wait()
        answer = services.book(
            owner=owner, lane=lane, kind="gpu", preset=None, start=start, end=start + HOUR
        )
        answers.append(answer_of(answer))
    return answers


def rule_for_a_deleted_group(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """One half deletes a group while the other makes rules for it, round after round."""
    actor = member(number)
    answers = []
    for turn in range(ROUNDS):
        group = Group.objects.get(name=f"group-{turn}")
        barrier.wait()
        answer: object
        if number % 2:
            answer = delete_group(group, actor=actor)
        else:
            answer = save_policy(None, actor=actor, group=group, max_minutes=60)
        code = answer.code if isinstance(answer, Refusal) else ""
        barrier.wait()
        rules = Policy.objects.filter(group__name=group.name).count()
        is_there = Group.objects.filter(name=group.name).exists()
        answers.append({"code": code, "rules": rules, "is_there": is_there, "turn": turn})
        barrier.wait()
    return answers


def book_series_at_once(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody wants the same five days, all or none, round after round."""
    owner, lane = member(number), Lane.objects.get(slug="lane-0")
    answers = []
    for turn in range(ROUNDS):
        start = (day + turn * HOUR).replace(tzinfo=None)
        asked = AskedSeries(
            *(lane, "gpu", None, start, start + HOUR, "UTC"), Pattern(Every.DAY, count=SERIES)
        )
        barrier.wait()
        answer = book_series(owner=owner, asked=asked)
        answers.append({"code": answer.code if isinstance(answer, Refusal) else ""})
    return answers


def give_around(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody gives one booking to another, shares it, or cancels and restores it."""
    actor, booking = member(number), Booking.objects.get()
    answers = []
    barrier.wait()
    for turn in range(ROUNDS):
        other = member((number + turn) % PROCESSES)
        deeds: list[Callable[[], Booking | Refusal]] = [
            partial(services.transfer, booking, actor=actor, to=other),
            partial(services.share, booking, actor=actor, member=other),
            partial(services.end_share, booking, actor=actor, member=other),
            partial(services.cancel, booking, actor=actor),
            partial(services.restore, booking, actor=actor),
        ]
        answers.append(answer_of(deeds[(number + turn) % len(deeds)]()))
    return answers


def give_to_one(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Everybody gives a booking of their own to one member, whose quota has not room for all."""
    owner, heir = member(number), member(0)
    own = services.book(
        owner=owner, lane=Lane.objects.get(slug="lane-0"), kind="gpu", preset=None,
        start=day + number * HOUR, end=day + (number + 1) * HOUR,
    )  # fmt: skip
    barrier.wait()
    if isinstance(own, Refusal) or number == 0:
        return []
    return [answer_of(services.transfer(own, actor=owner, to=heir))]


def free_for_those_who_wait(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Some give time back, and everybody offers what is free to those who wait, all at once."""
    owner = member(number)
    barrier.wait()
    if number < FREED:
        given = Booking.objects.get(start=day + number * HOUR, purpose="given back")
        services.cancel(given, actor=given.owner)
    for _ in range(ROUNDS):
        offer_freed(clock.database_now())
    barrier.wait()
    offer_freed(clock.database_now())
    barrier.wait()
    is_held = Booking.objects.filter(owner=owner, state=State.HELD).exists()
    return [{"code": "held" if is_held else "", "member": number}]


def insert_past_the_service(number: int, barrier: Barrier, day: datetime) -> list[dict[str, Any]]:
    """Bare inserts of the same row: only the database is left to refuse them."""
    owner, lane = member(number), Lane.objects.get(slug="lane-0")
    answers = []
    for turn in range(RAW_ROUNDS):
        start = day + turn * HOUR
        barrier.wait()
        try:
            builders.booking(owner=owner, lane=lane, kind="gpu", preset=None, start=start)
            code = ""
        except Error as error:
            code = verdict(error).name
        answers.append({"round": turn, "code": code})
    return answers


Scenario = Callable[[int, Barrier, datetime], list[dict[str, Any]]]
SCENARIOS: dict[str, Scenario] = {
    work.__name__: work
    for work in (
        book_one_slot,
        book_at_random,
        move_crosswise,
        move_the_same,
        book_up_to_a_quota,
        book_in_pieces,
        rule_for_a_deleted_group,
        book_series_at_once,
        free_for_those_who_wait,
        give_around,
        give_to_one,
        insert_past_the_service,
    )
}


def member(number: int) -> User:
    """The process's own member."""
    return User.objects.get(username=f"member-{number}")


def prepare(scenario: str, day: datetime) -> None:
    """Two lanes and a member for each process, on an emptied table."""
    Booking.objects.all().delete()
    lanes = [
        Lane.objects.get_or_create(slug=f"lane-{n}", defaults={"host": builders.host()})[0]
        for n in range(2)
    ]
    for number in range(PROCESSES):
        builders.person(f"member-{number}", is_staff=True)
    Policy.objects.all().delete()
    for turn in range(ROUNDS):
        Group.objects.get_or_create(name=f"group-{turn}")
    if scenario == "book_up_to_a_quota":
        Policy.objects.create(bookings_ahead=QUOTA)
    if scenario == "book_in_pieces":
        Policy.objects.create(max_minutes=LONGEST * 60)
    if scenario == "give_to_one":
        Policy.objects.create(bookings_ahead=GIVEN)
    if scenario == "free_for_those_who_wait":
        prepare_waiting(lanes[0], day)
    if scenario in {"move_the_same", "give_around"}:
        builders.booking(
            owner=member(0), lane=lanes[0], kind="gpu", preset=None, start=day, end=day + HOUR
        )


def prepare_waiting(lane: Lane, day: datetime) -> None:
    """Hours that are taken, and more members who wait for one each than there are."""
    giver = builders.person("giver")
    for number in range(FREED):
        start = day + number * HOUR
        builders.booking(
            owner=giver, lane=lane, kind="gpu", preset=None, start=start, purpose="given back"
        )
    for number in range(WAITERS):
        wanted = Wanted([lane], "gpu", None, 60, day, day + FREED * HOUR)
        wait(owner=member(number), wanted=wanted)


def run(scenario: Scenario, number: int, barrier: Barrier, day: datetime, answers: Any) -> None:
    """One process."""
    try:
        answers.put(scenario(number, barrier, day))
    except BaseException as error:
        barrier.abort()
        answers.put([{"code": f"{type(error).__name__}: {error}"}])
        raise
    finally:
        connections.close_all()


def main(
    name: str,
    scenarios: Mapping[str, Scenario] = SCENARIOS,
    equip: Callable[[str, datetime], None] = lambda name, day: None,
) -> None:
    """Run one scenario and print what came of it. `equip` adds to what all have."""
    day = (clock.database_now() + timedelta(days=2)).replace(microsecond=0)
    prepare(name, day)
    equip(name, day)
    connections.close_all()
    fork = multiprocessing.get_context("fork")
    barrier, queue = fork.Barrier(PROCESSES, timeout=60), fork.SimpleQueue()
    processes = [
        fork.Process(target=run, args=(scenarios[name], number, barrier, day, queue))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    answers = [answer for _ in processes for answer in queue.get()]
    for process in processes:
        process.join()
    rows = Booking.objects.filter(state__in=OCCUPYING).order_by("lane", "start")
    held = [
        (lane, start.timestamp(), end.timestamp())
        for lane, start, end in rows.values_list("lane", "start", "end")
    ]
    print(json.dumps({"answers": answers, "held": held, "day": day.timestamp()}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
