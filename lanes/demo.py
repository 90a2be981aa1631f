"""The demo lane: one small model under two presets, so that booking and switching can be tried."""

from pathlib import Path

from django.db import transaction

from lanes.catalogue.registering import add_folder, register_model_file
from lanes.models import Gpu, Host, Lane, ModelFile, Preset
from lanes.presets import save_preset
from lanes.refusals import Refusal
from lanes.services import save_lane

LANE = "demo"
PRESET = "smollm2"
# Slug, name, arguments: the same context, for two callers at once or for one.
PRESETS = (
    (PRESET, "SmolLM2 135M", ["-c", "4096", "-np", "2"]),
    ("smollm2-long", "SmolLM2 135M, long context", ["-c", "8192", "-np", "1"]),
)


@transaction.atomic
def ensure_demo(host: Host, model_path: Path) -> Lane | Refusal:
    """The demo lane with its presets; makes what is missing, and changes nothing that is there."""
    file = _model_file(host, model_path)
    if isinstance(file, Refusal):
        return file
    for slug, name, arguments in PRESETS:
        if Preset.objects.filter(slug=slug).exists():
            continue
        saved = save_preset(slug=slug, name=name, model_file=file, arguments=arguments, actor=None)
        if isinstance(saved, Refusal):
            return saved
    return Lane.objects.filter(slug=LANE).first() or _make_lane(host)


def _model_file(host: Host, path: Path) -> ModelFile | Refusal:
    known = host.model_files.filter(path=str(path)).first()
    if known:
        return known
    # What else is put beside it is found. At the first start only: it may be removed.
    folder = add_folder(host=host, path=str(path.parent), actor=None)
    if isinstance(folder, Refusal) and folder.code != "already_registered":
        return folder
    return register_model_file(host=host, path=str(path), name="SmolLM2 135M Instruct")


def _make_lane(host: Host) -> Lane | Refusal:
    """On the host's first card that no lane has; without one, on the CPU."""
    free = Gpu.objects.filter(host=host, lanes=None).first()
    return save_lane(
        None,
        actor=None,
        slug=LANE,
        name="Demo",
        host=host,
        gpus=[free] if free else [],
        default_preset=Preset.objects.get(slug=PRESET),
    )
