"""What forms models come in, and what to do when an engine cannot load one. Pure.

Only what is certain counts: a file of another name may be anything, and a host may not have looked
at it yet.
"""

from enum import Enum
from pathlib import PurePosixPath

from wire.words import said


class Form(Enum):
    """A form of models, in words that go on from "it is"."""

    GGUF = "a GGUF file"
    IMAGE_GGUF = "a GGUF file of an image model"
    PROJECTOR = "a projector, which goes with a model"
    HUGGING_FACE = "a Hugging Face folder"
    FILE = "a workflow, a picture, data or weights alone"
    FOLDER = "a folder without config.json and *.safetensors"
    UNKNOWN = "of a form that nobody knows yet"


ANYTHING = frozenset(Form)
# Workflows and pictures; weights alone; data and settings.
_FILES = frozenset({".json", ".png", ".jpg", ".jpeg", ".webp"})
_FILES |= {".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".onnx"}
_FILES |= {".jsonl", ".parquet", ".csv", ".yaml", ".yml"}
# Architectures in the headers of GGUF files that ComfyUI's nodes load, and llama.cpp does not.
_IMAGES = {"aura", "cosmos", "flux", "hidream", "hyvid", "ltxv", "lumina2", "pig", "qwen_image"}
_IMAGES |= {"sd1", "sd3", "sdxl", "wan"}
ADVICE = {
    Form.GGUF: "Take llama.cpp for it.",
    Form.IMAGE_GGUF: "Take ComfyUI for it.",
    Form.PROJECTOR: "Take its model, and name the projector by --mmproj among the arguments.",
    Form.HUGGING_FACE: "Take vLLM or SGLang for it, or convert it to GGUF.",
    Form.FILE: (
        "Take ComfyUI, a training service or any command for it, or a GGUF file or Hugging Face "
        "folder for this engine."
    ),
    Form.FOLDER: (
        "Take ComfyUI, a training service or any command for it, or put those files into it and "
        "look again."
    ),
}


def is_other_file(path: str) -> bool:
    """Whether its suffix says that it is neither a GGUF nor a folder."""
    return PurePosixPath(path).suffix.lower() in _FILES


def form_of(
    path: str, *, is_hugging_face: bool, is_other: bool, is_projector: bool, architecture: str
) -> Form:
    """The form of a model of this path and what is known of it (empty: nothing)."""
    name = PurePosixPath(path).name.lower()
    if is_hugging_face:
        return Form.HUGGING_FACE
    if is_other:
        return Form.FILE if is_other_file(name) else Form.FOLDER
    if is_projector or (name.endswith(".gguf") and "mmproj" in name):
        return Form.PROJECTOR
    if architecture in _IMAGES:
        return Form.IMAGE_GGUF
    if architecture or name.endswith(".gguf"):
        return Form.GGUF
    return Form.FILE if is_other_file(name) else Form.UNKNOWN


def objection(engine: str, loads: frozenset[Form], name: str, form: Form) -> str:
    """Why this engine cannot have the model, and what to do; empty: it may."""
    if form in loads or form is Form.UNKNOWN:
        return ""
    return said(
        "{engine} does not load {name}: it is {form}. {advice}",
        engine=engine,
        name=name,
        form=said(form.value),
        advice=said(ADVICE[form]),
    )
