"""Every page of the product by its URL's name, on the made-up company, and who looks at it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page

from bookings.models import Booking, Policy, Series, State
from lanes import announcements, clock, notices
from lanes.models import Lane, ModelFile, Outcome, Preset, TestLoad
from lanes.notices import News
from lanes.refusals import Refusal
from notices import endpoint_services, links
from notices.models import Link
from slotserve.demo.company import Company
from slotserve.demo.scale import Scale
from slotserve.demo.seeding import seed
from tests import browser_pages
from tests.browser_pages import Windows

PASSWORD = "a long password"
HOST = {"host": "localhost"}
MEMBER, ADMINISTRATOR, NOBODY = "member", "administrator", "nobody"


@dataclass(frozen=True, slots=True)
class Look:
    """A page, and who looks. `parts`: its address's parts, by their names in `Site.parts`."""

    name: str
    who: str = MEMBER
    parts: dict[str, str] = field(default_factory=dict)
    query: str = ""
    status: int = 200

    @property
    def key(self) -> str:
        """Its name in tables and messages."""
        return self.name + self.query


LANE, PRESET, BOOKING = {"slug": "lane"}, {"slug": "preset"}, {"pk": "booking"}
PAGES = (
    Look("overview"),
    Look("overview", query="?q=atlas"),
    Look("lane", parts=LANE),
    Look("lane", ADMINISTRATOR, LANE, "?as=administrator"),
    Look("lane-history", parts=LANE),
    Look("log", ADMINISTRATOR, LANE),
    Look("book", query="?lane=atlas-0"),
    Look("calendar"),
    Look("calendar", query="?view=day&as=list"),
    Look("calendar", query="?view=month&as=picture"),
    Look("calendar-booking", parts=BOOKING),
    Look("booking", parts=BOOKING),
    Look("move-booking", parts=BOOKING),
    Look("booking-series-release", parts=BOOKING),
    Look("bookings"),
    Look("extend", parts=BOOKING),
    Look("wait"),
    Look("catalogue"),
    Look("preset", parts=PRESET),
    Look("notices", ADMINISTRATOR),
    Look("preferences"),
    Look("once", NOBODY, {"secret": "secret"}),
    Look("playground"),
    Look("usage"),
    Look("usage", ADMINISTRATOR, query="?by=member"),
    Look("tokens"),
    Look("api-docs"),
    Look("administration", ADMINISTRATOR),
    Look("approvals", ADMINISTRATOR),
    Look("audit", ADMINISTRATOR),
    Look("new-lane", ADMINISTRATOR),
    Look("edit-lane", ADMINISTRATOR, LANE),
    Look("new-preset", ADMINISTRATOR),
    Look("edit-preset", ADMINISTRATOR, PRESET),
    Look("clone-preset", ADMINISTRATOR, PRESET),
    Look("test-load", ADMINISTRATOR, {"pk": "test"}),
    Look("hosts", ADMINISTRATOR),
    Look("add-host", ADMINISTRATOR),
    Look("edit-host", ADMINISTRATOR, {"key": "host"}),
    Look("models", ADMINISTRATOR),
    Look("new-model-file", ADMINISTRATOR),
    Look("new-model-folder", ADMINISTRATOR),
    Look("policies", ADMINISTRATOR),
    Look("new-policy", ADMINISTRATOR),
    Look("edit-policy", ADMINISTRATOR, {"pk": "policy"}),
    Look("announcements", ADMINISTRATOR),
    Look("members", ADMINISTRATOR),
    Look("edit-member", ADMINISTRATOR, {"pk": "person"}),
    Look("groups", ADMINISTRATOR),
    Look("invitations", ADMINISTRATOR),
    Look("follow-invitation", NOBODY, {"text": "host"}, status=404),
    Look("maintenance", ADMINISTRATOR),
    Look("webhooks", ADMINISTRATOR),
    Look("webhook", ADMINISTRATOR, {"pk": "webhook"}),
    Look("self-check", ADMINISTRATOR),
    Look("account_login", NOBODY),
    Look("account_reset_password", NOBODY),
    Look("account_reset_password_done", NOBODY),
    Look("account_reset_password_from_key", NOBODY, {"uidb36": "file", "key": "host"}),
    Look("account_reset_password_from_key_done", NOBODY),
    Look("account_signup", NOBODY),
    Look("account_inactive", NOBODY),
    Look("account_logout"),
    Look("account_reauthenticate"),
    Look("account_email"),
    Look("account_email_verification_sent"),
    Look("account_confirm_email", parts={"key": "host"}),
    Look("account_change_password"),
    Look("mfa_index"),
    Look("mfa_index", ADMINISTRATOR, query="?factors=0"),
    Look("mfa_reauthenticate"),
    Look("mfa_activate_totp", ADMINISTRATOR),
    Look("mfa_deactivate_totp"),
    Look("mfa_view_recovery_codes"),
    Look("mfa_generate_recovery_codes"),
    Look("mfa_list_webauthn"),
    Look("mfa_add_webauthn"),
    Look("socialaccount_connections"),
    Look("socialaccount_login_cancelled", NOBODY),
    Look("socialaccount_login_error", NOBODY, status=401),
    Look("admin:index", ADMINISTRATOR),
    Look("admin:auth_user_changelist", ADMINISTRATOR),
    Look("admin:auth_user_add", ADMINISTRATOR),
    Look("admin:auth_user_change", ADMINISTRATOR, {"object_id": "person"}),
)
NO_PAGES = {
    "only what is sent there does something": "calendar-address calendar-move change choose "
    "clear-choice reload retry read-notices push end-push playground-token test-webhook "
    "delete-webhook replay revoke delete-lane begin-test stop-test delete-preset archive-preset "
    "bring-back-preset revoke-join-token delete-host remove-model-folder rescan-models "
    "forget-model preset-of-model lane-default delete-policy dismiss-announcement "
    "end-announcement set_language remove-member rename-group remove-group revoke-invitation "
    "leave end-maintenance change-maintenance slot-token booking-end booking-share "
    "booking-unshare give-booking",
    "a part of a page": "use lane-gpus lane-gpu-day expect preview-new-preset preview-preset "
    "announcements-now booking-load",
    "read by programs": "events icon calendar-events calendar-feed calendar-file push-worker "
    "usage-export audit-export ready mfa_login_webauthn mfa_download_recovery_codes",
    "leads elsewhere unless somebody is in the middle of it": "accept-invitation "
    "account_set_password "
    "account_confirm_login_code account_request_reauthentication_code "
    "account_confirm_reauthentication_code mfa_authenticate mfa_reauthenticate_webauthn "
    "mfa_remove_webauthn mfa_edit_webauthn socialaccount_signup openid_connect_login "
    "openid_connect_callback confirm-by-sign-on",
}  # and all of REST; of Django's own administration only what is in PAGES


@dataclass(frozen=True, slots=True)
class Site:
    """What was made, and clients of those who look."""

    company: Company
    parts: dict[str, object]
    clients: dict[str, Client]

    def address(self, look: Look) -> str:
        """Where the page is."""
        parts = {name: self.parts[of] for name, of in look.parts.items()}
        return reverse(look.name, kwargs=parts or None) + look.query


SMALL = Scale(lanes=6, members=6, bookings=60, requests=2)


def made(scale: Scale = SMALL) -> Site:
    """The company, and something to show on every page."""
    company = seed(scale, "")
    assert not isinstance(company, Refusal), company
    morgan, now = company.administrator, clock.database_now()
    member = Booking.objects.filter(end__gt=now, state=State.CONFIRMED).earliest("start").owner
    for person in (member, morgan):
        person.set_password(PASSWORD)
        person.save()
    TOTP.activate(member, generate_totp_secret())
    RecoveryCodes.activate(member)
    announcements.announce(
        text="Maintenance on Friday.", level="info", starts_at=None, ends_at=None, actor=morgan
    )
    _tell(member, morgan)
    clients = {
        NOBODY: Client(headers=HOST),
        MEMBER: _client(member),
        ADMINISTRATOR: _client(morgan),
    }
    return Site(company, _parts(member, morgan), clients)


def _parts(member: User, administrator: User) -> dict[str, object]:
    now = clock.database_now()
    own = Booking.objects.filter(owner=member, end__gt=now, state=State.CONFIRMED)
    booking = own.earliest("start")
    booking.series = Series.objects.create(
        owner=member, zone="Europe/Berlin", every="weekly", days=[1, 3], count=8, created_at=now
    )
    booking.save()
    preset = Preset.objects.get(slug="qwen3-14b")
    endpoint = endpoint_services.add(
        name="Ours", kind="webhook", url="https://example.org/hook", events=["confirmed"],
        actor=administrator, now=now,
    )  # fmt: skip
    assert not isinstance(endpoint, Refusal), endpoint
    endpoint_services.send_test(endpoint[0], actor=administrator, now=now)
    test = TestLoad.objects.create(
        lane=Lane.objects.get(slug="atlas-0"), revision=preset.revisions.latest("number"),
        asked_at=now, asked_by=administrator, outcome=Outcome.PASSED, ended_at=now,
        load_seconds=31.5,
    )  # fmt: skip
    return {
        "lane": "atlas-0",
        "preset": "qwen3-14b",
        "host": "atlas",
        "booking": booking.pk,
        "secret": links.make_link(booking, Link.Action.EXTEND),
        "policy": Policy.objects.earliest("pk").pk,
        "webhook": endpoint[0].pk,
        "test": test.pk,
        "file": ModelFile.objects.earliest("pk").pk,
        "person": member.pk,
    }


def _tell(member: User, administrator: User) -> None:
    """Each has notices that are not read, in all their parts: about a booking, with advice."""
    lane, now = Lane.objects.get(slug="atlas-0"), clock.database_now()
    booking = Booking.objects.filter(owner=member, end__gt=now, state=State.CONFIRMED)
    about = booking.earliest("start").pk
    news = [
        News("failed:1", "failed", "It does not load.", "Lower -c.", lane=lane, booking=about),
        News("disk:1", "disk", "The disk is nearly full."),
    ]
    for each in news:
        notices.tell_people([member, administrator], each, now)


def _client(person: User) -> Client:
    """Logged in, with the password confirmed just now."""
    client = Client(headers=HOST)
    client.force_login(person)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    return client


def window_of(windows: Windows, site: Site, who: str, language: str = "en") -> Page:
    """A window with this person's session."""
    page = windows.open()
    cookies = {"zone": browser_pages.ZONE, settings.LANGUAGE_COOKIE_NAME: language}
    session = site.clients[who].cookies.get(settings.SESSION_COOKIE_NAME)
    if session is not None:
        cookies[settings.SESSION_COOKIE_NAME] = session.value
    for name, value in cookies.items():
        page.context.add_cookies([{"name": name, "value": value, "url": windows.address}])
    return page


def url_names() -> set[str]:
    """Of everything that has an address, but for REST and Django's own administration."""
    return set(_names(get_resolver().url_patterns)) - {""}


def rest_names() -> set[str]:
    """Of REST's addresses, as it is given them by its router."""
    (rest,) = [each for each in get_resolver().url_patterns if str(each.pattern) == "api/v1/"]
    assert isinstance(rest, URLResolver)
    return set(_names(rest.url_patterns)) - {""}


def _names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or ""
        elif str(pattern.pattern) not in {"admin/", "api/v1/"}:
            yield from _names(pattern.url_patterns)
