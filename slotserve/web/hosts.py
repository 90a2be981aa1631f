"""The pages of hosts, for administrators."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import deleting
from lanes import host_services, joining
from lanes.models import Host
from lanes.refusals import Refusal
from slotserve.hosts import hosts_for_people, overview
from slotserve.web.access import staff_required
from slotserve.web.answers import member, say
from slotserve.web.fields import StyledForm


class HostForm(StyledForm):
    """What may be said of a host; its key stays for good."""

    name = forms.CharField(max_length=100, help_text="What people read.")
    address = forms.CharField(
        max_length=255,
        help_text="Where its model servers listen: 127.0.0.1 when the gateway runs on this host, "
        "else the private address under which the gateway reaches it.",
    )


class JoinForm(StyledForm):
    """Which host a machine will be."""

    key = forms.CharField(
        max_length=63,
        label="Key",
        help_text="Names it for good: small letters, digits, hyphens, such as gpu1.",
    )
    name = forms.CharField(max_length=100, required=False, help_text="What people read.")
    address = forms.CharField(
        max_length=255, help_text="Its address on the private network, which the gateway reaches."
    )


@staff_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    """A join token, shown in the answer to its making and never again."""
    form = JoinForm(request.POST or None)
    token, text = None, ""
    if request.method == "POST" and form.is_valid():
        made = joining.create_join_token(actor=member(request), **form.cleaned_data)
        if isinstance(made, Refusal):
            form.add_error(None, made.words)
        else:
            token, text = made
    context = {
        "form": form,
        "token": token,
        "text": text,
        "pages": request.build_absolute_uri("/").rstrip("/"),
        "refusal": joining.why_not_for_others(),
    }
    return render(request, "add_host.html", context, status=400 if form.errors else 200)


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Every host: whether it is there, how it is, what is wrong."""
    views = [overview(host) for host in hosts_for_people()]
    name = "_hosts.html" if request.htmx else "hosts.html"  # type: ignore[attr-defined]
    return render(request, name, {"hosts": views})


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
            messages.success(request, f"{saved.name} is saved.")
            return redirect("hosts")
        form.add_error(None, saved.words)
    status = 400 if form.is_bound and form.errors else 200
    context = {"form": form, "title": f"Host {host.name}", "back": "hosts"}
    return render(request, "edit.html", context, status=status)


@staff_required
@require_POST
def delete(request: HttpRequest, key: str) -> HttpResponse:
    """Delete a host that has no lanes."""
    host = get_object_or_404(Host, key=key)
    say(request, deleting.delete_host(host, actor=member(request)), f"{host.name} is deleted.")
    return redirect("hosts")
