"""For whom each address is: pages by their URLs' names, REST by route and method.

What is not in a table here has no audience, and tests/test_audiences.py fails for it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.every_page import Site


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


EVERYBODY = _names(
    "events icon ready push-worker once calendar-feed follow-invitation accept-invitation "
    "set_language account_login account_logout account_signup account_inactive "
    "account_reset_password account_reset_password_done account_reset_password_from_key "
    "account_reset_password_from_key_done account_confirm_email account_confirm_login_code "
    "account_email_verification_sent mfa_authenticate mfa_login_webauthn socialaccount_signup "
    "socialaccount_login_cancelled socialaccount_login_error openid_connect_login "
    "openid_connect_callback"
)
MEMBERS = _names(
    "overview use lane lane-history lane-gpus lane-gpu-day retry book expect wait leave calendar "
    "calendar-events calendar-move calendar-booking move-booking bookings booking booking-end "
    "booking-load booking-share booking-unshare give-booking booking-series-release "
    "extend change slot-token catalogue preset notices read-notices preferences push end-push "
    "calendar-address calendar-file playground playground-token usage usage-export tokens "
    "revoke announcements-now dismiss-announcement account_reauthenticate "
    "account_request_reauthentication_code account_confirm_reauthentication_code "
    "account_email account_change_password account_set_password mfa_index mfa_reauthenticate "
    "mfa_activate_totp mfa_deactivate_totp mfa_view_recovery_codes "
    "mfa_generate_recovery_codes mfa_download_recovery_codes mfa_list_webauthn "
    "mfa_add_webauthn mfa_reauthenticate_webauthn mfa_remove_webauthn mfa_edit_webauthn "
    "socialaccount_connections confirm-by-sign-on"
)
ADMINISTRATORS = _names(
    "choose clear-choice reload log lane-default administration new-lane edit-lane delete-"
    "lane new-preset preview-new-preset edit-preset begin-test test-load stop-test clone-"
    "preset preview-preset delete-preset archive-preset bring-back-preset members edit-member "
    "remove-member groups rename-group remove-group invitations revoke-invitation hosts add-"
    "host revoke-join-token edit-host delete-host models new-model-file new-model-folder "
    "remove-model-folder rescan-models preset-of-model forget-model audit audit-export "
    "approvals policies new-policy edit-policy delete-policy announcements end-announcement "
    "maintenance change-maintenance end-maintenance self-check webhooks webhook test-webhook "
    "delete-webhook replay"
)

# REST. `read`, `bookings`: members whose token has that scope; `admin`: members whose token may do
# all that they may; `staff`: administrators alone; `everybody`.
REST = {
    "join": "post:everybody",
    "schema": "get:everybody",
    "api-docs": "get:everybody",
    "me": "get:read",
    "my-preferences": "get:read patch:admin",
    "api-self-check": "get:staff",
    "lane-list": "get:read post:staff",
    "lane-detail": "get:read patch:staff delete:staff",
    "lane-choose": "post:staff",
    "lane-clear-choice": "post:staff",
    "lane-reload": "post:staff",
    "lane-retry": "post:bookings",
    "lane-events": "get:read",
    "lane-explain": "get:read",
    "lane-log": "get:staff",
    "lane-runs": "get:staff",
    "lane-policy": "get:read",
    "lane-gpus-api": "get:read",
    "lane-gpu-history": "get:read",
    "gpu-list": "get:read",
    "gpu-detail": "get:read",
    "host-list": "get:staff",
    "host-detail": "get:staff patch:staff delete:staff",
    "host-join-tokens": "get:staff post:staff",
    "host-revoke-join-token": "delete:staff",
    "series-list": "get:bookings post:bookings",
    "series-detail": "get:bookings",
    "series-cancel": "post:bookings",
    "series-move": "post:bookings",
    "series-release": "post:bookings",
    "booking-list": "get:bookings post:bookings",
    "booking-detail": "get:bookings patch:bookings",
    "booking-approve": "post:bookings",
    "booking-reject": "post:bookings",
    "booking-cancel": "post:bookings",
    "booking-confirm": "post:bookings",
    "booking-extend": "post:bookings",
    "booking-release": "post:bookings",
    "booking-shares": "post:bookings",
    "booking-end-share": "delete:bookings",
    "booking-transfer": "post:bookings",
    "booking-token": "post:admin",
    "waiting-list": "get:bookings post:bookings",
    "waiting-detail": "get:bookings delete:bookings",
    "preset-list": "get:read post:staff",
    "preset-detail": "get:read patch:staff delete:staff",
    "preset-archive": "post:staff",
    "preset-bring-back": "post:staff",
    "preset-clone": "post:staff",
    "preset-preview": "post:staff",
    "preset-revisions": "get:read",
    "preset-test-load": "post:staff",
    "test-load-list": "get:staff",
    "test-load-detail": "get:staff",
    "test-load-stop": "post:staff",
    "model-list": "get:read post:staff",
    "model-detail": "get:read delete:staff",
    "model-preset": "post:staff",
    "model-rescan": "post:staff",
    "model-folder-list": "get:staff post:staff",
    "model-folder-detail": "get:staff delete:staff",
    "token-list": "get:admin post:admin",
    "token-detail": "get:admin patch:admin delete:admin",
    "usage-list": "get:read",
    "usage-summary": "get:read",
    "notice-list": "get:read",
    "notice-read-all": "post:read",
    "notice-detail": "get:read",
    "notice-read": "post:read",
    "announcement-list": "get:read post:staff",
    "announcement-detail": "get:read",
    "announcement-end": "post:staff",
    "maintenance-list": "get:read post:staff",
    "maintenance-detail": "get:read patch:staff",
    "maintenance-end": "post:staff",
    "member-list": "get:staff",
    "member-detail": "get:staff patch:staff",
    "member-limits": "get:staff put:staff",
    "member-remove": "post:staff",
    "group-list": "get:staff post:staff",
    "group-detail": "get:staff patch:staff delete:staff",
    "invitation-list": "get:staff post:staff",
    "invitation-detail": "get:staff",
    "invitation-revoke": "post:staff",
    "policy-list": "get:staff post:staff",
    "policy-detail": "get:staff patch:staff delete:staff",
    "webhook-list": "get:staff post:staff",
    "webhook-detail": "get:staff patch:staff delete:staff",
    "webhook-test": "post:staff",
    "delivery-list": "get:staff",
    "delivery-detail": "get:staff",
    "delivery-replay": "post:staff",
    "audit-list": "get:staff",
    "audit-detail": "get:staff",
}
NUMBERS = {  # whose number addresses have; the others have a booking's
    "person": "edit-member remove-member member-detail member-limits member-remove",
    "webhook": "webhook test-webhook delete-webhook webhook-detail webhook-test",
    "policy": "edit-policy delete-policy policy-detail",
    "test": "test-load stop-test test-load-detail test-load-stop",
    "file": "preset-of-model forget-model model-detail model-preset",
}
NUMBER_OF = {name: part for part, names in NUMBERS.items() for name in names.split()}


class Call(NamedTuple):
    """One method of one route, and for whom it is."""

    name: str
    method: str
    audience: str


def address(site: Site, name: str) -> str:
    """One address of this name, of something that there is wherever that can be."""
    first = get_resolver().reverse_dict.getlist(name)[0]
    known: dict[str, object] = {
        "slug": site.parts["preset" if "preset" in name else "lane"],
        "pk": site.parts[NUMBER_OF.get(name, "booking")],
        "name": "release",
        "key": site.parts["host"],
        "secret": "x" * 43,
        "text": "x" * 43,
        "uuid": "GPU-none",
        "username": "nobody",
        "uidb36": "1",
        "provider_id": "oidc",
    }
    return reverse(name, kwargs={part: known[part] for part in first[0][0][1]} or None)


def calls() -> list[Call]:
    """All that the table of REST has."""
    return [
        Call(name, *each.split(":")) for name, methods in REST.items() for each in methods.split()
    ]


def routes() -> Iterator[URLPattern]:
    """Those of REST, but for the one that answers where nothing is."""
    api = next(each for each in get_resolver().url_patterns if str(each.pattern) == "api/v1/")
    assert isinstance(api, URLResolver)
    return (each for each in _leaves(api) if each.name)


def methods_of(route: URLPattern) -> set[str]:
    """What a route answers to, but for OPTIONS and HEAD."""
    actions = getattr(route.callback, "actions", None)
    if actions:
        return set(actions) - {"head"}
    view = getattr(route.callback, "cls", None) or route.callback.view_class  # type: ignore[attr-defined]
    return {name for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)}


def _leaves(resolver: URLResolver) -> Iterator[URLPattern]:
    for each in resolver.url_patterns:
        if isinstance(each, URLPattern):
            yield each
        else:
            yield from _leaves(each)
