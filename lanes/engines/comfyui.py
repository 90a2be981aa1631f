"""ComfyUI: `python main.py`, for image workflows.

The preset's model file is a folder with `models` and `custom_nodes` in it (ComfyUI's base
directory), or a workflow or model file that only says what the preset is for. What callers upload
and get made lies in a folder that is emptied at each start, so nobody finds another's pictures
after a switch. ComfyUI has no key: it is started on loopback alone, and takes any number of
requests, which it queues itself.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from lanes.engines.argparse_flags import has_flag, owned
from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.engines.comfyui_failures import COMFYUI
from lanes.engines.forms import Form, is_other_file
from lanes.engines.hosting import gpus, passed_on, words_of
from lanes.engines.vllm_flags import tuned

_FOLDERS = ("output", "input", "temp", "user")
_PLACES = "SlotServe gives each server folders of its own"
OWNED = owned(
    ("SlotServe chooses where the server listens", "--listen --port"),
    ("HTTPS ends at the gateway", "--tls-keyfile --tls-certfile"),
    ("other pages must not reach it", "--enable-cors-header"),
    (
        _PLACES,
        "--output-directory --input-directory --temp-directory --user-directory --base-directory "
        "--database-url --multi-user",
    ),
    ("there is no screen", "--auto-launch --windows-standalone-build"),
    ("a lane's cards are SlotServe's choice", "--cuda-device --default-device --oneapi-device"),
    ("a server downloads nothing", "--front-end-version --comfy-api-base --enable-manager"),
    ("the log belongs to SlotServe", "--dont-print-server --verbose"),
    ("it ends by itself", "--quick-test-for-ci --help -h"),
    families=(("it ends by itself", r"-h.*"),),
)
_NONE_OF_ITS_OWN = re.compile(r"(?!)")


class ComfyUi(EngineAdapter):
    """The adapter of ComfyUI's server."""

    health_path = "/system_stats"
    protected_path: str | None = None
    facts_path: str | None = None
    failure_words = COMFYUI
    loads = frozenset({Form.FILE, Form.IMAGE_GGUF, Form.FOLDER})

    def arguments(self, given: Sequence[str]) -> Kept:
        """Without OWNED."""
        return OWNED.without(given)

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Those that tune PyTorch."""
        return tuned(given, _NONE_OF_ITS_OWN)

    def launch(self, spec: ServerSpec) -> Launch:
        """On the CPU where the lane has no card, since it looks for one otherwise."""
        program = words_of(settings.SLOTSERVE_COMFYUI)
        kept, _ = OWNED.without(spec.arguments)
        chosen, _ = tuned(spec.environment, _NONE_OF_ITS_OWN)
        folders = {name: str(Path(spec.folder) / name) for name in _FOLDERS}
        argv = (
            *program,
            *("--listen", spec.address, "--port", str(spec.port), "--disable-auto-launch"),
            *(word for name, path in folders.items() for word in (f"--{name}-directory", path)),
            *(() if _is_file(spec.model_path) else ("--base-directory", spec.model_path)),
            *(() if spec.gpu_uuids or has_flag(kept, "--cpu") else ("--cpu",)),
            *kept,
        )
        environment = {**passed_on(), **chosen, **gpus(spec)}
        count = len(program)
        return Launch(argv, environment, program_words=count, folders=tuple(folders.values()))

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """It takes all requests at once into a queue of its own."""
        return ServerFacts(capabilities=("image",))


def _is_file(path: str) -> bool:
    return is_other_file(path) or path.lower().endswith(".gguf")
