"""Addresses under /api/v1/."""

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from slotserve.api.announcements import AnnouncementViewSet
from slotserve.api.audit import AuditViewSet
from slotserve.api.bookings import BookingViewSet
from slotserve.api.docs import SchemaPage
from slotserve.api.fallback import NotFoundView
from slotserve.api.gpus import GpuViewSet, LaneGpuHistoryView, LaneGpusView
from slotserve.api.groups import GroupViewSet
from slotserve.api.hosts import HostViewSet, JoinView
from slotserve.api.invitations import InvitationViewSet
from slotserve.api.lanes import LaneViewSet
from slotserve.api.maintenance import MaintenanceViewSet
from slotserve.api.members import MemberViewSet
from slotserve.api.models import ModelFileViewSet, ModelFolderViewSet
from slotserve.api.notices import NoticeViewSet
from slotserve.api.policies import LanePolicyView, PolicyViewSet
from slotserve.api.preferences import PreferencesView
from slotserve.api.presets import PresetViewSet
from slotserve.api.schema import SchemaView
from slotserve.api.selfcheck import SelfCheckView
from slotserve.api.series import SeriesViewSet
from slotserve.api.test_loads import TestLoadViewSet
from slotserve.api.tokens import MeView, TokenViewSet, UsageViewSet
from slotserve.api.usage import UsageSummaryView
from slotserve.api.waitlist import WaitlistViewSet
from slotserve.api.webhooks import DeliveryViewSet, WebhookViewSet

router = SimpleRouter()
router.register("lanes", LaneViewSet, basename="lane")
router.register("hosts", HostViewSet, basename="host")
router.register("gpus", GpuViewSet, basename="gpu")
router.register("bookings/series", SeriesViewSet, basename="series")
router.register("bookings", BookingViewSet, basename="booking")
router.register("presets", PresetViewSet, basename="preset")
router.register("test-loads", TestLoadViewSet, basename="test-load")
router.register("models", ModelFileViewSet, basename="model")
router.register("model-folders", ModelFolderViewSet, basename="model-folder")
router.register("tokens", TokenViewSet, basename="token")
router.register("members", MemberViewSet, basename="member")
router.register("groups", GroupViewSet, basename="group")
router.register("invitations", InvitationViewSet, basename="invitation")
router.register("notices", NoticeViewSet, basename="notice")
router.register("policies", PolicyViewSet, basename="policy")
router.register("webhooks", WebhookViewSet, basename="webhook")
router.register("deliveries", DeliveryViewSet, basename="delivery")
router.register("announcements", AnnouncementViewSet, basename="announcement")
router.register("audit", AuditViewSet, basename="audit")
router.register("maintenance", MaintenanceViewSet, basename="maintenance")
router.register("waitlist", WaitlistViewSet, basename="waiting")
router.register("usage", UsageViewSet, basename="usage")

urlpatterns = [
    path("hosts/join/", JoinView.as_view(), name="join"),
    path("lanes/<str:slug>/policy/", LanePolicyView.as_view(), name="lane-policy"),
    path("lanes/<str:slug>/gpus/", LaneGpusView.as_view(), name="lane-gpus-api"),
    path("lanes/<str:slug>/gpu-history/", LaneGpuHistoryView.as_view(), name="lane-gpu-history"),
    path("usage/summary/", UsageSummaryView.as_view(), name="usage-summary"),
    path("", include(router.urls)),
    path("me/preferences/", PreferencesView.as_view(), name="my-preferences"),
    path("me/", MeView.as_view(), name="me"),
    path("self-check/", SelfCheckView.as_view(), name="api-self-check"),
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", SchemaPage.as_view(), name="api-docs"),
    re_path("", NotFoundView.as_view()),
]
