"""Test loads: tried from the editor, followed on a page of their own."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from bookings import test_loads
from lanes import clock
from lanes.estimates import load_estimates, progress
from lanes.models import Lane, Phase, Preset, Runtime, TestLoad
from lanes.refusals import Refusal
from slotserve.web.access import staff_required
from slotserve.web.administration_forms import PresetForm
from slotserve.web.answers import member, say
from slotserve.web.logs import Shown
from slotserve.web.preset_editor import editor


@staff_required
@require_POST
def begin(request: HttpRequest, slug: str) -> HttpResponse:
    """Keep what is typed as a draft, and have the chosen lane load it."""
    found = Preset.objects.select_related("current__model_file__host__llama_server")
    preset = get_object_or_404(found, slug=slug, current__isnull=False)
    form = PresetForm(request.POST, preset=preset)
    if form.is_valid():
        begun = _begun(request, preset, form.cleaned_data)
        if isinstance(begun, TestLoad):
            return redirect("test-load", begun.pk)
        form.add_error(None, begun.words)
    return editor(request, form, preset)


@staff_required
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """How a test goes; the part that changes alone for a refresh."""
    wanted = TestLoad.objects.select_related("lane__host", "revision__preset", "asked_by")
    test = get_object_or_404(wanted, pk=pk)
    context = {"test": test, **_progress(test)}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "_test_load.html", context)
    is_over = test.ended_at is not None
    log = {"shown": Shown(context["runtime"] if is_over else None), "goes_on": not is_over}
    return render(request, "test_load.html", {**context, **log})


@staff_required
@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """End a test."""
    wanted = TestLoad.objects.select_related("lane__host", "revision__preset")
    test = get_object_or_404(wanted, pk=pk)
    say(request, test_loads.stop(test, actor=member(request)), _("The test is stopped."))
    return redirect("test-load", pk)


def _begun(request: HttpRequest, preset: Preset, said: dict[str, Any]) -> TestLoad | Refusal:
    lane = Lane.objects.filter(slug=request.POST.get("preview_lane", "")).first()
    if lane is None:
        return Refusal("not_found", _("Choose a lane for the test."))
    actor = member(request)
    wish = {name: value for name, value in said.items() if name not in {"slug", "name"}}
    return test_loads.try_out(lane, preset, actor=actor, **wish)


def _progress(test: TestLoad) -> dict[str, Any]:
    """The server of the test, and how far its load is."""
    of_test = Runtime.objects.filter(
        lane=test.lane_id, revision=test.revision_id, started_at__gte=test.asked_at
    )
    runtime = of_test.select_related("revision__preset").order_by("-pk").first()
    pair = (test.lane_id, test.revision.preset_id)
    estimate = load_estimates([pair]).get(pair)
    found = {"runtime": runtime, "estimate": estimate, "percent": None}
    if runtime and estimate and runtime.phase == Phase.STARTING:
        now = clock.database_now()
        found["percent"] = round(100 * progress(runtime.started_at, estimate, now))
        found["age"] = int((now - runtime.started_at).total_seconds())
    return found
