"""What waited to be sent is sent only if it is still so: by mail, browser and chat."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from bookings import maintenance, services, sharing
from bookings.failure_notices import tell_failures
from bookings.host_notices import tell_hosts
from bookings.models import Booking
from lanes import clock, host_watch
from lanes.models import Host, Lane, Maintenance, Notice, Phase, PresetFailure
from lanes.notices import News, tell_people
from lanes.refusals import Refusal
from notices import endpoint_services, preferences
from notices.endpoints import announce
from notices.events import Channel, Event, event_of
from notices.holding import holds
from notices.mail import send_due
from notices.maintenance import tell_maintenance
from notices.models import Delivery, Endpoint
from notices.outbox import SENT, Outcome, refused, send_all, waiting
from notices.recovered import tell_recoveries
from notices.routing import route
from notices.telling import tell_bookings
from tests import builders
from tests.browser_pages import order, runtime

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def now() -> datetime:
    return clock.database_now()


@pytest.fixture
def owner() -> User:
    return builders.person(email="owner@example.org")


@pytest.fixture
def member() -> User:
    return builders.person("member", email="member@example.org")


@pytest.fixture
def booking(owner: User, member: User) -> Booking:
    """A slot in an hour, of which everybody knows; the member waits for free time."""
    preferences.save(member, {"choices": {"freed": ["mail"]}, "freed_minutes": 60})
    made = builders.booking(owner=owner, start=now() + HOUR, end=now() + 4 * HOUR)
    tell_bookings(now())
    Notice.objects.all().delete()
    return made


def added(kind: str, url: str, *events: str) -> Endpoint:
    made = endpoint_services.add(
        name=kind, kind=kind, url=url, events=list(events), actor=builders.administrator(),
        now=now(),
    )  # fmt: skip
    assert not isinstance(made, Refusal), made
    return made if isinstance(made, Endpoint) else made[0]


def room(*events: str) -> Endpoint:
    return added("chat", "ntfys://ntfy.sh/topic", *events)


def waits(kind: str, username: str) -> Delivery:
    """The one mail of this kind to this person that waits."""
    tell_bookings(now())
    route(now())
    of_kind = Delivery.objects.filter(notice__kind=kind, channel="mail")
    return of_kind.select_related("notice__recipient").get(notice__recipient__username=username)


# --- What makes each due, and what takes its truth away ---------------------------------------


def is_shared(booking: Booking) -> None:
    sharing.share(booking, actor=booking.owner, member=builders.person("member"))


def is_shared_no_more(booking: Booking) -> None:
    sharing.end_share(booking, actor=booking.owner, member=builders.person("member"))


def is_given(booking: Booking) -> None:
    services.transfer(booking, actor=builders.administrator(), to=builders.person("member"))


def is_given_back(booking: Booking) -> None:
    now_hers = Booking.objects.get(pk=booking.pk)
    services.transfer(now_hers, actor=builders.administrator(), to=builders.person())


def is_cancelled(booking: Booking) -> None:
    services.cancel(Booking.objects.get(pk=booking.pk), actor=builders.administrator())


def is_booked_again(booking: Booking) -> None:
    stranger = builders.person("stranger")
    builders.booking(lane=booking.lane, start=booking.start, end=booking.end, owner=stranger)


def fails(booking: Booking) -> None:
    assert booking.preset is not None
    assert booking.preset.current is not None
    PresetFailure.objects.create(
        lane=booking.lane, revision=booking.preset.current, count=1, since=now(),
        failed_at=now(), reason="No memory.", booking_id_for=booking.pk,
    )  # fmt: skip
    tell_failures(now())


def runs_again(_: Booking) -> None:
    PresetFailure.objects.update(count=0)


def fails_and_runs(booking: Booking) -> None:
    fails(booking)
    assert booking.preset is not None
    order(booking.lane, booking.preset, booking_id_for=booking.pk)
    runtime(booking.lane, booking.preset, Phase.READY)
    tell_recoveries(now())


def is_intruded(booking: Booking) -> None:
    about = f"outsider:{booking.lane_id}:{booking.pk}:1:abc"
    tell_people(
        [booking.owner], News(about, "outsider", "Somebody is there.", lane=booking.lane), now()
    )


def is_closed(booking: Booking) -> None:
    start, end = booking.start, booking.end
    administrator = builders.administrator()
    maintenance.plan([booking.lane], start=start, end=end, reason="fans", actor=administrator)
    tell_maintenance(now())


def is_closed_no_more(_: Booking) -> None:
    maintenance.end(Maintenance.objects.get(), actor=builders.administrator())


def is_closed_shorter(booking: Booking) -> None:
    end = booking.end - HOUR
    maintenance.change(Maintenance.objects.get(), end=end, actor=builders.administrator())


def host_is_silent(booking: Booking) -> None:
    Booking.objects.filter(pk=booking.pk).update(start=now() + HOUR / 2)
    seen = now() - HOUR
    Host.objects.update(seen_at=seen, asked_at=seen + timedelta(seconds=1))
    host_watch.watch_hosts()
    tell_hosts(now())


def host_is_there(_: Booking) -> None:
    Host.objects.update(alarms=[])


Deed = Callable[[Booking], None]
# event -> who is told, what makes it due, what takes its truth away
EVENTS: list[tuple[str, str, Deed, Deed]] = [
    ("shared", "member", is_shared, is_shared_no_more),
    ("shared", "member", is_shared, is_cancelled),
    ("transferred", "member", is_given, is_given_back),
    ("failure", "owner", fails, runs_again),
    ("failure", "owner", fails, is_cancelled),
    ("recovered", "owner", fails_and_runs, is_cancelled),
    ("outsider", "owner", is_intruded, is_cancelled),
    ("freed", "member", is_cancelled, is_booked_again),
    ("maintenance", "owner", is_closed, is_closed_no_more),
    ("maintenance", "owner", is_closed, is_closed_shorter),
    ("maintenance", "owner", is_closed, is_cancelled),
    ("host_away", "owner", host_is_silent, host_is_there),
]


@pytest.mark.parametrize(("kind", "username", "begins", "ends"), EVENTS)
def test_it_is_sent_while_it_is_so(
    booking: Booking, kind: str, username: str, begins: Deed, ends: Deed
) -> None:
    begins(booking)
    delivery = waits(kind, username)
    assert holds(delivery, now())
    ends(booking)
    assert not holds(delivery, now())
    send_due()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.reason) == ("moot", "no longer true")


# A room is told the plain fact of a failure, which is one whosever the slot was.
OF_ROOMS = [each for each in EVENTS if (each[0], each[3]) != ("failure", is_cancelled)]


@pytest.mark.parametrize(("kind", "username", "begins", "ends"), OF_ROOMS)
def test_a_chat_room_is_told_while_it_is_so(
    booking: Booking, kind: str, username: str, begins: Deed, ends: Deed
) -> None:
    event = event_of(kind)
    assert event is not None
    room(event)
    begins(booking)
    waits(kind, username)
    delivery = Delivery.objects.get(channel="chat")
    assert holds(delivery, now())
    ends(booking)
    assert not holds(delivery, now())


@pytest.mark.parametrize("event", [event.value for event in Event])
def test_a_chat_room_is_told_no_news_of_yesterday(event: str, booking: Booking) -> None:
    endpoint = room(event)
    webhook = added("webhook", "https://example.org/", event)
    announce(Event(event), "older", {}, now() - timedelta(hours=24.1))
    told: list[Delivery] = []

    def send(delivery: Delivery) -> Outcome:
        told.append(delivery)
        return SENT

    for channel in (Channel.CHAT, Channel.WEBHOOK):
        send_all(waiting(channel, now()), send)
    assert [each.endpoint for each in told] == [webhook]
    old = Delivery.objects.get(endpoint=endpoint)
    assert (old.state, old.reason) == ("moot", "too old")


def test_what_is_sent_again_to_a_room_is_news_for_another_day() -> None:
    """Also what was dropped untried, and also when its first try fails."""
    room("host")
    announce(Event.HOST, "older", {}, now() - timedelta(days=3))
    assert send_all(waiting(Channel.CHAT, now()), lambda _: SENT) == 0
    old = Delivery.objects.get()
    assert (old.reason, old.tried_at) == ("too old", None)
    endpoint_services.send_again(old, actor=builders.administrator(), now=now())
    assert send_all(waiting(Channel.CHAT, now()), lambda _: refused("away")) == 0
    assert Delivery.objects.get().reason == "away"
    Delivery.objects.update(send_from=now())
    assert send_all(waiting(Channel.CHAT, now()), lambda _: SENT) == 1


def test_what_was_sent_again_a_day_ago_is_old() -> None:
    room("host")
    announce(Event.HOST, "older", {}, now() - timedelta(days=3))
    Delivery.objects.update(replayed_at=now() - timedelta(hours=24.1))
    assert send_all(waiting(Channel.CHAT, now()), lambda _: SENT) == 0
    assert Delivery.objects.get().reason == "too old"


def test_a_room_is_not_told_of_free_time_of_which_somebody_has_some(booking: Booking) -> None:
    room("freed")
    is_cancelled(booking)
    tell_bookings(now())
    delivery = Delivery.objects.get(channel="chat")
    assert holds(delivery, now())
    assert holds(delivery, booking.end - HOUR / 2)
    assert not holds(delivery, booking.end)
    stranger = builders.person("stranger")
    builders.booking(
        lane=booking.lane, start=booking.end - HOUR / 4, end=booking.end, owner=stranger
    )
    assert not holds(delivery, now())
    Booking.objects.update(state="cancelled")
    Lane.objects.update(enabled=False)
    assert not holds(delivery, now())


def test_a_key_of_an_older_release_is_sent_as_it_was_written(booking: Booking) -> None:
    for kind in ("freed", "failure", "maintenance", "outsider", "host", "host_away"):
        tell_people([booking.owner], News(kind, kind, "It is so."), now())
    route(now())
    found = Delivery.objects.filter(channel="mail").select_related("notice__recipient")
    assert [holds(each, now()) for each in found] == [True] * len(found)


def test_a_chat_room_is_not_told_of_what_is_so_no_more(booking: Booking) -> None:
    room("cancelled", "changed")
    added("webhook", "https://example.org/", "cancelled", "changed")
    services.move(booking, actor=booking.owner, start=booking.start, end=booking.end + HOUR)
    tell_bookings(now())
    chat, webhook = (Delivery.objects.get(channel=each) for each in ("chat", "webhook"))
    assert [holds(each, now()) for each in (chat, webhook)] == [True, True]
    is_cancelled(booking)
    assert [holds(each, now()) for each in (chat, webhook)] == [False, True]


def test_freed_time_that_is_shorter_than_wanted_by_then_is_not_told(
    booking: Booking, member: User
) -> None:
    is_cancelled(booking)
    delivery = waits("freed", "member")
    assert holds(delivery, booking.end - 2 * HOUR)
    assert not holds(delivery, booking.end - HOUR / 2)
    Lane.objects.update(enabled=False)
    delivery = Delivery.objects.select_related("notice__lane", "notice__recipient").get(
        pk=delivery.pk
    )
    assert not holds(delivery, now())
