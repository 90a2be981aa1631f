"""The page of a lane's server log: its runs, the end of one, and what comes after that."""

from dataclasses import dataclass, replace

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from lanes import log_reading
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.overview import lanes_for_people
from slotserve.web.access import staff_required

MOST = 2**63 - 1
MOST_PIECES = 8  # in one answer to a page that has fallen behind
STOP_POLLING = 286  # htmx's


class PlaceForm(forms.Form):
    """Where a page is: in which run, and behind which byte. Without a run: the newest."""

    run = forms.IntegerField(min_value=1, max_value=MOST, required=False)
    offset = forms.IntegerField(min_value=0, max_value=MOST, required=False)
    goes_on = forms.BooleanField(required=False)  # to the runs that come after this one


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page, or its next piece, shows."""

    run: Runtime | None
    offset: int | None = None
    skipped: int = 0
    lines: tuple[str, ...] = ()
    unfinished: str = ""
    is_over: bool = False
    is_new_run: bool = False
    trouble: str = ""


@staff_required
@require_safe
def log(request: HttpRequest, slug: str) -> HttpResponse:
    """The end of a run's log; for the page itself, what has come since."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    form = PlaceForm(request.GET)
    if not form.is_valid():
        raise Http404
    run, goes_on = _run(lane, form.cleaned_data["run"]), form.cleaned_data["goes_on"]
    if request.htmx:  # type: ignore[attr-defined]
        shown = _next(lane, run, form.cleaned_data["offset"], goes_on=goes_on)
        if form.cleaned_data["run"] is None:  # the page showed none yet
            shown = replace(shown, is_new_run=run is not None)
        is_end = shown.is_over and not goes_on
        context = {"lane": lane, "shown": shown}
        return render(request, "_log_more.html", context, status=STOP_POLLING if is_end else 200)
    context = {
        "lane": lane,
        "shown": _since(lane, run, None),
        "runs": list(log_reading.runs(lane)),
        "goes_on": form.cleaned_data["run"] is None,
    }
    return render(request, "log.html", context)


def _run(lane: Lane, pk: int | None) -> Runtime | None:
    """The run of this number, or the lane's newest, if there is one."""
    if pk is None:
        return log_reading.runs(lane).first()
    return get_object_or_404(lane.runtimes.select_related("revision__preset"), pk=pk)


def _next(lane: Lane, run: Runtime | None, offset: int | None, *, goes_on: bool) -> Shown:
    """What came after the offset; when that run is over and was shown, how the next one begins."""
    shown = _since(lane, run, offset)
    if run is None or not goes_on or not shown.is_over or shown.lines:
        return shown
    following = log_reading.run_after(run)
    if following is None:
        return shown
    return replace(_since(lane, following, 0), is_new_run=True)


def _since(lane: Lane, run: Runtime | None, offset: int | None) -> Shown:
    """What came after the offset, of the newest lines when there is none."""
    shown = Shown(run, offset)
    if run is None:
        return shown
    for _ in range(MOST_PIECES):
        found = log_reading.fetch(lane, run, shown.offset)
        if isinstance(found, Refusal):
            return replace(shown, trouble=found.words)
        shown = Shown(
            run,
            offset=found.next,
            skipped=shown.skipped + found.skipped,
            lines=shown.lines + found.lines,
            unfinished=found.unfinished,
            is_over=found.is_over,
            trouble=tell(found.note),
        )
        if not found.has_more:
            break
    return shown
