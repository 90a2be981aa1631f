"""The page of one booking: who sees it and what of it, its buttons, its refusals, its receipt."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from bookings import services
from bookings.models import Booking, Policy, Series, State
from gateway.receipts import Ran
from lanes import clock
from lanes.events import add_event
from lanes.models import Lane, Maintenance, Phase
from slotserve.booking_page import flags_shown, masked
from tests import browser_pages as pages
from tests import builders
from tests.usage_cast import record

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo", default_preset=builders.preset("qwen"))


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


@pytest.fixture
def booking(lane: Lane, owner: User) -> Booking:
    """In an hour, of qwen."""
    return made(lane, 1, purpose="thesis")


def made(lane: Lane, begins: float, **fields: object) -> Booking:
    start = clock.database_now() + begins * HOUR
    return builders.booking(lane=lane, preset=lane.default_preset, start=start, **fields)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def html(client: Client, booking: Booking) -> str:
    answer = client.get(f"/bookings/{booking.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


def shared(booking: Booking, name: str = "guest") -> User:
    guest = builders.person(name)
    assert isinstance(services.share(booking, actor=booking.owner, member=guest), Booking)
    return guest


def test_its_owner_sees_all_and_can_do_all(booking: Booking, owner: User) -> None:
    text = html(signed_in(owner), booking)
    for words in ("Upcoming", "thesis", "Cancel", "Change end", "Share with", "Transfer to"):
        assert words in text
    file = f"/bookings/{booking.pk}/booking.ics"
    assert file in text
    assert b"thesis" in signed_in(owner).get(file).content


def test_a_guest_sees_it_without_what_is_the_owners(booking: Booking) -> None:
    guest = shared(booking)
    shared(booking, "another")
    text = html(signed_in(guest), booking)
    assert "Leave" in text
    for words in ("thesis", "Change end", "Transfer to", "Remove"):
        assert words not in text
    file = signed_in(guest).get(f"/bookings/{booking.pk}/booking.ics")
    assert b"BEGIN:VEVENT" in file.content
    assert b"thesis" not in file.content


def test_strangers_find_nothing_there(booking: Booking) -> None:
    stranger = signed_in(builders.person("stranger"))
    assert stranger.get(f"/bookings/{booking.pk}/").status_code == 404
    assert stranger.get(f"/bookings/{booking.pk}/booking.ics").status_code == 404
    for name in ("end", "load", "share", "unshare", "transfer"):
        form = {"member": "stranger", "end": booking.start.isoformat(), "what": "gpu"}
        assert stranger.post(f"/bookings/{booking.pk}/{name}/", form).status_code == 404


def test_who_is_not_logged_in_is_led_to_do_so(booking: Booking) -> None:
    assert Client().get(f"/bookings/{booking.pk}/")["Location"].startswith("/accounts/login/")


def test_an_administrator_decides_with_a_comment_that_the_owner_reads(
    lane: Lane, owner: User
) -> None:
    waiting = made(lane, 1, state=State.PENDING)
    administrator = signed_in(builders.administrator())
    assert "Comment (optional)" in html(administrator, waiting)
    assert "Comment (optional)" not in html(signed_in(owner), waiting)
    page = f"/bookings/{waiting.pk}/"
    answer = administrator.post(f"{page}reject/", {"comment": "exam week", "next": page})
    assert answer["Location"] == page
    assert "exam week" in html(signed_in(owner), waiting)


@pytest.mark.parametrize("minutes", [30, -30])
def test_one_tap_makes_it_longer_or_shorter(booking: Booking, owner: User, minutes: int) -> None:
    end = booking.end + timedelta(minutes=minutes)
    client = signed_in(owner)
    value = end.isoformat()
    assert f'value="{value}"' in html(client, booking)
    answer = client.post(f"/bookings/{booking.pk}/end/", {"end": value})
    assert answer["Location"] == f"/bookings/{booking.pk}/"
    booking.refresh_from_db()
    assert booking.end == end


def test_only_ends_that_nobody_is_in_the_way_of_are_offered(
    lane: Lane, booking: Booking, owner: User
) -> None:
    following = builders.booking(
        lane=lane, owner=builders.person("member"), kind="gpu",
        start=booking.end + timedelta(minutes=40), preset=None,
    )  # fmt: skip
    text = html(signed_in(owner), booking)
    assert "+ 30 min" in text
    assert "+ 1 h" not in text
    late = (following.start + timedelta(minutes=5)).isoformat()
    answer = signed_in(owner).post(f"/bookings/{booking.pk}/end/", {"end": late})
    assert answer.status_code == 409
    assert "is taken from" in answer.content.decode()
    assert "/book/?lane=demo" in answer.content.decode()


@pytest.mark.parametrize("value", ["", "soon", "2030-01-01T10:00"])
def test_an_end_that_is_none_leads_to_the_form(booking: Booking, owner: User, value: str) -> None:
    answer = signed_in(owner).post(f"/bookings/{booking.pk}/end/", {"end": value})
    assert answer["Location"] == f"/bookings/{booking.pk}/extend/"


def test_another_preset_or_the_whole_gpu_is_loaded(booking: Booking, owner: User) -> None:
    builders.preset("smol")
    client = signed_in(owner)
    client.post(f"/bookings/{booking.pk}/load/", {"what": "smol"})
    booking.refresh_from_db()
    assert booking.preset is not None
    assert booking.preset.slug == "smol"
    client.post(f"/bookings/{booking.pk}/load/", {"what": "gpu"})
    booking.refresh_from_db()
    assert (booking.kind, booking.preset_id) == ("gpu", None)


def test_a_preset_that_is_not_there_is_refused_in_words(booking: Booking, owner: User) -> None:
    builders.preset("far", model_file=builders.model_file(host=builders.host("far")))
    answer = signed_in(owner).post(f"/bookings/{booking.pk}/load/", {"what": "far"})
    assert "cannot run far" in answer.content.decode()
    assert answer.status_code == 400
    answer = signed_in(owner).post(f"/bookings/{booking.pk}/load/", {"what": "nothing-such"})
    assert (answer.status_code, b"is changed" in answer.content) == (400, False)


def test_it_is_given_away_and_gone_from_the_giver(booking: Booking, owner: User) -> None:
    heir, client = builders.person("heir"), signed_in(owner)
    answer = client.post(f"/bookings/{booking.pk}/transfer/", {"member": "heir"}, follow=True)
    assert answer.redirect_chain == [("/bookings/", 302)]
    assert "It is heir" in answer.content.decode()
    assert client.get(f"/bookings/{booking.pk}/").status_code == 404
    assert "You" in html(signed_in(heir), booking)


def test_what_an_heirs_rules_forbid_is_listed(booking: Booking, owner: User) -> None:
    builders.person("heir")
    Policy.objects.create(max_minutes=30)
    answer = signed_in(owner).post(f"/bookings/{booking.pk}/transfer/", {"member": "heir"})
    assert answer.status_code == 422
    assert "The longest slot is 30 min" in answer.content.decode()


@pytest.mark.parametrize("name", ["share", "transfer", "unshare"])
def test_nobody_is_no_member(booking: Booking, owner: User, name: str) -> None:
    for form in ({}, {"member": ""}, {"member": "nobody"}):
        answer = signed_in(owner).post(f"/bookings/{booking.pk}/{name}/", form)
        assert answer.status_code == 400
        assert "There is no such member who may log in." in answer.content.decode()


def test_it_is_shared_removed_and_left(booking: Booking, owner: User) -> None:
    guest, client = builders.person("guest"), signed_in(owner)
    page = f"/bookings/{booking.pk}/"
    client.post(f"{page}share/", {"member": "guest"})
    assert "Shared with you" in signed_in(guest).get("/bookings/").content.decode()
    assert client.post(f"{page}share/", {"member": "guest"}).status_code == 409
    client.post(f"{page}unshare/", {"member": "guest"})
    assert signed_in(guest).get(page).status_code == 404
    client.post(f"{page}share/", {"member": "guest"})
    left = signed_in(guest).post(f"{page}unshare/", {"member": "guest"})
    assert left["Location"] == "/bookings/"


def test_guests_are_refused_what_is_not_theirs(booking: Booking) -> None:
    client = signed_in(shared(booking))
    end = {"end": (booking.end + HOUR).isoformat()}
    assert client.post(f"/bookings/{booking.pk}/end/", end).status_code == 403
    assert client.post(f"/bookings/{booking.pk}/share/", {"member": "owner"}).status_code == 403


def test_the_receipt_tells_who_asked_for_what(lane: Lane, owner: User) -> None:
    held = made(lane, -2)
    assert lane.default_preset is not None
    pages.order(lane, lane.default_preset)
    pages.runtime(lane, lane.default_preset, Phase.READY, ready_at=held.start)
    guest = builders.person("guest")
    held.shares.create(member=guest, added_at=held.start)
    record(held, prompt_tokens=1200, completion_tokens=34)
    record(held, owner=guest, prompt_tokens=7, completion_tokens=8)
    text = html(signed_in(owner), held)
    for words in ("Receipt", "1,207 of prompts, 42 of answers", "revision 1", "Busy", "Ended"):
        assert words in text
    assert "1,200" in text
    assert "Cancel" not in text
    less = html(signed_in(guest), held)
    assert '<th scope="row">guest</th>' in less
    assert "1,200" not in less


def test_what_tells_of_the_host_is_shown_to_administrators_alone() -> None:
    revision = builders.revision(builders.preset(), arguments=["--mmproj", "/models/x.gguf"])
    people = (builders.person("guest"), builders.administrator())
    shown = [flags_shown(Ran(revision, 1.0), person) for person in people]
    assert shown == ["--mmproj …", "--mmproj /models/x.gguf"]


def test_flags_are_shown_without_what_tells_of_the_host() -> None:
    given = [
        "-c",
        "4096",
        "--mmproj",
        "/models/x.gguf",
        "--api-key",
        "s3",
        "--hf-token=s4",
        "-ngl=9",
    ]
    shown = ["-c", "4096", "--mmproj", "…", "--api-key", "••••", "--hf-token=••••", "-ngl=9"]
    assert masked(given) == shown


def test_in_progress_it_says_what_the_lane_does_for_it(lane: Lane, owner: User) -> None:
    running = made(lane, -0.5)
    assert lane.default_preset is not None
    pages.order(lane, lane.default_preset, "loading qwen for the slot")
    pages.runtime(lane, lane.default_preset, Phase.STARTING)
    text = html(signed_in(owner), running)
    for words in ("In progress", "loading qwen for the slot", "Release", "<progress", "So far"):
        assert words in text
    part = signed_in(owner).get(f"/bookings/{running.pk}/", headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith('<div id="live"')


def test_maintenance_in_its_time_is_told_until_it_is_over(booking: Booking, owner: User) -> None:
    closed = Maintenance.objects.create(
        lane=booking.lane, start=booking.start, end=booking.start + HOUR / 2, reason="new fan"
    )
    shown = html(signed_in(owner), booking)
    assert "demo is under maintenance from" in shown
    assert "(new fan). Nothing runs then, whoever has booked it." in shown
    Booking.objects.update(state=State.CANCELLED)
    assert "under maintenance" not in html(signed_in(owner), booking)
    Booking.objects.update(state=State.CONFIRMED)
    closed.ended_at = booking.start
    closed.save()
    assert "under maintenance" not in html(signed_in(owner), booking)


def test_maintenance_that_is_over_is_not_told_of_a_slot_in_progress(
    lane: Lane, owner: User
) -> None:
    booking = made(lane, -0.5)
    start = booking.start
    Maintenance.objects.create(lane=lane, start=start, end=start + HOUR / 4)
    assert "under maintenance" not in html(signed_in(owner), booking)


def test_its_history_is_told_in_sentences(booking: Booking, owner: User) -> None:
    services.extend(booking, actor=owner, end=booking.end + HOUR)
    text = html(signed_in(owner), booking)
    assert "owner extended the booking: qwen" in text


def test_one_of_a_series_says_that_the_series_was_booked(
    lane: Lane, booking: Booking, owner: User
) -> None:
    now = clock.database_now()
    series = Series.objects.create(owner=owner, zone="UTC", every="daily", count=2, created_at=now)
    first = made(lane, 5, series=series)
    Booking.objects.filter(pk=booking.pk).update(series=series)
    add_event(lane, now, "series.created", "owner booked a series", booking=first.pk)
    assert "owner booked a series" in html(signed_in(owner), booking)


def test_book_this_again_fills_the_form(booking: Booking, owner: User) -> None:
    text = html(signed_in(owner), booking)
    assert "/book/?lane=demo&amp;what=preset%3Aqwen&amp;begins=now&amp;end=" in text


def test_lists_and_notices_lead_to_it(booking: Booking, owner: User) -> None:
    client = signed_in(owner)
    services.transfer(booking, actor=builders.administrator(), to=builders.person("heir"))
    services.transfer(booking, actor=builders.administrator(), to=owner)
    link = f'href="/bookings/{booking.pk}/"'
    for address in ("/bookings/", f"/calendar/bookings/{booking.pk}/", "/notices/"):
        assert link in client.get(address).content.decode(), address
    assert link not in signed_in(builders.person("heir")).get("/notices/").content.decode()


def test_the_number_of_queries_is_fixed(
    lane: Lane, owner: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    held = made(lane, -0.5)
    for number in range(3):
        shared(held, f"guest-{number}")
        record(held)
    client = signed_in(owner)
    client.get("/bookings/")  # the first page of a session keeps the member's zone
    # Session, user; the booking; its lane, cards, orders, runtimes, bookings (2), choices,
    # failures, maintenance; guests, the next booking, history; the receipt's four and who asked;
    # members, presets; maintenance in it; announcements and unread notices.
    with django_assert_num_queries(26):
        client.get(f"/bookings/{held.pk}/")
