"""Pages for administrators about models: what each host has, its folders, a preset in one step."""

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Count, Q, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lanes import clock
from lanes.catalogue import registering
from lanes.catalogue.offering import preset_of
from lanes.catalogue.reading import models_for_people, preset_slugs
from lanes.fitting import fits_nowhere, too_large
from lanes.models import Host, ModelFile, ModelFolder
from lanes.refusals import Refusal
from slotserve.web.access import came_from, staff_required
from slotserve.web.administration_forms import ModelFileForm, ModelFolderForm
from slotserve.web.answers import member, say

MOST_SHOWN = 200  # models of one host; more are searched for
LONGEST_SEARCH = 100


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model as the page shows it."""

    file: ModelFile
    presets: list[str]
    mark: str  # when it fits the GPU memory of no lane of its host


@dataclass(frozen=True, slots=True)
class HostModels:
    """One host's folders and models."""

    host: Host
    folders: list[ModelFolder]
    rows: list[ModelRow]
    left_out: int


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Models by host with their facts."""
    search = request.GET.get("q", "")[:LONGEST_SEARCH].strip()
    now = clock.database_now()
    context = {"hosts": host_models(search), "search": search, "now": now}
    return render(request, "models.html", context)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def add_folder(request: HttpRequest) -> HttpResponse:
    """Have a folder of a host looked through."""
    form = ModelFolderForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        made = registering.add_folder(actor=member(request), **form.cleaned_data)
        if isinstance(made, ModelFolder):
            messages.success(
                request, _("%(path)s is looked through now and every minute.") % {"path": made.path}
            )
            return redirect("models")
        form.add_error(None, made.words)
    return _form(request, form, _("New folder of models"))


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def add_file(request: HttpRequest) -> HttpResponse:
    """Register a file of a host by hand."""
    form = ModelFileForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        made = registering.register_model_file(actor=member(request), **form.cleaned_data)
        if isinstance(made, ModelFile):
            messages.success(request, _("%(made)s is registered.") % {"made": made.name})
            for doubt in registering.doubts(made):
                messages.warning(request, doubt)
            return redirect("models")
        form.add_error(None, made.words)
    return _form(request, form, _("New model file"))


@staff_required
@require_POST
def remove_folder(request: HttpRequest, pk: int) -> HttpResponse:
    """Look through a folder no longer."""
    folder = get_object_or_404(ModelFolder, pk=pk)
    refusal = registering.remove_folder(folder, actor=member(request))
    say(request, refusal, _("%(path)s is looked through no longer.") % {"path": folder.path})
    return redirect("models")


@staff_required
@require_POST
def rescan(request: HttpRequest, key: str) -> HttpResponse:
    """Have a host look through its folders now."""
    host = get_object_or_404(Host, key=key)
    refusal = registering.rescan(host, actor=member(request))
    say(request, refusal, _("%(host)s is looking through its folders.") % {"host": host.name})
    return redirect("models")


@staff_required
@require_POST
def make_preset(request: HttpRequest, pk: int) -> HttpResponse:
    """A preset of a model; then its page, to change what does not fit."""
    file = get_object_or_404(ModelFile.objects.listed(), pk=pk)
    saved = preset_of(file, actor=member(request))
    if isinstance(saved, Refusal):
        messages.error(request, saved.words)
        return redirect("models")
    slug = saved.revision.preset.slug
    messages.success(
        request,
        _("The preset %(slug)s is made and can be booked. Change it here.") % {"slug": slug},
    )
    return redirect("edit-preset", slug)


@staff_required
@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Strike a model off the list."""
    file = get_object_or_404(ModelFile, pk=pk)
    refusal = registering.forget_model_file(file, actor=member(request))
    say(request, refusal, _("%(file)s is off the list.") % {"file": file.name})
    return redirect(came_from(request, reverse("models")))


def host_models(search: str) -> list[HostModels]:
    """Every host with its folders and the models that match; a fixed number of queries."""
    hosts = Host.objects.prefetch_related("model_folders", "lanes__gpus")
    found = _matching(search)
    return [_of_host(host, found.get(host.pk, [])) for host in hosts]


def _matching(search: str) -> dict[int, list[ModelFile]]:
    """By host the first that match; `among` of each says how many of its host do."""
    found = models_for_people()
    for each in search.split():
        found = found.filter(
            Q(name__icontains=each) | Q(path__icontains=each) | Q(architecture__icontains=each)
        )
    place = Window(RowNumber(), partition_by="host", order_by=["name", "pk"])
    among = Window(Count("pk"), partition_by="host")
    by_host: dict[int, list[ModelFile]] = {}
    for file in found.annotate(place=place, among=among).filter(place__lte=MOST_SHOWN):
        by_host.setdefault(file.host_id, []).append(file)
    return by_host


def _of_host(host: Host, files: list[ModelFile]) -> HostModels:
    lanes = list(host.lanes.all())
    rows = [
        ModelRow(file, preset_slugs(file), too_large() if fits_nowhere(lanes, file) else "")
        for file in files
    ]
    left_out = getattr(files[0], "among", 0) - len(files) if files else 0
    return HostModels(host, list(host.model_folders.all()), rows, left_out)


def _form(request: HttpRequest, form: ModelFileForm | ModelFolderForm, title: str) -> HttpResponse:
    status = 400 if form.is_bound and form.errors else 200
    context = {"form": form, "title": title, "back": "models"}
    return render(request, "edit.html", context, status=status)
