"""Pages for administrators: lanes and presets."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import deleting
from bookings.approvals import pending
from lanes import clock, services
from lanes.host_watch import hosts_with_facts, troubles_of
from lanes.models import Lane, ModelFile, Preset
from lanes.preset_notes import notes_of
from lanes.refusals import Refusal
from slotserve.web.access import staff_required
from slotserve.web.administration_forms import LaneForm
from slotserve.web.answers import member, say
from slotserve.web.fields import StyledForm


@staff_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What can be administered."""
    lanes = Lane.objects.select_related("host", "default_preset").prefetch_related("gpus")
    presets_here = Preset.objects.select_related("current__model_file__host__llama_server")
    context = {
        "lanes": lanes,
        "presets": [(preset, notes_of(preset)) for preset in presets_here.filter(archived_at=None)],
        "archived": Preset.objects.exclude(archived_at=None),
        "waiting": pending(clock.database_now()).count(),
        "gone_models": ModelFile.objects.listed().exclude(missing_since=None).count(),
        "sick_hosts": sum(bool(troubles_of(host)) for host in hosts_with_facts()),
    }
    return render(request, "administration.html", context)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_lane(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Make or change a lane."""
    lane = get_object_or_404(Lane, slug=slug) if slug else None
    form = LaneForm(request.POST or None, lane=lane)
    if form.is_valid():
        saved = services.save_lane(lane, actor=member(request), **form.cleaned_data)
        if isinstance(saved, Lane):
            messages.success(request, _("%(saved)s is saved.") % {"saved": saved.name})
            return redirect("administration")
        form.add_error(None, saved.words)
    return _page(
        request, form, title=_("Lane %(lane)s") % {"lane": lane.name} if lane else _("New lane")
    )


@staff_required
@require_POST
def delete_lane(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a lane that nothing holds."""
    lane = get_object_or_404(Lane, slug=slug)
    return _deleted(request, deleting.delete_lane(lane, actor=member(request)), slug)


@staff_required
@require_POST
def delete_preset(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a preset that nothing holds."""
    preset = get_object_or_404(Preset, slug=slug)
    return _deleted(request, deleting.delete_preset(preset, actor=member(request)), slug)


@staff_required
@require_POST
def archive_preset(request: HttpRequest, slug: str) -> HttpResponse:
    """Offer a preset no more."""
    preset = get_object_or_404(Preset, slug=slug)
    refusal = deleting.archive_preset(preset, actor=member(request))
    say(
        request,
        refusal,
        _("%(slug)s is archived: it is offered no more, and its history is kept.") % {"slug": slug},
    )
    return redirect("edit-preset", slug)


@staff_required
@require_POST
def bring_back_preset(request: HttpRequest, slug: str) -> HttpResponse:
    """Offer an archived preset again."""
    preset = get_object_or_404(Preset, slug=slug)
    refusal = deleting.bring_back_preset(preset, actor=member(request))
    say(request, refusal, _("%(slug)s is back: it can be booked again.") % {"slug": slug})
    return redirect("edit-preset", slug)


def _page(request: HttpRequest, form: StyledForm, **context: Any) -> HttpResponse:
    status = 400 if form.is_bound and form.errors else 200
    return render(request, "edit.html", {"form": form, **context}, status=status)


def _deleted(request: HttpRequest, refusal: Refusal | None, name: str) -> HttpResponse:
    say(request, refusal, _("%(name)s is deleted.") % {"name": name})
    return redirect("administration")
