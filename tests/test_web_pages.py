"""The pages, through Django's client: what each role sees and can do."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from gateway.models import ApiToken
from lanes import clock
from lanes.models import Lane, ManualChoice, Phase, Preset
from tests import browser_pages, builders
from wire.zones import zone_named

pytestmark = pytest.mark.django_db
PAGES = ["/", "/lanes/demo/", "/book/", "/bookings/", "/tokens/", "/api/v1/docs/"]
STAFF_PAGES = [
    "/administration/",
    "/administration/lanes/new/",
    "/administration/lanes/demo/",
    "/administration/presets/new/",
    "/administration/presets/qwen2.5-7b/",
    "/administration/models/",
    "/administration/models/new/",
    "/administration/models/folders/new/",
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


def test_what_is_to_be_pasted_names_the_model_that_is_on_its_way(
    lane: Lane, member: Client
) -> None:
    small = Preset.objects.get()
    browser_pages.order(lane, small)
    browser_pages.runtime(lane, small, Phase.READY)
    browser_pages.order(lane, builders.preset("large"))  # as after booking it
    page = member.get("/lanes/demo/").content.decode()
    assert '"model": "<span data-model-name>large</span>"' in page


def test_pages_are_in_the_zone_that_the_browser_wrote_encoded(member: Client) -> None:
    member.cookies["zone"] = "Europe%2FBerlin"
    assert "Times are in Europe/Berlin" in member.get("/book/").content.decode()


@pytest.mark.parametrize(
    "name", ["", "nowhere", "../etc/passwd", "/etc/localtime", "\x00", "a" * 999]
)
def test_a_cookie_that_is_no_zone_changes_nothing(name: str) -> None:
    assert zone_named(name) is None


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


def test_pressing_choose_as_it_stands_unloads_nothing(lane: Lane) -> None:
    page = signed_in("administrator").get("/lanes/demo/").content.decode()
    assert '<option value="qwen2.5-7b" selected>' in page
    assert '<option value="" selected>' not in page


def test_an_administrator_edits_a_preset(lane: Lane) -> None:
    client = signed_in("administrator")
    revision = Preset.objects.get().current
    assert revision is not None
    form = {"name": "Qwen", "model_file": revision.model_file_id, "arguments": "-c 512 --port 1"}
    form["engine"] = "llama.cpp"
    answer = client.post("/administration/presets/qwen2.5-7b/", form, follow=True)
    assert "--port" in answer.content.decode()
    current = Preset.objects.get().current
    assert current is not None
    assert (current.number, current.arguments) == (2, ["-c", "512"])
    page = client.get("/administration/presets/qwen2.5-7b/").content.decode()
    assert "--port was left out" in page


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


def test_a_fragment_whose_session_has_ended_leads_its_page_to_log_in(lane: Lane) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/lanes/demo/"}
    answer = Client().get("/lanes/demo/", headers=headers)
    assert answer.status_code == 200
    assert answer["HX-Redirect"] == "/accounts/login/?next=/lanes/demo/"
    assert not answer.content


@pytest.mark.parametrize(
    ("referer", "page"),
    [
        ("http://testserver/lanes/demo/", "/lanes/demo/"),
        ("http://elsewhere/lanes/demo/", "/"),
        ("", "/"),
    ],
)
def test_a_form_whose_session_has_ended_leads_back_to_its_page(referer: str, page: str) -> None:
    answer = Client().post("/bookings/1/release/", headers={"Referer": referer})
    assert answer["Location"] == f"/accounts/login/?next={page}"


def test_a_refused_choice_comes_back_as_typed(lane: Lane) -> None:
    client = signed_in("administrator")
    form = {"preset": "qwen2.5-7b", "until": "2020-01-01T10:00"}
    answer = client.post("/lanes/demo/choose/", form)
    assert answer.status_code == 400
    assert 'value="2020-01-01T10:00"' in answer.content.decode()
    assert "must end in the future" in answer.content.decode()
    assert client.get("/lanes/demo/choose/")["Location"] == "/lanes/demo/"


def test_a_lane_keeps_its_short_name_and_host(lane: Lane) -> None:
    builders.host("far")
    form = {"slug": "other", "name": "Renamed", "host": "far", "enabled": "on"}
    signed_in("administrator").post("/administration/lanes/demo/", form)
    lane.refresh_from_db()
    assert (lane.slug, lane.name, lane.host.key) == ("demo", "Renamed", "test-host")


def test_a_file_larger_than_any_lanes_memory_is_marked(lane: Lane) -> None:
    builders.model_file(size_bytes=25 * 10**9)
    client = signed_in("administrator")
    assert "Larger than GPU memory" not in client.get("/administration/models/").content.decode()
    lane.gpus.add(builders.gpu(memory_bytes=24 * 10**9))
    assert "Larger than GPU memory" in client.get("/administration/models/").content.decode()
