"""Waiting through the pages, by REST, and by the link of the mail."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from bookings.models import Booking, Lapse, State, Status, Waiting
from bookings.waitlist import places_of
from bookings.waitlist_keeping import end_holds, offer_freed
from lanes import clock
from lanes.models import Lane, Notice
from notices.links import make_link
from notices.mail import message_of
from notices.models import Link
from notices.telling import tell_bookings
from notices.wording import words_of
from slotserve.live.reading import bookings_digest, read_state
from tests import builders
from tests.test_api_bookings import signed_in, with_token
from tests.test_web_bookings import local

pytestmark = pytest.mark.django_db
URL = "/api/v1/waitlist/"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


@pytest.fixture
def taken(lane: Lane) -> Booking:
    start = clock.database_now() - timedelta(minutes=30)
    end = start + timedelta(hours=3)
    return builders.booking(
        lane=lane,
        owner=builders.person("ada"),
        kind="gpu",
        preset=None,
        start=start,
        end=end,
        original_end=end,
    )


def form(**changed: str) -> dict[str, str]:
    return {
        "lane": "demo",
        "what": "gpu",
        "begins": "later",
        "start": local(60),
        "length": "60",
    } | changed


def wish(**changed: Any) -> dict[str, Any]:
    now = clock.database_now()
    times = {"opens": now.isoformat(), "closes": (now + timedelta(hours=4)).isoformat()}
    return {"lanes": ["demo"], "kind": "gpu", "minutes": 60, **times} | changed


def hold_for(owner: User) -> Booking:
    """What is held for the owner, who waited and was first."""
    answer = signed_in(owner).post(URL, wish(), format="json")
    assert answer.status_code == 201, answer.json()
    assert offer_freed(clock.database_now()) == 1
    return Booking.objects.get(state=State.HELD, owner=owner)


def test_a_refusal_offers_to_wait_and_the_list_to_leave(client: Client, taken: Booking) -> None:
    refused = client.post("/book/", form()).content.decode()
    assert "Wait for any time within a day" in refused
    answer = client.post("/waitlist/", form(within="1"), follow=True).content.decode()
    assert "You wait for it" in answer
    waiting = Waiting.objects.get()
    assert waiting.closes - waiting.opens == timedelta(days=1)
    answer = client.post(f"/waitlist/{waiting.pk}/leave/", follow=True).content.decode()
    assert "You wait for it no more" in answer
    assert "You wait for</h2>" not in answer


@pytest.mark.parametrize(("begins", "is_offered"), [("later", True), ("now", False)])
def test_of_a_slot_that_begins_now_another_time_is_offered(
    client: Client, taken: Booking, begins: str, is_offered: bool
) -> None:
    """Waiting makes it shorter than what is waited for."""
    text = client.post("/book/", form(begins=begins)).content.decode()
    assert ("Wait for this time" in text) is is_offered
    assert "Wait for any time within a day" in text


@pytest.mark.parametrize(("within", "waits"), [("0", 0), ("1", 1)])
def test_nobody_waits_for_just_the_slot_that_begins_now(
    client: Client, taken: Booking, within: str, waits: int
) -> None:
    answer = client.post("/waitlist/", form(within=within, begins="now"), follow=True)
    assert ("A slot that begins now passes meanwhile" in answer.content.decode()) is not waits
    assert Waiting.objects.count() == waits


@pytest.mark.parametrize("changed", [{"within": "9"}, {"lane": "nowhere"}, {"length": ""}])
def test_bad_forms_are_told(client: Client, lane: Lane, changed: dict[str, str]) -> None:
    answer = client.post("/waitlist/", form(within="0") | changed, follow=True)
    assert "Say which lane" in answer.content.decode()
    assert not Waiting.objects.exists()


class TestTheWaitlist:
    """All that a member waits for, on any lanes, and what is held."""

    def wish(self, *lanes: str, **changed: str) -> dict[str, Any]:
        times = {"opens": local(0), "closes": local(600)}
        return {"lanes": list(lanes), "what": "gpu", "minutes": "60", **times, **changed}

    def test_waiting_for_any_of_several_lanes(self, client: Client, lane: Lane) -> None:
        other = builders.lane("other")
        page = client.post("/waitlist/", self.wish(*map(str, (lane.pk, other.pk))), follow=True)
        text = page.content.decode()
        assert "You wait for it" in text
        assert "<strong>demo, other</strong>" in text
        assert "place 1" in text

    def test_places_are_among_those_of_a_lane(self, client: Client, owner: User) -> None:
        first, second = builders.lane("demo"), builders.lane("other")
        now = clock.database_now()
        for name, lanes in (("ada", [first]), ("bo", [second]), ("cleo", [first, second])):
            made = Waiting.objects.create(
                owner=builders.person(name), kind="gpu", minutes=60, opens=now,
                closes=now + timedelta(hours=9), created_at=now,
            )  # fmt: skip
            made.lanes.set(lanes)
        client.post("/waitlist/", self.wish(str(first.pk)))
        client.post("/waitlist/", self.wish(str(second.pk)))
        assert [each.number for each in places_of(owner, now)] == [3, 3]
        assert client.get("/waitlist/").content.decode().count("place 3") == 2
        answer = signed_in(owner).get(URL).json()["results"]
        assert [each["place"] for each in answer] == [3, 3]

    @pytest.mark.parametrize(
        ("changed", "words", "status"),
        [
            ({"lanes": []}, "This field is required", 400),
            ({"lanes": ["0"]}, "choice", 400),
            ({"minutes": "480"}, "at least as long as the slot", 400),
            ({"opens": "soon"}, "Enter a date", 400),
        ],
    )
    def test_refusals(
        self, client: Client, lane: Lane, changed: dict[str, Any], words: str, status: int
    ) -> None:
        wish = self.wish(str(lane.pk), closes=local(300)) | changed
        answer = client.post("/waitlist/", wish)
        assert (answer.status_code, words in answer.content.decode()) == (status, True)
        assert not Waiting.objects.exists()

    def test_a_hold_is_taken_or_let_go_there_and_in_notices(
        self, client: Client, lane: Lane, owner: User
    ) -> None:
        hold = hold_for(owner)
        tell_bookings(clock.database_now())
        for address in ("/waitlist/", "/notices/", f"/bookings/{hold.pk}/"):
            text = client.get(address).content.decode()
            assert f"/bookings/{hold.pk}/confirm/" in text
            assert f"/bookings/{hold.pk}/cancel/" in text
            assert "Let it go" in text
        client.post(f"/bookings/{hold.pk}/cancel/", {"next": "/notices/"})
        assert ">Take it<" not in client.get("/notices/").content.decode()
        hold.refresh_from_db()
        assert (hold.state, hold.lapse) == (State.CANCELLED, "")

    def test_a_time_that_comes_twice_is_asked(
        self, client: Client, lane: Lane, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client.cookies["zone"] = "Europe/Berlin"
        autumn = datetime(2030, 10, 26, tzinfo=UTC)
        monkeypatch.setattr(clock, "database_now", lambda: autumn)
        wish = self.wish(str(lane.pk), opens="2030-10-27T02:30", closes="2030-10-27T09:00")
        answer = client.post("/waitlist/", wish)
        assert answer.status_code == 400
        assert "02:30 comes twice that night" in answer.content.decode()
        second = "2030-10-27T01:30:00+00:00"
        assert client.post("/waitlist/", wish | {"which_opens": second}).status_code == 302
        assert Waiting.objects.get().opens.isoformat() == second

    def test_leaving_leads_back(self, client: Client, lane: Lane) -> None:
        client.post("/waitlist/", self.wish(str(lane.pk)))
        pk = Waiting.objects.get().pk
        answer = client.post(f"/waitlist/{pk}/leave/", {"next": "/waitlist/"})
        assert answer["Location"] == "/waitlist/"


class TestBookingWhatIsHeldForOneself:
    """It is said to be hers, and how she takes it."""

    def wish(self, hold: Booking) -> dict[str, Any]:
        start = hold.start + timedelta(minutes=10)
        times = {"start": start.isoformat(), "end": hold.end.isoformat()}
        return {"lane": "demo", "kind": "gpu", "preset": None, **times}

    def test_the_page_offers_to_take_it(self, client: Client, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        text = client.post("/book/", form(start=local(30))).content.decode()
        assert "demo is held for you from " in text
        assert "Take it under My bookings by " in text
        assert "is taken" not in text
        assert f'formaction="/bookings/{hold.pk}/confirm/"' in text
        answer = client.post(f"/bookings/{hold.pk}/confirm/", headers={"X-In-Dialog": "1"})
        assert (answer.status_code, answer["X-Location"]) == (204, "/bookings/")
        hold.refresh_from_db()
        assert hold.state == State.CONFIRMED

    def test_so_does_what_is_foretold(self, client: Client, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        text = client.get("/book/expect/", form(start=local(30))).content.decode()
        assert f'formaction="/bookings/{hold.pk}/confirm/"' in text

    def test_rest_names_it(self, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        answer = signed_in(owner).post("/api/v1/bookings/", self.wish(hold), format="json")
        assert (answer.status_code, answer.json()["code"]) == (409, "slot_taken")
        assert answer.json()["held"]["booking"] == hold.pk
        until = datetime.fromisoformat(answer.json()["held"]["until"])
        assert until == hold.held_until
        assert "demo is held for you from " in answer.json()["detail"]

    def test_to_others_it_is_taken(self, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        other = signed_in(builders.person("other"))
        answer = other.post("/api/v1/bookings/", self.wish(hold), format="json")
        assert answer.status_code == 409
        assert "held" not in answer.json()
        assert "demo is taken from " in answer.json()["detail"]

    def test_what_others_have_of_it_is_said_too(self, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        builders.booking(
            lane=lane, owner=builders.person("ada"), kind="gpu", preset=None,
            start=hold.end, end=hold.end + timedelta(hours=1),
            original_end=hold.end + timedelta(hours=1),
        )  # fmt: skip
        later = {"end": (hold.end + timedelta(minutes=30)).isoformat()}
        answer = signed_in(owner).post("/api/v1/bookings/", self.wish(hold) | later, format="json")
        assert "demo is taken from " in answer.json()["detail"]
        assert "demo is held for you from " in answer.json()["detail"]


def test_one_word_for_taking_it(lane: Lane, owner: User) -> None:
    words = words_of("offered", hold_for(owner))
    assert "Take it, or it passes on." in words.sentence
    assert words.advice == "Take it under My bookings."


def test_a_mail_takes_it_or_lets_it_go(lane: Lane, owner: User, settings: Any) -> None:
    settings.SLOTSERVE_WEB_URL = "https://gpu.example.org"
    hold = hold_for(owner)
    tell_bookings(clock.database_now())
    mail = message_of(Notice.objects.get(kind="offered"))
    html = str(mail.alternatives[0][0])
    for text in (mail.body, html):
        assert "Take it" in text
        assert "Let it go" in text
    links = [line for line in str(mail.body).splitlines() if "/once/" in line]
    assert len(links) == 2
    let_go = links[1].removeprefix("https://gpu.example.org")
    assert "Let go what is held for you?" in Client().get(let_go).content.decode()
    assert "free for the next who waits" in Client().post(let_go).content.decode()
    hold.refresh_from_db()
    assert hold.state == State.CANCELLED


def test_a_hold_that_lapsed_says_so(client: Client, lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    Booking.objects.filter(pk=hold.pk).update(held_until=clock.database_now())
    hold.refresh_from_db()
    assert hold.status(clock.database_now()) is Status.LAPSED
    assert end_holds(clock.database_now()) == 1
    hold.refresh_from_db()
    assert hold.status(clock.database_now()) is Status.LAPSED
    page = client.get(f"/bookings/{hold.pk}/").content.decode()
    assert "Not taken in time" in page
    assert "It was not taken in time" in page
    answer = signed_in(owner).get(f"/api/v1/bookings/{hold.pk}/").json()
    assert (answer["state"], answer["status"]) == ("expired", "lapsed")


def test_a_hold_that_was_taken_and_never_approved_says_that(lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    now = clock.database_now()
    Booking.objects.filter(pk=hold.pk).update(state=State.EXPIRED, asked_at=now)
    hold.refresh_from_db()
    assert hold.status(now) is Status.EXPIRED


def test_what_was_typed_stays_when_waiting_is_refused(client: Client, lane: Lane) -> None:
    said = form(within="9", purpose="a long story", repeat="weekly", days="3")
    answer = client.post("/waitlist/", said, headers={"X-In-Dialog": "1"})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'value="a long story"' in page
    assert 'value="weekly" selected' in page
    assert 'id="book-parts"' in page


def test_nobody_elses_waiting_is_left(client: Client, taken: Booking) -> None:
    client.post("/waitlist/", form(within="1"))
    stranger = Client()
    stranger.force_login(builders.person("stranger"))
    pk = Waiting.objects.get().pk
    assert stranger.post(f"/waitlist/{pk}/leave/").status_code == 404


def test_a_hold_is_confirmed_on_the_page(client: Client, lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    page = client.get("/bookings/").content.decode()
    assert "held until" in page
    client.post(f"/bookings/{hold.pk}/confirm/")
    hold.refresh_from_db()
    assert hold.state == State.CONFIRMED


def test_a_hold_has_a_page_that_confirms_it(client: Client, owner: User, lane: Lane) -> None:
    hold = hold_for(owner)
    url = f"/bookings/{hold.pk}/"
    page = client.get(url).content.decode()
    assert "Held until" in page
    assert f"{url}confirm/" in page
    assert f"{url}end/" not in page  # nobody has it yet
    Booking.objects.filter(pk=hold.pk).update(held_until=clock.database_now())
    page = client.get(url).content.decode()
    assert "It was not taken in time" in page
    assert f"{url}confirm/" not in page


def test_its_member_is_told_and_confirms_without_a_log_in(lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    tell_bookings(clock.database_now())
    notice = Notice.objects.get(kind="offered")
    assert notice.recipient == owner
    assert "demo is held for you" in notice.sentence
    url = f"/once/{make_link(hold, Link.Action.CONFIRM)}/"
    assert "Book what is held for you?" in Client().get(url).content.decode()
    assert "It is booked until" in Client().post(url).content.decode()
    hold.refresh_from_db()
    assert hold.state == State.CONFIRMED
    tell_bookings(clock.database_now())
    assert Notice.objects.filter(kind="confirmed", booking_id_for=hold.pk).exists()


def test_a_released_no_show_is_told_with_its_reason(taken: Booking) -> None:
    assert "nobody sent a request" not in words_of("released", taken).sentence
    taken.lapse = Lapse.NO_SHOW
    assert "as nobody sent a request in time" in words_of("released", taken).sentence


class TestRest:
    """The same by REST."""

    def test_waiting_listing_leaving(self, taken: Booking, owner: User) -> None:
        client = signed_in(owner)
        made = client.post(URL, wish(), format="json").json()
        assert client.get(URL).json()["results"][0]["id"] == made["id"]
        stranger = signed_in(builders.person("stranger"))
        assert stranger.delete(f"{URL}{made['id']}/").status_code == 404
        assert client.delete(f"{URL}{made['id']}/").status_code == 204
        assert client.delete(f"{URL}{made['id']}/").status_code == 404

    def test_confirming(self, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        url = f"/api/v1/bookings/{hold.pk}/confirm/"
        assert signed_in(builders.person("stranger")).post(url).status_code == 403
        assert signed_in(owner).post(url).json()["state"] == "confirmed"
        assert signed_in(owner).post(url).status_code == 409

    @pytest.mark.parametrize(
        "changed",
        [
            {"lanes": []},
            {"lanes": ["nowhere"]},
            {"minutes": 0},
            {"minutes": 10**9},
            {"minutes": 600},
            {"opens": "2030-01-01T10:00"},
            {"closes": "1999-01-01T10:00Z"},
            {"kind": "model"},
            {"purpose": "\0"},
            {"colour": "red"},
        ],
    )
    def test_bad_wishes(self, lane: Lane, owner: User, changed: dict[str, Any]) -> None:
        assert signed_in(owner).post(URL, wish(**changed), format="json").status_code == 400

    def test_tokens_stay_on_their_lanes(self, lane: Lane, owner: User) -> None:
        other = with_token(owner, "bookings", lanes=(builders.lane("other"),))
        assert other.post(URL, wish(), format="json").status_code == 403
        assert APIClient().get(URL).status_code == 401


@pytest.mark.parametrize("address", ["/bookings/", "/waitlist/"])
def test_a_new_hold_is_shown_without_a_reload(
    client: Client, lane: Lane, owner: User, address: str
) -> None:
    before = client.get(address).content.decode()
    assert f'data-live-digest="{bookings_digest()}' in before
    hold = hold_for(owner)
    assert f'data-live-digest="{bookings_digest()}' not in before, "the page is told of it"
    part = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert f'data-live-digest="{bookings_digest()}' in part
    assert f"/bookings/{hold.pk}/confirm/" in part


def test_places_that_others_leave_are_shown_without_a_reload(lane: Lane, owner: User) -> None:
    """Leaving is no event of a lane."""
    first, second = (signed_in(builders.person(name)) for name in ("ada", "bo"))
    for each in (first, second):
        each.post(URL, wish(), format="json")
    page = Client()
    page.force_login(User.objects.get(username="bo"))
    before = page.get("/waitlist/").content.decode()
    assert "place 2" in before
    mine = Waiting.objects.get(owner__username="ada")
    first.delete(f"{URL}{mine.pk}/")
    assert f'data-live-digest="{bookings_digest()}' not in before
    assert "place 1" in page.get("/waitlist/").content.decode()


def test_a_window_that_closes_is_gone_within_a_minute(
    client: Client, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is no event: the part is asked for with each minute, and carries both digests."""
    then = clock.database_now()
    monkeypatch.setattr(clock, "database_now", lambda: then)
    topics = read_state().topics
    digests = f"{topics['bookings']} {topics['minute']}"
    part = f'data-live="bookings minute" data-live-digest="{digests}"'
    assert part in client.get("/waitlist/").content.decode()
    monkeypatch.setattr(clock, "database_now", lambda: then + timedelta(minutes=1))
    assert (read_state().topics["bookings"], read_state().topics["minute"] != topics["minute"]) == (
        topics["bookings"],
        True,
    )
    assert part not in client.get("/waitlist/").content.decode()
