"""Hosts on pages, in REST and in the command."""

import io
import json
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.html import strip_tags
from pytest_django import DjangoAssertNumQueries

from lanes import clock, host_reports
from lanes.models import Host, HostReport
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> Host:
    """A host with a lane that has just reported."""
    host = builders.lane("demo").host
    now = clock.database_now()
    Host.objects.filter(pk=host.pk).update(seen_at=now)
    HostReport.objects.create(host=host, **host_reports.measure(now, 0.0))
    host.refresh_from_db()
    return host


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(builders.administrator())
    return client


@pytest.fixture
def stranger() -> Client:
    client = Client()
    client.force_login(builders.person("member"))
    return client


def text_of(answer: Any) -> str:
    return " ".join(unescape(strip_tags(answer.content.decode())).split())


def lose(host: Host) -> None:
    host.unreachable_since = clock.database_now() - timedelta(minutes=5)
    host.save()


def test_the_page_tells_of_a_host_that_is_well(host: Host, client: Client) -> None:
    text = text_of(client.get("/administration/hosts/"))
    assert "test-host: well" in text
    assert "% )" not in text
    assert "No driver" in text


def test_the_page_tells_of_a_host_that_is_gone_and_what_to_do(host: Host, client: Client) -> None:
    lose(host)
    text = text_of(client.get("/administration/hosts/"))
    assert "test-host: unreachable" in text
    assert "test-host has not answered since" in text
    assert "See that it runs" in text


def test_the_page_refreshes_itself_by_a_fragment(host: Host, client: Client) -> None:
    answer = client.get("/administration/hosts/", headers={"HX-Request": "true"})
    assert b"<html" not in answer.content
    assert b"test-host" in answer.content


def test_a_host_is_edited_and_a_bad_address_is_explained(host: Host, client: Client) -> None:
    page = "/administration/hosts/test-host/"
    answer = client.post(page, {"name": "GPU one", "address": "10.0.0.5"})
    assert answer.status_code == 302
    host.refresh_from_db()
    assert (host.name, host.address) == ("GPU one", "10.0.0.5")
    answer = client.post(page, {"name": "GPU one", "address": "0.0.0.0"})
    assert answer.status_code == 400
    assert "0.0.0.0 is no address of one machine" in text_of(answer)


def test_a_host_with_lanes_is_not_deleted(host: Host, client: Client) -> None:
    answer = client.post("/administration/hosts/test-host/delete/", follow=True)
    assert "still has lanes demo" in text_of(answer)
    host.lanes.all().delete()
    answer = client.post("/administration/hosts/test-host/delete/", follow=True)
    assert "is deleted" in text_of(answer)
    assert not Host.objects.exists()


@pytest.mark.parametrize("page", ["/administration/hosts/", "/administration/hosts/test-host/"])
def test_members_see_no_hosts(host: Host, stranger: Client, page: str) -> None:
    assert stranger.get(page).status_code == 403


def test_the_administration_counts_hosts_in_trouble(host: Host, client: Client) -> None:
    assert "in trouble" not in text_of(client.get("/administration/"))
    lose(host)
    assert "Hosts 1 in trouble" in text_of(client.get("/administration/"))


def test_many_hosts_take_as_many_queries_as_one(
    host: Host, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        builders.lane(host=builders.host(f"other-{number}"))
    # Session, person, hosts, lanes, cards, clock, tokens; notices, announcements.
    with django_assert_num_queries(9):
        client.get("/administration/hosts/")


def test_rest_shows_a_host(host: Host, client: Client) -> None:
    shown = client.get("/api/v1/hosts/test-host/").json()
    assert shown["state"] == "well"
    assert shown["lanes"] == ["demo"]
    assert shown["report"]["driver"] == "none"
    lose(host)
    (listed,) = client.get("/api/v1/hosts/").json()["results"]
    assert listed["state"] == "unreachable"
    assert [each["code"] for each in listed["troubles"]] == ["unreachable"]
    lane = client.get("/api/v1/lanes/demo/").json()
    assert lane["unreachable_since"] is not None


def test_rest_edits_and_deletes_a_host(host: Host, client: Client) -> None:
    def patch(**said: object) -> Any:
        return client.patch(
            "/api/v1/hosts/test-host/", json.dumps(said), content_type="application/json"
        )

    assert patch(address="10.0.0.6").json()["address"] == "10.0.0.6"
    refused = patch(address="::")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    assert client.delete("/api/v1/hosts/test-host/").status_code == 409
    host.lanes.all().delete()
    assert client.delete("/api/v1/hosts/test-host/").status_code == 204
    assert client.get("/api/v1/hosts/test-host/").status_code == 404


def test_rest_tells_members_nothing_of_hosts(host: Host, stranger: Client) -> None:
    for answer in (
        stranger.get("/api/v1/hosts/"),
        stranger.get("/api/v1/hosts/test-host/"),
        stranger.delete("/api/v1/hosts/test-host/"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "not_administrator")


def test_the_command_says_by_its_status_whether_all_is_well(host: Host) -> None:
    out = io.StringIO()
    call_command("hosts", stdout=out)
    assert "test-host: well" in out.getvalue()
    lose(host)
    with pytest.raises(SystemExit) as ended:
        call_command("hosts", stdout=out)
    assert ended.value.code == 1
    assert "! test-host has not answered since" in out.getvalue()


def test_the_command_speaks_json(host: Host) -> None:
    out = io.StringIO()
    call_command("hosts", "--json", stdout=out)
    (shown,) = json.loads(out.getvalue())
    assert (shown["key"], shown["state"]) == ("test-host", "well")


def test_a_host_that_was_never_heard_of_is_said_so_by_page_and_command(
    host: Host, client: Client
) -> None:
    HostReport.objects.all().delete()
    Host.objects.update(seen_at=None)
    words = "Its worker has not looked yet: start it there"
    assert words in text_of(client.get("/administration/hosts/"))
    out = io.StringIO()
    with pytest.raises(SystemExit) as status:
        call_command("hosts", stdout=out)
    assert status.value.code == 1
    assert f"  ! {words}" in out.getvalue()
