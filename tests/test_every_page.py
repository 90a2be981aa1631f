"""What holds for every page: it is known here, it answers, and asks the database little."""

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from slotserve.api import docs
from slotserve.demo.scale import Scale
from tests import every_page
from tests.conftest import forget_kept
from tests.every_page import NO_PAGES, PAGES

pytestmark = pytest.mark.django_db
HEAD = 4  # of everybody who is logged in: session, person; unread notices, announcements
# Each page's own beside these, by what is read.
QUERIES = {
    # clock, lanes (2), cards, servers, orders, bookings (2), choices, maintenance, failures,
    # estimates, presets:
    "overview": HEAD + 13,
    "overview?q=atlas": HEAD + 13,  # the same
    # lanes (3), cards (2), clock, servers, orders, bookings (3), choices, maintenance, failures,
    # estimates, presets, loads, drivers, minutes, sentences:
    "lane": HEAD + 20,
    # lanes (3), cards (2), clock, servers, orders, bookings (3), choices, maintenance (2),
    # failures, estimates, presets (3), loads, drivers, minutes, sentences:
    "lane?as=administrator": HEAD + 23,
    "lane-history": HEAD + 4,  # lanes, cards, sentences, loads
    "log": HEAD + 4,  # lanes, cards, servers (2)
    "book?lane=atlas-0": HEAD + 8,  # clock, lanes (5), cards, presets
    # Clock, maintenance (2), lanes, bookings (2), their owners (2) and presets (2), servers,
    # choices, estimates, files' sizes:
    "calendar": HEAD + 14,
    "calendar?view=day&as=list": HEAD + 14,
    "calendar?view=month&as=picture": HEAD
    + 8,  # clock, maintenance, lanes, bookings (3), waiting, sentences
    "calendar-booking": HEAD + 2,  # clock, bookings
    # bookings (2), clock; the lane (11: see overview), sizes; guests, usage, hours (2), servers,
    # usage by person, what follows, sentences, members, presets, its series, maintenance in it:
    "booking": HEAD + 26,
    "move-booking": HEAD + 3,  # bookings, lanes (2)
    "booking-series-release": HEAD + 3,  # bookings (2), clock
    # newest event and booking, clock, bookings (4), waiting (2):
    "bookings": HEAD + 9,
    "extend": HEAD + 2,  # bookings (2)
    # newest event and booking, clock, waiting (2), what is held, lanes, presets:
    "wait": HEAD + 8,
    # lanes, cards, revisions, servers (2), hosts, models (2), estimates, requests, tests:
    "catalogue": HEAD + 11,
    # presets, lanes, cards, estimates, requests, tests, servers (2), loads, revisions:
    "preset": HEAD + 10,
    "notices": HEAD + 3,  # notices and how many, bookings
    "preferences": HEAD + 2,  # preference, browsers
    "once": 2,  # link, clock
    "playground": HEAD + 3,  # clock, bookings, lanes
    "usage": HEAD + 8,  # clock, usage (5), lanes, idle bookings
    "usage?by=member": HEAD + 8,  # clock, usage (5), lanes, idle bookings
    "tokens": HEAD + 6,  # tokens (2), limits, clock, lanes (2)
    "api-docs": HEAD,
    # presets (2), models, hosts, lanes, cards; clock, waiting bookings:
    "administration": HEAD + 8,
    "approvals": HEAD + 7,  # clock, bookings (3), groups, rules, presets
    "audit": HEAD + 1,  # entries
    "new-lane": HEAD + 5,  # cards (2), hosts (2), presets
    "edit-lane": HEAD + 9,  # lanes, hosts (3), cards (3), presets (2)
    "new-preset": HEAD + 2,  # models (2)
    "edit-preset": HEAD + 8,  # presets (2), lanes, cards, programs, tests, models (2)
    "clone-preset": HEAD + 4,  # presets (2), models (2)
    "test-load": HEAD + 4,  # tests, servers, estimates, presets
    "hosts": HEAD + 6,  # hosts, lanes (2), cards, clock, join tokens
    "add-host": HEAD,
    "edit-host": HEAD + 1,  # hosts
    "models": HEAD + 7,  # clock, models, revisions, hosts, folders, lanes, cards
    "new-model-file": HEAD + 2,  # hosts (2)
    "new-model-folder": HEAD + 2,  # hosts (2)
    "policies": HEAD + 2,  # rules, presets
    "new-policy": HEAD + 3,  # lanes, groups, presets
    "edit-policy": HEAD + 5,  # rules, presets (2), lanes, groups
    "announcements": HEAD + 2,  # clock, announcements
    "members": HEAD + 4,  # people (2), groups (2)
    "edit-member": HEAD + 5,  # people, groups (2), clock, bookings
    "groups": HEAD + 1,  # groups
    "invitations": HEAD + 5,  # clock, invitations and how many, groups (2)
    "follow-invitation": 2,  # clock, invitations
    "maintenance": HEAD + 3,  # clock, maintenance, lanes
    "webhooks": HEAD + 1,  # endpoints
    "webhook": HEAD + 3,  # endpoints, deliveries and how many
    # clock, the database (4), guards of the audit trail (2), migrations, lanes, hosts:
    "self-check": HEAD + 10,
    "account_login": 1,  # sign-on
    "account_reset_password": 0,
    "account_reset_password_done": 0,
    "account_reset_password_from_key": 1,  # people
    "account_reset_password_from_key_done": 0,
    "account_signup": 0,
    "account_inactive": 0,
    "account_logout": HEAD + 1,  # sign-on
    "account_reauthenticate": HEAD + 8,  # addresses (2), factors (6)
    "account_email": HEAD + 7,  # addresses (4), savepoint (2), sign-on
    "account_email_verification_sent": HEAD,
    "account_confirm_email": HEAD,
    "account_change_password": HEAD + 1,  # sign-on
    "mfa_index": HEAD + 3,  # factors (2), sign-on
    "mfa_index?factors=0": HEAD + 3,  # factors (2), sign-on
    "mfa_reauthenticate": HEAD + 8,  # addresses (2), factors (6)
    "mfa_activate_totp": HEAD + 9,  # addresses, factors (4), sign-on, savepoint (2), session
    "mfa_deactivate_totp": HEAD + 7,  # factors (5), addresses, sign-on
    "mfa_view_recovery_codes": HEAD + 7,  # factors (5), addresses, sign-on
    "mfa_generate_recovery_codes": HEAD + 6,  # addresses, factors (4), sign-on
    "mfa_list_webauthn": HEAD + 2,  # sign-on, factors
    "mfa_add_webauthn": HEAD + 10,  # addresses, factors (5), sign-on, savepoint (2), session
    "socialaccount_connections": HEAD + 4,  # sign-on (3), sign-ons
    "socialaccount_login_cancelled": 0,
    "socialaccount_login_error": 0,
}


def test_each_address_is_a_page_here_or_has_a_reason_not_to_be() -> None:
    pages = {look.name for look in PAGES if not look.name.startswith("admin:")} - {"api-docs"}
    others = [name for names in NO_PAGES.values() for name in names.split()]
    assert every_page.url_names() == pages | set(others)
    assert [name for name, count in Counter(others).items() if count > 1] == []


def test_no_page_shares_its_name_with_one_of_rest() -> None:
    # Else `{% url %}` gives the one of REST, and a form of the page is sent there.
    assert every_page.url_names().isdisjoint(every_page.rest_names())


@pytest.mark.parametrize("lanes", [6, 12])
def test_each_page_asks_as_many_questions_however_many_lanes_there_are(lanes: int) -> None:
    site = every_page.made(Scale(lanes=lanes, members=lanes, bookings=10 * lanes, requests=2))
    docs.operations("en")  # once a process
    counted = {}
    for look in (look for look in PAGES if not look.name.startswith("admin:")):
        forget_kept()  # each page as its first reader of a minute has it
        with CaptureQueriesContext(connection) as asked:
            answer = site.clients[look.who].get(site.address(look))
        assert answer.status_code == look.status, look.key
        counted[look.key] = len(asked)
    assert counted == QUERIES
