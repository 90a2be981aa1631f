"""The pages, through Django's client: what each role sees and can do."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from bookings.models import Booking, State
from gateway.models import ApiToken
from lanes import clock
from lanes.models import Lane, ManualChoice, Preset
from slotserve.web.zones import read_zone
from tests import builders

pytestmark = pytest.mark.django_db
PAGES = ["/", "/lanes/demo/", "/book/", "/bookings/", "/tokens/", "/api/v1/docs/"]
STAFF_PAGES = [
    "/administration/",
    "/administration/lanes/new/",
    "/administration/lanes/demo/",
    "/administration/presets/new/",
    "/administration/presets/qwen2.5-7b/",
    "/administration/models/new/",
    "/lanes/demo/log/",
]


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo", default_preset=builders.preset("qwen2.5-7b"))


@pytest.fixture
def member(lane: Lane) -> Client:
    return signed_in("member")


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(builders.administrator() if name == "administrator" else _person(name))
    return client


def _person(name: str) -> User:
    return builders.person(name)


def local(minutes: int) -> str:
    moment = timezone.localtime(clock.database_now() + timedelta(minutes=minutes))
    return moment.strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize("page", [p for p in PAGES if "docs" not in p] + STAFF_PAGES)
def test_strangers_are_sent_to_log_in(lane: Lane, page: str) -> None:
    answer = Client().get(page)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("page", PAGES)
def test_members_see_their_pages(member: Client, page: str) -> None:
    answer = member.get(page)
    assert answer.status_code == 200
    assert "style=" not in answer.content.decode()


@pytest.mark.parametrize("page", STAFF_PAGES)
def test_administration_is_for_administrators(member: Client, page: str) -> None:
    assert member.get(page).status_code == 403
    assert signed_in("administrator").get(page).status_code == 200


def test_the_overview_refreshes_as_a_fragment(member: Client) -> None:
    fragment = member.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment
    assert "demo" in fragment


def test_a_member_books_now_and_gives_it_back(member: Client) -> None:
    form = {"lane": "demo", "what": "preset:qwen2.5-7b", "begins": "now", "end": local(60)}
    answer = member.post("/book/", form, follow=True)
    assert "is yours until" in answer.content.decode()
    booking = Booking.objects.get()
    answer = member.post(f"/bookings/{booking.pk}/release/", follow=True)
    assert "Given back" in answer.content.decode()
    booking.refresh_from_db()
    assert booking.released_at is not None


def test_a_taken_slot_offers_the_nearest_free_ones(member: Client) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(60)}
    member.post("/book/", form)
    answer = signed_in("owner").post("/book/", form)
    assert answer.status_code == 409
    assert "Take " in answer.content.decode()


@pytest.mark.parametrize(
    "changed",
    [
        {"end": ""},
        {"end": "soon"},
        {"begins": "later", "start": ""},
        {"what": "preset:nothing"},
        {"lane": "nowhere"},
        {"end": "2020-01-01T10:00"},
    ],
)
def test_a_bad_form_comes_back_with_words(member: Client, changed: dict[str, str]) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(60)} | changed
    answer = member.post("/book/", form)
    assert answer.status_code in {400, 409}
    assert 'role="alert"' in answer.content.decode()
    assert not Booking.objects.exists()


def test_times_are_read_in_the_viewers_zone(member: Client) -> None:
    member.cookies["zone"] = "Pacific/Auckland"
    form = {"lane": "demo", "what": "gpu", "begins": "later"}
    times = {"start": "2027-07-01T10:00", "end": "2027-07-01T11:00"}
    member.post("/book/", form | times)
    booking = Booking.objects.get()
    assert booking.start.astimezone(ZoneInfo("Pacific/Auckland")).hour == 10


@pytest.mark.parametrize(
    "name", ["", "nowhere", "../etc/passwd", "/etc/localtime", "\x00", "a" * 999]
)
def test_a_cookie_that_is_no_zone_changes_nothing(name: str) -> None:
    assert read_zone(name) is None


def test_another_members_booking_stays(member: Client, lane: Lane) -> None:
    now = clock.database_now()
    booking = builders.booking(lane=lane, start=now - timedelta(minutes=5))
    for name in ("release", "cancel", "approve", "reject"):
        member.post(f"/bookings/{booking.pk}/{name}/")
    booking.refresh_from_db()
    assert booking.state == State.CONFIRMED
    assert booking.released_at is None


def test_a_new_token_is_shown_in_that_answer_only(member: Client) -> None:
    answer = member.post("/tokens/", {"name": "laptop", "scopes": ["inference"]})
    assert "ss_" in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    text = answer.context["text"]
    assert text not in member.get("/tokens/").content.decode()


def test_a_token_is_revoked(member: Client) -> None:
    member.post("/tokens/", {"name": "laptop", "scopes": ["inference"]})
    token = ApiToken.objects.get()
    member.post(f"/tokens/{token.pk}/revoke/")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_an_administrator_chooses_and_ends_a_choice(lane: Lane) -> None:
    client = signed_in("administrator")
    client.post("/lanes/demo/choose/", {"preset": "", "until": local(60)})
    choice = ManualChoice.objects.get()
    assert choice.preset is None
    client.post("/lanes/demo/clear-choice/")
    choice.refresh_from_db()
    assert choice.ended_at is not None


def test_an_administrator_edits_a_preset(lane: Lane) -> None:
    client = signed_in("administrator")
    revision = Preset.objects.get().current
    assert revision is not None
    form = {"name": "Qwen", "model_file": revision.model_file_id, "arguments": "-c 512 --port 1"}
    answer = client.post("/administration/presets/qwen2.5-7b/", form, follow=True)
    assert "--port" in answer.content.decode()
    current = Preset.objects.get().current
    assert current is not None
    assert (current.number, current.arguments) == (2, ["-c", "512"])


def test_an_open_quote_in_arguments_is_explained(lane: Lane) -> None:
    form = {"slug": "x", "name": "x", "model_file": 1, "arguments": "'-c"}
    answer = signed_in("administrator").post("/administration/presets/new/", form)
    assert answer.status_code == 400
    assert "quote" in answer.content.decode()


def test_what_does_not_exist_is_a_page(member: Client) -> None:
    answer = member.get("/lanes/nowhere/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()


def test_pages_forbid_inline_script_and_style(member: Client) -> None:
    policy = member.get("/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy


def test_sign_up_is_closed(lane: Lane) -> None:
    page = Client().get("/accounts/signup/").content.decode()
    assert "closed" in page.lower()


def test_ready_needs_the_overlap_guards(lane: Lane) -> None:
    assert Client().get("/ready/").json()["ready"] is True
