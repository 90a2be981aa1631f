"""Addresses of the web process."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path, re_path

from slotserve.web import (
    administration,
    announcements,
    bookings,
    calendar,
    calendar_feed,
    calendar_moves,
    catalogue,
    gpus,
    hosts,
    lane_history,
    lanes,
    live,
    logs,
    models,
    notice_pages,
    once,
    playground,
    policies,
    preferences,
    preset_editor,
    push,
    ready,
    selfcheck,
    test_loads,
    tokens,
    usage,
    webhooks,
)

# Django's own log-in page knows neither the limit of attempts nor second factors.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler400 = "slotserve.api.fallback.bad_request"
handler403 = "slotserve.api.fallback.permission_denied"
handler404 = "slotserve.api.fallback.page_not_found"
handler500 = "slotserve.api.fallback.server_error"

urlpatterns = [
    path("", lanes.overview, name="overview"),
    path("events/", live.events, name="events"),
    path("lanes/<str:slug>/", lanes.lane, name="lane"),
    path("lanes/<str:slug>/choose/", lanes.choose, name="choose"),
    path("lanes/<str:slug>/clear-choice/", lanes.clear_choice, name="clear-choice"),
    path("lanes/<str:slug>/reload/", lanes.reload, name="reload"),
    path("lanes/<str:slug>/retry/", lanes.retry, name="retry"),
    path("lanes/<str:slug>/log/", logs.log, name="log"),
    path("lanes/<str:slug>/history/", lane_history.page, name="lane-history"),
    path("lanes/<str:slug>/default/", lanes.set_default, name="lane-default"),
    path("lanes/<str:slug>/gpus/", gpus.lane_gpus, name="lane-gpus"),
    path("lanes/<str:slug>/gpus/day/", gpus.lane_day, name="lane-gpu-day"),
    path("book/", bookings.book, name="book"),
    path("book/expect/", bookings.expect, name="expect"),
    path("calendar/", calendar.page, name="calendar"),
    path("calendar/events/", calendar.events, name="calendar-events"),
    path("calendar/move/", calendar.move, name="calendar-move"),
    re_path(r"^calendar/bookings/(?P<pk>\d{1,18})/$", calendar.booking, name="calendar-booking"),
    re_path(
        r"^calendar/bookings/(?P<pk>\d{1,18})/move/$", calendar_moves.page, name="move-booking"
    ),
    path("bookings/", bookings.mine, name="bookings"),
    path("bookings/<int:pk>/extend/", bookings.extend, name="extend"),
    re_path(
        r"^bookings/(?P<pk>\d{1,18})/(?P<name>release|cancel|approve|reject)/$",
        bookings.change,
        name="change",
    ),
    path("models/", catalogue.models, name="catalogue"),
    path("models/presets/<str:slug>/", catalogue.preset, name="preset"),
    path("notices/", notice_pages.page, name="notices"),
    path("notices/read/", notice_pages.read, name="read-notices"),
    path("preferences/", preferences.page, name="preferences"),
    path("preferences/push/", push.subscribe, name="push"),
    path("preferences/push/<int:pk>/end/", push.unsubscribe, name="end-push"),
    path("push-worker.js", push.worker, name="push-worker"),
    path("preferences/calendar/", preferences.calendar, name="calendar-address"),
    path("once/<str:secret>/", once.page, name="once"),
    path("feeds/<str:secret>/bookings.ics", calendar_feed.feed, name="calendar-feed"),
    path("bookings/<int:pk>/booking.ics", calendar_feed.file, name="calendar-file"),
    path("playground/", playground.page, name="playground"),
    path("playground/token/", playground.token, name="playground-token"),
    path("administration/webhooks/", webhooks.page, name="webhooks"),
    path("administration/webhooks/<int:pk>/", webhooks.edit, name="webhook"),
    path("administration/webhooks/<int:pk>/test/", webhooks.test, name="test-webhook"),
    path("administration/webhooks/<int:pk>/delete/", webhooks.delete, name="delete-webhook"),
    path("administration/deliveries/<int:pk>/replay/", webhooks.replay, name="replay"),
    path("usage/", usage.page, name="usage"),
    path("usage/export.csv", usage.export, name="usage-export"),
    path("tokens/", tokens.page, name="tokens"),
    path("tokens/<int:pk>/revoke/", tokens.revoke, name="revoke"),
    path("administration/", administration.home, name="administration"),
    path("administration/lanes/new/", administration.edit_lane, name="new-lane"),
    path("administration/lanes/<str:slug>/", administration.edit_lane, name="edit-lane"),
    path("administration/lanes/<str:slug>/delete/", administration.delete_lane, name="delete-lane"),
    path("administration/presets/new/", preset_editor.edit, name="new-preset"),
    path("administration/presets/new/preview/", preset_editor.typed, name="preview-new-preset"),
    path("administration/presets/<str:slug>/", preset_editor.edit, name="edit-preset"),
    path("administration/presets/<str:slug>/test/", test_loads.begin, name="begin-test"),
    re_path(r"^administration/tests/(?P<pk>\d{1,18})/$", test_loads.page, name="test-load"),
    re_path(r"^administration/tests/(?P<pk>\d{1,18})/stop/$", test_loads.stop, name="stop-test"),
    path("administration/presets/<str:slug>/clone/", preset_editor.clone, name="clone-preset"),
    path("administration/presets/<str:slug>/preview/", preset_editor.typed, name="preview-preset"),
    path(
        "administration/presets/<str:slug>/delete/",
        administration.delete_preset,
        name="delete-preset",
    ),
    path(
        "administration/presets/<str:slug>/archive/",
        administration.archive_preset,
        name="archive-preset",
    ),
    path(
        "administration/presets/<str:slug>/bring-back/",
        administration.bring_back_preset,
        name="bring-back-preset",
    ),
    path("administration/hosts/", hosts.page, name="hosts"),
    path("administration/hosts/add/", hosts.add, name="add-host"),
    path(
        "administration/hosts/join-tokens/<int:pk>/revoke/",
        hosts.revoke_token,
        name="revoke-join-token",
    ),
    path("administration/hosts/<str:key>/", hosts.edit, name="edit-host"),
    path("administration/hosts/<str:key>/delete/", hosts.delete, name="delete-host"),
    path("administration/models/", models.page, name="models"),
    path("administration/models/new/", models.add_file, name="new-model-file"),
    path("administration/models/folders/new/", models.add_folder, name="new-model-folder"),
    re_path(
        r"^administration/models/folders/(?P<pk>\d{1,18})/remove/$",
        models.remove_folder,
        name="remove-model-folder",
    ),
    path("administration/models/hosts/<str:key>/", models.rescan, name="rescan-models"),
    re_path(
        r"^administration/models/(?P<pk>\d{1,18})/preset/$",
        models.make_preset,
        name="preset-of-model",
    ),
    re_path(
        r"^administration/models/(?P<pk>\d{1,18})/forget/$", models.forget, name="forget-model"
    ),
    path("administration/rules/", policies.page, name="policies"),
    path("administration/rules/new/", policies.edit, name="new-policy"),
    re_path(r"^administration/rules/(?P<pk>\d{1,18})/$", policies.edit, name="edit-policy"),
    re_path(
        r"^administration/rules/(?P<pk>\d{1,18})/delete/$", policies.delete, name="delete-policy"
    ),
    path("announcements/", announcements.now, name="announcements-now"),
    re_path(
        r"^announcements/(?P<pk>\d{1,18})/dismiss/$",
        announcements.dismiss,
        name="dismiss-announcement",
    ),
    path("administration/announcements/", announcements.page, name="announcements"),
    re_path(
        r"^administration/announcements/(?P<pk>\d{1,18})/end/$",
        announcements.end,
        name="end-announcement",
    ),
    path("administration/self-check/", selfcheck.page, name="self-check"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("ready/", ready.ready, name="ready"),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("slotserve.api.urls")),
]
