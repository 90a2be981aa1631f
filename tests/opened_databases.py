"""Lets tests open databases beside the one of the test run, as the product does."""

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django import DjangoDbBlocker


@pytest.fixture
def more_databases(
    transactional_db: None, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Databases that are opened while a test runs: a test case knows the aliases of its start."""
    connect = django_db_blocker._real_ensure_connection
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", connect)
