"""The editor of presets: a new one, a new revision, a clone, and what a host would start of it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lanes import presets
from lanes.models import Preset, PresetRevision
from lanes.preset_notes import notes_of_host
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.preset_page import newest_tests
from slotserve.web.access import staff_required
from slotserve.web.administration_forms import PresetForm
from slotserve.web.answers import member
from slotserve.web.preset_preview import of_form, of_preset, of_revision

MOST_DIGITS = 9


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Make a preset, or give one a new revision: `?revision=` begins with what that one says."""
    preset = _preset(slug)
    begun = _revision(preset, request.GET.get("revision", ""))
    form = PresetForm(
        request.POST or None, preset=preset, revision=begun, initial=request.GET.dict()
    )
    if form.is_valid():
        saved = presets.save_preset(actor=member(request), **form.cleaned_data)
        if not isinstance(saved, Refusal):
            words = _("%(revision)s is saved.") % {"revision": saved.revision}
            messages.success(request, words)
            for note in [*map(tell, saved.notes), *notes_of_host(saved.revision)]:
                messages.warning(request, note)
            return redirect("edit-preset", saved.revision.preset.slug)
        form.add_error(None, saved.words)
    beside = of_revision(begun) if begun and not form.is_bound else {}
    return editor(request, form, preset, **beside)


@staff_required
@require_safe
def clone(request: HttpRequest, slug: str) -> HttpResponse:
    """The form of a new preset, filled with what another says; nothing is saved yet."""
    wanted = Preset.objects.filter(current__isnull=False).select_related("current")
    preset = get_object_or_404(wanted, slug=slug)
    form = PresetForm(preset=None, initial=PresetForm.initial_of_clone(preset))
    title = _("Clone of %(slug)s") % {"slug": slug}
    return editor(request, form, None, title=title, action=reverse("new-preset"))


@staff_required
@require_POST
def typed(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """The command of a form that is being filled in, or what is wrong with it; nothing is saved.
    Without a script the whole page with it."""
    preset = _preset(slug)
    form = PresetForm(request.POST, preset=preset)
    context = of_form(form, request.POST.get("preview_lane", ""))
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "_command.html", context)
    action = reverse("edit-preset", args=[slug]) if slug else reverse("new-preset")
    return editor(request, form, preset, action=action, **context)


def _preset(slug: str | None) -> Preset | None:
    wanted = Preset.objects.select_related("current__model_file__host__llama_server")
    return get_object_or_404(wanted, slug=slug) if slug else None


def _revision(preset: Preset | None, number: str) -> PresetRevision | None:
    """That one of the preset, such as a draft that was tested; None: its newest."""
    if (
        preset is None
        or not number.isascii()
        or not number.isdecimal()
        or len(number) > MOST_DIGITS
    ):
        return None
    wanted = preset.revisions.select_related("preset", "model_file__host__llama_server")
    return wanted.filter(number=number).first()


def editor(
    request: HttpRequest, form: PresetForm, preset: Preset | None, **context: Any
) -> HttpResponse:
    """The page, with what is wrong or was asked for beside the form."""
    status = 400 if form.is_bound and form.errors else 200
    title = _("Preset %(slug)s") % {"slug": preset.slug} if preset else _("New preset")
    preview_url = (
        reverse("preview-preset", args=[preset.slug]) if preset else reverse("preview-new-preset")
    )
    beside = of_preset(preset) if preset else {}
    if form.is_bound and "command" not in context:
        beside = of_form(form, request.POST.get("preview_lane", ""))
    if preset:
        beside["tests"] = newest_tests(preset)
    shown = {"form": form, "title": title, "preset": preset, "preview_url": preview_url}
    return render(request, "preset_edit.html", shown | beside | context, status=status)
