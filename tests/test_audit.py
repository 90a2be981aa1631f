"""The audit trail: who changed what, from what to what, and no secret in it."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.utils import translation
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from bookings import choices, deleting, policy_service
from bookings import services as booking_services
from bookings.models import Booking, Policy
from bookings.policy_rows import ApprovalChoice
from gateway import limits, tokens
from gateway.browser_tokens import make_browser_token
from gateway.limits import RateLimits
from gateway.models import ApiToken, Scope
from gateway.tasks import prune_audit
from lanes import announcements, audit, clock, host_services, joining, services
from lanes.audit_words import FIELDS, labels_of
from lanes.models import Announcement, AuditEntry, Lane, Preset, Subject
from lanes.presets import SavedPreset, save_preset
from lanes.refusals import Refusal
from notices import endpoint_services
from notices.events import Event
from notices.models import Endpoint
from slotserve import groups, invitations, members
from slotserve.csv_answers import written
from slotserve.members import Member
from slotserve.web.audit import batches
from tests import builders
from tests.booking_cast import booked, done

pytestmark = pytest.mark.django_db
URL = "/administration/audit/"
HOUR = timedelta(hours=1)


@pytest.fixture
def boss() -> User:
    return builders.administrator()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def told() -> list[str]:
    """Every sentence with its changes, the oldest first."""
    return [
        entry.told + "".join(f"; {c.label}: {c.old} > {c.new}" for c in audit.changes_of(entry))
        for entry in AuditEntry.objects.order_by("pk")
    ]


def well(answer: Any) -> Any:
    """What a service answered, if it did not refuse."""
    assert not isinstance(answer, Refusal), answer
    return answer


class TestServices:
    def test_lanes(self, boss: User) -> None:
        lane = well(
            services.save_lane(None, actor=boss, slug="fast", name="Fast", host=builders.host())
        )
        well(services.save_lane(lane, actor=boss, needs_approval=True, name="Faster"))
        well(services.save_lane(lane, actor=boss, needs_approval=True))
        choices.reload(lane, actor=boss)
        assert deleting.delete_lane(Lane.objects.get(), actor=boss) is None
        assert told() == [
            "administrator made the lane Fast; short name: nothing > fast; name: nothing > Fast; "
            "host: nothing > test-host; enabled: nothing > yes",
            "administrator changed the lane Faster; name: Fast > Faster; needs approval: no > yes",
            "administrator on Fast: a reload was asked for",
            "administrator deleted the lane Faster",
        ]

    def test_presets_tell_revisions_and_nothing_of_what_they_say(self, boss: User) -> None:
        file = builders.model_file()
        wish: dict[str, Any] = {"slug": "small", "model_file": file, "actor": boss}
        well(save_preset(**wish))
        made = well(
            save_preset(**wish, arguments=["-c", "2048"], environment={"OWN_TOKEN": "hf_secret"})
        )
        assert isinstance(made, SavedPreset)
        well(save_preset(**wish, arguments=["-c", "2048"], environment={"OWN_TOKEN": "hf_secret"}))
        preset = Preset.objects.get()
        deleting.archive_preset(preset, actor=boss)
        deleting.archive_preset(preset, actor=boss)
        deleting.bring_back_preset(preset, actor=boss)
        assert deleting.delete_preset(Preset.objects.get(), actor=boss) is None
        assert told() == [
            "administrator made the preset small; name: nothing > small; revision: nothing > 1",
            "administrator changed the preset small; revision: 1 > 2",
            "administrator archived the preset small",
            "administrator brought the preset small back",
            "administrator deleted the preset small",
        ]
        assert "secret" not in str(list(AuditEntry.objects.values()))

    def test_hosts_and_join_tokens(self, boss: User, settings: Settings) -> None:
        settings.SLOTSERVE_HOSTS_DATABASE_URL = "postgresql://u:p@10.0.0.1/slotserve"
        settings.SLOTSERVE_HOSTS_REDIS_URL = "redis://:p@10.0.0.1:6379/0"
        host = builders.host()
        well(host_services.save_host(host, actor=boss, address="10.0.0.5"))
        made, text = well(
            joining.create_join_token(actor=boss, key="gpu1", name="", address="10.0.0.6")
        )
        well(joining.join(text))
        joining.revoke_join_token(made.pk, actor=boss)
        assert deleting.delete_host(host, actor=boss) is None
        sentences = [entry.told for entry in AuditEntry.objects.order_by("pk")]
        assert sentences == [
            "administrator changed the host test-host",
            "administrator made a join token for the host gpu1",
            "A machine joined as the host gpu1, by a token of administrator",
            "administrator revoked the join token for the host gpu1",
            "administrator deleted the host test-host",
        ]
        assert text not in str(list(AuditEntry.objects.values()))

    def test_rules(self, boss: User) -> None:
        lane, group = builders.lane("fast"), Group.objects.create(name="team")
        small = builders.preset("small")
        row = well(
            policy_service.save_policy(None, actor=boss, lane=lane, group=group, day_hours=4.0)
        )
        well(
            policy_service.save_policy(
                row, actor=boss, day_hours=6.0, preset_choice="listed", presets=[small]
            )
        )
        assert policy_service.delete_policy(row, actor=boss) is None
        assert told()[:2] == [
            "administrator made the rules of fast for team; hours a day: nothing > 4.0",
            "administrator changed the rules of fast for team; which presets: nothing > "
            "Only those listed; presets: nothing > small; hours a day: 4.0 > 6.0",
        ]
        assert told()[2].startswith("administrator deleted the rules of fast for team")

    def test_members_groups_and_invitations(self, boss: User) -> None:
        team = well(groups.save_group(None, "team", actor=boss))
        well(groups.save_group(team, "staff", actor=boss))
        wish: dict[str, Any] = {"email": "ada@example.org", "groups": [team]}
        made, text = well(
            invitations.invite(actor=boss, is_administrator=False, lifetime=HOUR, **wish)
        )
        ada = well(invitations.accept(made, username="ada", password="Quite-long-17"))
        asked = Member("ada", "ada@example.org", "Ada", "", is_administrator=True, is_active=True)
        well(members.save_member(ada, asked, [], actor=boss))
        well(limits.set_member_limits(ada, RateLimits(7, None), actor=boss))
        well(members.remove_member(ada, actor=boss, releases=True))
        assert groups.delete_group(team, actor=boss) is None
        assert told() == [
            "administrator made the group team; name: nothing > team",
            "administrator changed the group staff; name: team > staff",
            told()[2],
            told()[3],
            "administrator changed the member ada; first name: nothing > Ada; "
            "administrator: no > yes; groups: staff > nothing",
            "administrator changed the limits of ada; requests per minute: nothing > 7",
            "administrator removed the member ada",
            "administrator deleted the group staff",
        ]
        assert told()[2].startswith(
            "administrator invited ada@example.org; groups: nothing > staff"
        )
        assert told()[3].startswith("ada became a member by an invitation of administrator; user")
        rows = str(list(AuditEntry.objects.values()))
        assert text not in rows
        assert "Quite-long-17" not in rows
        assert "pbkdf2" not in rows

    def test_tokens(self, boss: User) -> None:
        owner = builders.person()
        made, text = well(
            tokens.create_token(
                owner=owner, name="laptop", scopes=["read"], lanes=[], expires_at=None
            )
        )
        well(limits.set_token_limits(made, RateLimits(5, None), actor=boss) or made)
        tokens.revoke(made, actor=boss)
        tokens.revoke(made, actor=boss)
        assert told() == [
            "owner made the token laptop; scopes: nothing > See lanes, presets and usage",
            "administrator changed the token laptop of owner; requests per minute: nothing > 5",
            "administrator revoked the token laptop of owner",
        ]
        rows = str(list(AuditEntry.objects.values()))
        assert text[3:] not in rows
        assert ApiToken.objects.get().digest not in rows

    def test_bookings_of_others_alone(self, boss: User) -> None:
        lane, now = builders.lane("fast"), clock.database_now()
        start = now.replace(microsecond=0) + HOUR
        booking = booked(lane, start=start, end=start + HOUR)
        done(booking_services.extend(booking, actor=booking.owner, end=start + 2 * HOUR))
        assert told() == []
        done(booking_services.move(booking, actor=boss, start=start + HOUR, end=start + 2 * HOUR))
        entry = AuditEntry.objects.get()
        assert entry.sentence.startswith("administrator moved the booking of owner: the whole GPU")
        assert [change.name for change in audit.changes_of(entry)] == ["start"]
        done(booking_services.cancel(booking, actor=boss))
        assert "state: Confirmed > Cancelled" in told()[1]

    def test_announcements_webhooks_and_choices(self, boss: User) -> None:
        made = well(
            announcements.announce(
                text="Down at 9", level="info", starts_at=None, ends_at=None, actor=boss
            )
        )
        assert isinstance(made, Announcement)
        announcements.end(made, actor=boss)
        endpoint, secret = well(
            endpoint_services.add(
                name="room",
                kind="webhook",
                url="https://example.org/hidden",
                events=["failure"],
                actor=boss,
                now=clock.database_now(),
            )
        )
        well(endpoint_services.change(endpoint, actor=boss, is_on=False))
        endpoint_services.remove(endpoint, actor=boss)
        assert [entry.told for entry in AuditEntry.objects.order_by("pk")] == [
            "administrator announced: Down at 9",
            "administrator ended the announcement: Down at 9",
            "administrator added room to webhooks and chat",
            "administrator changed room of webhooks and chat",
            "administrator removed room from webhooks and chat",
        ]
        rows = str(list(AuditEntry.objects.values()))
        assert secret not in rows
        assert "hidden" not in rows

    @pytest.mark.parametrize(
        "refused",
        [
            lambda who: services.save_lane(None, actor=who, slug="x", host=builders.host()),
            lambda who: policy_service.save_policy(None, actor=who, day_hours=1.0),
            lambda who: groups.save_group(None, "team", actor=who),
        ],
    )
    def test_what_is_refused_leaves_nothing(self, refused: Callable[[User], object]) -> None:
        assert isinstance(refused(builders.person("member")), Refusal)
        assert told() == []

    def test_it_goes_with_the_transaction(self, boss: User) -> None:
        def failing() -> None:
            with transaction.atomic():
                groups.save_group(None, "team", actor=boss)
                raise ValueError("half-way")

        with pytest.raises(ValueError, match="half-way"):
            failing()
        assert told() == []


def test_only_listed_fields_are_written(boss: User) -> None:
    about = audit.About(Subject.ENDPOINT, 1, "room")
    audit.note("endpoint.changed", boss, about, before={"sealed_url": "a"}, after={"url": "b"})
    assert told() == []
    audit.note("endpoint.changed", boss, about, after={"url": "b", "is_on": True})
    assert told() == ["administrator changed room of webhooks and chat; switched on: nothing > yes"]


def test_values_of_choices_are_told_in_the_readers_words(boss: User) -> None:
    row = well(policy_service.save_policy(None, actor=boss, approval="always"))
    well(policy_service.save_policy(row, actor=boss, approval="beyond", approval_hours=2.0))
    assert told()[0].endswith("; approval: nothing > All")
    assert "; approval: All > Those longer than so many hours; " in told()[1]
    with translation.override("de"):
        assert "always" not in told()[1]
        assert str(ApprovalChoice.BEYOND.label) in told()[1]


def test_every_choice_that_the_trail_tells_has_words() -> None:
    """Of a field of a model with choices: a new one is not told as a code."""
    models = {
        Subject.LANE: Lane,
        Subject.POLICY: Policy,
        Subject.BOOKING: Booking,
        Subject.ANNOUNCEMENT: Announcement,
        Subject.ENDPOINT: Endpoint,
        Subject.TOKEN: ApiToken,
    }
    for subject, model in models.items():
        for field in model._meta.fields:
            if field.name in FIELDS[subject]:
                codes = {code for code, _ in field.choices or ()}
                assert codes <= set(labels_of(subject, field.name)), field
    assert set(labels_of(Subject.TOKEN, "scopes")) == set(Scope)
    assert set(labels_of(Subject.ENDPOINT, "events")) == set(Event)


def test_it_outlives_its_person_and_is_told_in_the_readers_language(boss: User) -> None:
    gone = User.objects.create(username="gone", is_staff=True)
    groups.save_group(None, "team", actor=gone)
    gone.delete()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name) == (None, "gone")
    with translation.override("de"):
        assert "team" in entry.told


def test_rules_that_go_are_not_told_to_have_lost_what_they_never_said(boss: User) -> None:
    row = well(policy_service.save_policy(None, actor=boss, max_minutes=120))
    policy_service.delete_policy(row, actor=boss)
    entry = AuditEntry.objects.get(kind="policy.deleted")
    assert [(each.old, each.new) for each in audit.changes_of(entry)] == [("120", "nothing")]


def test_old_entries_are_dropped(
    boss: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = clock.database_now() - timedelta(days=8)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "database_now", lambda *a: then)
        groups.save_group(None, "old", actor=boss)
    groups.save_group(None, "new", actor=boss)
    settings.SLOTSERVE_AUDIT_DAYS = 7.0
    prune_audit()
    assert [entry.subject_name for entry in AuditEntry.objects.all()] == ["new"]


class TestPage:
    @pytest.fixture(autouse=True)
    def _some(self, boss: User) -> None:
        groups.save_group(None, "=team", actor=boss)
        services.save_lane(None, actor=boss, slug="fast", name="Fast", host=builders.host())
        tokens.create_token(
            owner=builders.person(), name="laptop", scopes=["read"], lanes=[], expires_at=None
        )

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({}, ["laptop", "Fast", "=team"]),
            ({"person": "owner"}, ["laptop"]),
            ({"subject": "lane"}, ["Fast"]),
            ({"named": "eam"}, ["=team"]),
            ({"kind": "token.made"}, ["laptop"]),
            ({"from": "2020-01-01", "to": "2020-02-01"}, []),
            ({"from": "2020-01-01"}, ["laptop", "Fast", "=team"]),
        ],
    )
    def test_it_is_narrowed_everywhere_alike(
        self, boss: User, query: dict[str, str], names: list[str]
    ) -> None:
        client, programs = signed_in(boss), APIClient()
        programs.force_login(boss)
        page = client.get(URL, query)
        assert [entry.subject_name for entry, *_ in page.context["rows"]] == names
        answer = programs.get("/api/v1/audit/", query)
        assert [row["name"] for row in answer.data["results"]] == names
        text = written(row for batch in batches(page.context["asked"]) for row in batch)
        guarded = [f"'{name}" if name.startswith("=") else name for name in names]
        assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == guarded

    @pytest.mark.parametrize(
        "query",
        [{"from": "x"}, {"to": "2030-13-01"}, {"subject": "x"}, {"before": "x"}, {"before": "0"},
         {"before": "9" * 40}],
    )  # fmt: skip
    def test_nonsense_is_refused_in_words(self, boss: User, query: dict[str, str]) -> None:
        client, programs = signed_in(boss), APIClient()
        programs.force_login(boss)
        assert client.get(URL, query).status_code == 400
        assert client.get(f"{URL}export.csv", query).status_code == 400
        answer = programs.get("/api/v1/audit/", query)
        assert (answer.status_code, list(answer.data["fields"])) == (400, list(query))
        assert programs.get("/api/v1/audit/", {"persn": "x"}).status_code == 400

    def test_members_see_nothing_of_it(self) -> None:
        client, programs = signed_in(builders.person("member")), APIClient()
        programs.force_login(builders.person("member"))
        assert client.get(URL).status_code == 403
        assert client.get(f"{URL}export.csv").status_code == 403
        assert programs.get("/api/v1/audit/").status_code == 403
        pk = AuditEntry.objects.latest("pk").pk
        assert programs.get(f"/api/v1/audit/{pk}/").status_code == 403
        assert Client().get(URL).status_code == 302
        assert APIClient().get("/api/v1/audit/").status_code == 401

    def test_pages_go_on_by_number(self, boss: User) -> None:
        for number in range(60):
            groups.save_group(None, f"group-{number}", actor=boss)
        client = signed_in(boss)
        first = client.get(URL, {"subject": "group"})
        groups.save_group(None, "meanwhile", actor=boss)
        second = client.get(f"{URL}?{first.context['older']}")
        seen = [e.subject_name for page in (first, second) for e, *_ in page.context["rows"]]
        assert len(seen) == len(set(seen)) == 61

    def test_programs_cannot_write_it(self, boss: User) -> None:
        programs = APIClient()
        programs.force_login(boss)
        pk = AuditEntry.objects.latest("pk").pk
        assert programs.post("/api/v1/audit/", {}).status_code == 405
        assert programs.delete(f"/api/v1/audit/{pk}/").status_code == 405
        changes = programs.get(f"/api/v1/audit/{pk}/").data["changes"]
        assert changes == [
            {
                "name": "scopes",
                "label": "scopes",
                "old": "nothing",
                "new": "See lanes, presets and usage",
            }
        ]

    def test_an_entry_leads_to_what_it_is_about_while_that_is_there(self, boss: User) -> None:
        lane, person = Lane.objects.get(), builders.person("ada")
        preset = builders.preset("small")
        booking = builders.booking(owner=person, lane=lane, preset=preset)
        policy = well(policy_service.save_policy(None, actor=boss, lane=lane, min_minutes=30))
        for subject, pk in {
            Subject.LANE: lane.pk,
            Subject.PRESET: preset.pk,
            Subject.HOST: lane.host.pk,
            Subject.BOOKING: booking.pk,
            Subject.MEMBER: person.pk,
            Subject.POLICY: policy.pk,
        }.items():
            kind = "host.joined" if subject == Subject.HOST else f"{subject}.made"
            audit.note(kind, boss, audit.About(subject, pk, f"the {subject}"))
            audit.note(kind, boss, audit.About(subject, 10**9, f"no {subject}"))
        client = signed_in(boss)
        rows = client.get(URL).context["rows"]
        links = {entry.subject: link for entry, _, link in rows if entry.subject_name[:4] == "the "}
        assert len(links) == 6
        for link in links.values():
            assert client.get(link).status_code == 200
        assert not any(link for e, _, link in rows if e.subject_name.startswith("no "))
        assert f'<a href="/lanes/{lane.slug}/history/">' in client.get(URL).content.decode()

    def test_the_queries_of_the_page(
        self, boss: User, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client = signed_in(boss)
        client.get(URL)
        # session, user; entries; their lanes; the page's head: unread notices, announcements
        with django_assert_num_queries(6):
            client.get(URL)


class TestDjangosAdmin:
    def test_a_member_who_is_made(self, boss: User) -> None:
        secret = {"password1": "Quite-long-17", "password2": "Quite-long-17"}
        wish = {"username": "ada", "usable_password": "true", **secret}
        signed_in(boss).post("/admin/auth/user/add/", wish)
        assert [words.split(";")[0] for words in told()] == ["administrator made the member ada"]

    def test_log_ins_of_administrators(self, boss: User) -> None:
        boss.set_password("Quite-long-17")
        boss.save()
        member = builders.person("member")
        member.set_password("Quite-long-17")
        member.save()
        for name in ("member", "administrator"):
            wish = {"login": name, "password": "Quite-long-17"}
            Client().post("/accounts/login/", wish)
        Client().post("/accounts/login/", {"login": "administrator", "password": "wrong"})
        assert told() == ["The administrator administrator logged in"]


def test_tokens_of_the_pages_themselves_are_in_no_trail() -> None:
    make_browser_token(builders.person(), "a session")
    assert not AuditEntry.objects.exists()
