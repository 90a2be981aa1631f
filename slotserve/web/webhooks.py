"""Webhooks and chat rooms, for administrators."""

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from lanes import clock
from lanes.refusals import Refusal
from notices import endpoint_services
from notices.events import Event
from notices.models import Delivery, Endpoint, EndpointKind
from notices.outbox import deliveries_of
from slotserve.web.access import staff_required
from slotserve.web.answers import member, say
from slotserve.web.fields import StyledForm

ON_A_PAGE = 50


class EventsForm(StyledForm):
    """What can be changed later."""

    name = forms.CharField(max_length=100, label=gettext_lazy("Name"))
    events = forms.MultipleChoiceField(
        choices=Event.choices,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("It is told of"),
    )


class EndpointForm(EventsForm):
    """A new one."""

    kind = forms.ChoiceField(
        choices=EndpointKind.choices,
        initial=EndpointKind.WEBHOOK,
        widget=forms.RadioSelect,
        label=gettext_lazy("What it is"),
    )
    url = forms.CharField(
        max_length=2000,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy(
            "Of a webhook https://…; of a chat room as Apprise takes it, such as ntfys://… or slack://…"
        ),
    )
    field_order = ("kind", "name", "url", "events")


class ChangeForm(EventsForm):
    """One that there is."""

    is_on = forms.BooleanField(required=False, label=gettext_lazy("On"))


@staff_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """All of them, and the form for another. Its secret is in the answer to its making alone."""
    form, made, secret = EndpointForm(request.POST or None), None, ""
    if request.method == "POST" and form.is_valid():
        answer = endpoint_services.add(
            **form.cleaned_data, actor=member(request), now=clock.database_now()
        )
        if isinstance(answer, Refusal):
            form.add_error("url" if answer.code == "bad_address" else None, answer.words)
        else:
            (made, secret), form = answer, EndpointForm()
    context: dict[str, Any] = {"form": form, "made": made, "secret": secret}
    context["endpoints"] = Endpoint.objects.all()
    return render(request, "webhooks.html", context, status=400 if form.errors else 200)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """One of them, with what it was told."""
    endpoint = get_object_or_404(Endpoint, pk=pk)
    held = {"name": endpoint.name, "events": endpoint.events, "is_on": endpoint.is_on}
    form = ChangeForm(request.POST or None, initial=held)
    if request.method == "POST" and form.is_valid():
        changed = endpoint_services.change(endpoint, actor=member(request), **form.cleaned_data)
        say(request, changed, _("Saved."))
        return redirect("webhook", pk)
    told = Paginator(deliveries_of(pk), ON_A_PAGE).get_page(request.GET.get("page"))
    context = {"endpoint": endpoint, "form": form, "page": told}
    return render(request, "webhook.html", context, status=400 if form.errors else 200)


@staff_required
@require_POST
def test(request: HttpRequest, pk: int) -> HttpResponse:
    """Have it told of a test."""
    endpoint = get_object_or_404(Endpoint, pk=pk)
    now = clock.database_now()
    sent = endpoint_services.send_test(endpoint, actor=member(request), now=now)
    say(request, sent, _("A test is on its way: look again in a moment."))
    return redirect("webhook", pk)


@staff_required
@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete it and its log."""
    endpoint = get_object_or_404(Endpoint, pk=pk)
    gone = endpoint_services.remove(endpoint, actor=member(request))
    say(request, gone, _("%(name)s is deleted.") % {"name": endpoint.name})
    return redirect("webhooks")


@staff_required
@require_POST
def replay(request: HttpRequest, pk: int) -> HttpResponse:
    """Send one anew."""
    found = Delivery.objects.filter(endpoint__isnull=False)
    delivery = get_object_or_404(found, pk=pk)
    now = clock.database_now()
    sent = endpoint_services.send_again(delivery, actor=member(request), now=now)
    say(request, sent, _("It is sent again: look again in a moment."))
    return redirect("webhook", delivery.endpoint_id)
