"""Processes of an earlier commit go on while a new one's migrations have run.

They name the columns that they know, so each column that has come since must fill itself.
"""

from typing import Any

import pytest
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import StateApps
from django.db.models import NOT_PROVIDED, Field

from gateway.models import ApiToken, UsageRecord
from lanes.models import Order, Runtime
from tests import builders

APPS = ("lanes", "bookings", "gateway")


def at_first() -> StateApps:
    """The models as the first migrations made them."""
    loader = MigrationLoader(None)
    return loader.project_state([(app, "0001_initial") for app in APPS]).apps


def added() -> "list[Field[Any, Any]]":
    """The columns of today's models whose tables were there first, and that were not."""
    old = at_first()
    known = {
        model._meta.db_table: {field.column for field in model._meta.local_fields}
        for model in old.get_models()
    }
    return [
        field
        for app in APPS
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.local_fields
        if field.column not in known.get(model._meta.db_table, {field.column})
    ]


def test_a_column_that_came_later_may_be_empty_or_fills_itself() -> None:
    fields = added()
    assert len(fields) > 5
    assert [str(each) for each in fields if not each.null and each.db_default is NOT_PROVIDED] == []


@pytest.mark.django_db
def test_an_earlier_worker_orders_and_reports() -> None:
    old, lane, revision = at_first(), builders.lane(), builders.preset().current
    assert revision is not None
    old.get_model("lanes", "Order").objects.create(
        lane_id=lane.pk, ordered_at=builders.NOON, decided_at=builders.NOON, sentence="nothing"
    )
    old.get_model("lanes", "Runtime").objects.create(
        lane_id=lane.pk,
        revision_id=revision.pk,
        generation=1,
        phase_since=builders.NOON,
        started_at=builders.NOON,
        port=1,
    )
    order, runtime = Order.objects.get(), Runtime.objects.get()
    assert (order.fresh_from, order.booking_preset_for) == (0, "")
    assert (runtime.signals_sent, runtime.capabilities) == (0, [])


@pytest.mark.django_db
def test_an_earlier_web_process_makes_a_token_and_an_earlier_worker_records_usage() -> None:
    old, owner = at_first(), builders.person()
    old.get_model("gateway", "ApiToken").objects.create(
        owner_id=owner.pk, digest="d", created_at=builders.NOON
    )
    old.get_model("gateway", "UsageRecord").objects.create(
        request_id="r", at=builders.NOON, status=200, duration_ms=1.0
    )
    assert ApiToken.objects.get().is_limited is False
    record = UsageRecord.objects.get()
    assert (record.queue_ms, record.is_estimated) == (0.0, False)
