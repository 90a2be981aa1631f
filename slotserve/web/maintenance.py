"""Maintenance of lanes: what is in force and to come, and a form for more."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from bookings import maintenance
from lanes import clock
from lanes.maintenance import not_over
from lanes.models import Lane, Maintenance
from lanes.refusals import Refusal
from slotserve.web.access import came_from, staff_required
from slotserve.web.answers import member, say
from slotserve.web.fields import MomentField, StyledForm

PAGE = "/administration/maintenance/"


class LanesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Lanes with their hosts."""

    def label_from_instance(self, obj: Lane) -> str:
        """What the list says."""
        return f"{obj.host.name}: {obj.name}"


class EndForm(StyledForm):
    """Until when it lasts."""

    end = MomentField(
        required=False,
        label=gettext_lazy("Until (optional: until you end it)"),
    )


class MaintenanceForm(EndForm):
    """Which lanes, from when to when, and why."""

    lanes = LanesField(
        Lane.objects.select_related("host").order_by("host__name", "name"),
        widget=forms.CheckboxSelectMultiple(),
        label=gettext_lazy("Lanes"),
    )
    start = MomentField(required=False, label=gettext_lazy("From (optional: now)"))
    reason = forms.CharField(
        required=False,
        max_length=maintenance.LONGEST_REASON,
        label=gettext_lazy("Why (people are told)"),
    )
    field_order = ("lanes", "start", "end", "reason")


class LaneMaintenanceForm(MaintenanceForm):
    """The same on the page of the one lane."""

    lanes = LanesField(Lane.objects.all(), widget=forms.MultipleHiddenInput())


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Those in force and to come, and a form for more."""
    named = Lane.objects.filter(slug__in=request.GET.getlist("lane"))
    form = MaintenanceForm(request.POST or None, initial={"lanes": named})
    if form.is_valid():
        made = maintenance.plan(actor=member(request), **form.cleaned_data)
        if not isinstance(made, Refusal):
            say(request, None, _("Planned: whoever has booked that time is told."))
            return redirect(came_from(request, PAGE))
        form.add_error(None, made.words)
    return _page(request, form, status=400 if form.is_bound and form.errors else 200)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: str) -> HttpResponse:
    """Give it another end; refused, the page of all shows what was typed."""
    if request.method != "POST":  # somebody reloads the address of a refusal
        return redirect("maintenance")
    row = get_object_or_404(Maintenance, pk=pk)
    form = EndForm(request.POST)
    changed: Any = Refusal("invalid", _("Say until when as a date and a time."))
    if form.is_valid():
        changed = maintenance.change(row, actor=member(request), **form.cleaned_data)
    say(request, changed, _("Changed: whoever has booked that time is told."))
    if isinstance(changed, Refusal):
        typed = {"refused": row.pk, "typed": request.POST.get("end", "")}
        return _page(request, MaintenanceForm(), status=400, **typed)
    return redirect(came_from(request, PAGE))


@staff_required
@require_POST
def end(request: HttpRequest, pk: str) -> HttpResponse:
    """Open the lane again."""
    row = get_object_or_404(Maintenance, pk=pk)
    say(request, maintenance.end(row, actor=member(request)), _("The maintenance has ended."))
    return redirect(came_from(request, PAGE))


def _page(
    request: HttpRequest, form: MaintenanceForm, *, status: int, **typed: object
) -> HttpResponse:
    rows = not_over(clock.database_now()).select_related("lane__host", "made_by")
    context = {"form": form, "rows": rows, **typed}
    return render(request, "maintenance.html", context, status=status)
