"""The pages of hosts, for administrators."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import deleting
from lanes import clock, host_services, joining
from lanes.host_services import is_loopback
from lanes.models import Host
from lanes.reach import may_be_unknown_elsewhere, why_not_for_others
from lanes.refusals import Refusal
from lanes.version import code_version
from slotserve.hosts import hosts_for_people, join_tokens, overview
from slotserve.web.access import staff_required
from slotserve.web.answers import member, say
from slotserve.web.fields import StyledForm

ORDER = ("unreachable", "trouble", "unknown", "well")  # what somebody must look at comes first


class HostForm(StyledForm):
    """What may be said of a host; its key stays for good."""

    name = forms.CharField(max_length=100, help_text=gettext_lazy("What people read."))
    address = forms.CharField(
        max_length=255,
        help_text=gettext_lazy(
            "Where its model servers listen: 127.0.0.1 when the gateway runs on this "
            "host, else the private address under which the gateway reaches it."
        ),
    )


class JoinForm(StyledForm):
    """Which host a machine will be."""

    key = forms.CharField(
        max_length=63,
        label=gettext_lazy("Key"),
        help_text=gettext_lazy("Names it for good: small letters, digits, hyphens, such as gpu1."),
    )
    name = forms.CharField(
        max_length=100, required=False, help_text=gettext_lazy("What people read.")
    )
    address = forms.CharField(
        max_length=255,
        help_text=gettext_lazy("Its address on the private network, which the gateway reaches."),
    )


@staff_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    """A join token, shown in the answer to its making and never again."""
    form = JoinForm(request.POST or None)
    token, text, refusal = None, "", why_not_for_others()
    if request.method == "POST" and form.is_valid():
        made = joining.create_join_token(actor=member(request), **form.cleaned_data)
        if isinstance(made, tuple):
            token, text = made
        elif made != refusal:  # that one stands on the page already
            form.add_error(None, made.words)
    pages = (settings.SLOTSERVE_WEB_URL or request.build_absolute_uri("/")).rstrip("/")
    context = {
        "form": form,
        "token": token,
        "text": text,
        "pages": pages,
        "is_pages_unfit": _is_here(pages) and not (token and is_loopback(token.address)),
        "refusal": refusal,
        "note": host_services.note_on(token.address) if token else "",
        "reach_note": may_be_unknown_elsewhere(),
        "version": code_version(),
    }
    is_refused = form.is_bound and token is None
    return render(request, "add_host.html", context, status=400 if is_refused else 200)


def _is_here(url: str) -> bool:
    """Whether no other machine reaches these pages by that address."""
    return is_loopback(urlsplit(url).hostname or "localhost")


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Every host: whether it is there, how it is, what is wrong."""
    hosts = list(hosts_for_people())
    views = [overview(host) for host in hosts]
    context = {
        "hosts": sorted(views, key=lambda view: ORDER.index(view.state)),
        "tokens": join_tokens(clock.database_now(), hosts),
    }
    name = "_hosts.html" if request.htmx else "hosts.html"  # type: ignore[attr-defined]
    return render(request, name, context)


@staff_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """End a join token."""
    said = joining.revoke_join_token(pk, actor=member(request))
    say(request, said if isinstance(said, Refusal) else None, _("The join token is revoked."))
    return redirect("hosts")


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, key: str) -> HttpResponse:
    """Change a host's name or address."""
    host = get_object_or_404(Host, key=key)
    initial: dict[str, Any] = {"name": host.name, "address": host.address}
    form = HostForm(request.POST or None, initial=initial)
    if form.is_valid():
        saved = host_services.save_host(host, actor=member(request), **form.cleaned_data)
        if isinstance(saved, Host):
            messages.success(request, _("%(saved)s is saved.") % {"saved": saved.name})
            return redirect("hosts")
        form.add_error(None, saved.words)
    status = 400 if form.is_bound and form.errors else 200
    context = {"form": form, "title": _("Host %(host)s") % {"host": host.name}, "back": "hosts"}
    return render(request, "edit.html", context, status=status)


@staff_required
@require_POST
def delete(request: HttpRequest, key: str) -> HttpResponse:
    """Delete a host that has no lanes."""
    host = get_object_or_404(Host, key=key)
    say(
        request,
        deleting.delete_host(host, actor=member(request)),
        _("%(host)s is deleted.") % {"host": host.name},
    )
    return redirect("hosts")
