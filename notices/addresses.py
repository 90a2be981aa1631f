"""Addresses of pages in what leaves the installation."""

from django.conf import settings
from django.urls import reverse


def page_url(name: str, *arguments: str) -> str:
    """The whole address of a page; empty where nobody has said under which the pages are."""
    if not settings.SLOTSERVE_WEB_URL:
        return ""
    return str(settings.SLOTSERVE_WEB_URL).rstrip("/") + reverse(name, args=arguments)
