"""What of a preset's arguments and environment may reach llama-server. Pure.

llama.cpp's parser takes `--name value`; names are exact, but `_` stands for `-` in those with two
hyphens; it knows no `--name=value` and no positional words (common/arg.cpp). So what follows an
owned flag and is no flag itself can only be that flag's value; a word of no flag would end the
program and is left out. No owned spelling survives anywhere in the kept list, also where it
stood as another flag's value.
"""

import re
from collections.abc import Mapping, Sequence

from lanes.engines import joined
from wire.words import said

# Why each flag is SlotServe's, and all its spellings.
OWNED: tuple[tuple[str, str], ...] = (
    ("the model file is the preset's own field", "-m --model"),
    ("SlotServe chooses where the server listens", "--host --port --reuse-port --api-prefix"),
    ("callers use the preset's name and aliases", "-a --alias"),
    ("each server gets a key of its own that only the gateway knows", "--api-key --api-key-file"),
    ("HTTPS ends at the gateway", "--ssl-key-file --ssl-cert-file"),
    (
        "a server loads registered files and downloads nothing",
        "-mu --model-url -dr --docker-repo -hf -hfr --hf-repo -hff --hf-file -hft --hf-token "
        "-mmu --mmproj-url --spec-draft-hf -hfd -hfrd --hf-repo-draft "
        "-hfv -hfrv --hf-repo-v -hffv --hf-file-v --tts-oute-default",
    ),
    (
        "tools, agents and MCP would let callers act on the host",
        "--tools --tools-runtime -ag --agent -no-ag --no-agent",
    ),
    (
        "files of the host are neither served nor written through the server",
        "--path --media-path --slot-save-path -lcd --lookup-cache-dynamic",
    ),
    ("a server starts no programs but those on its PATH", "--video-ffmpeg-dir"),
    ("a lane runs one model, so there is no router", "--server-base"),
    ("other hosts' devices belong to other lanes", "--rpc"),
    ("callers must not change what the next one gets", "--props"),
    (
        "the log belongs to SlotServe and keeps prompts out",
        "--log-file --log-disable --log-prompts-dir -v --verbose --log-verbose "
        "-lv --verbosity --log-verbosity",
    ),
    (
        "it prints something and ends",
        "-h --help --usage --version -cl --cache-list --completion-bash --list-devices "
        "-fitp --fit-print --check",
    ),
)
# Families that grow from build to build.
OWNED_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a server loads registered files and downloads nothing", re.compile(r"--.*-hf-(repo|file).*")),
    (
        "it would download a model and take a port of its own",
        re.compile(r"--(?!spec-default$).+-default|--fim-.+-spec"),
    ),
    ("HTTPS ends at the gateway", re.compile(r"--ssl-.*")),
    ("tools, agents and MCP would let callers act on the host", re.compile(r"--.*\bmcp\b.*")),
    ("a lane runs one model, so there is no router", re.compile(r"--(no-)?models-.*")),
)
STRAY = said("Words that belong to no flag were left out: write a flag and its value as two words.")
_PAIRED = re.compile(r"--lora-scaled|--control-vector-(scaled|layer-range)")
_REASONS = {name: why for why, names in OWNED for name in names.split()}
_FLAG = re.compile(r"--?[A-Za-z]")
_JOINED = re.compile(r"[=\s]")  # between a flag and its value in one text

# Variables that tune a server without changing what it serves, loads, writes or runs on.
_TUNING = re.compile(
    r"CUDA_(CACHE_DISABLE|CACHE_MAXSIZE|DEVICE_MAX_CONNECTIONS|DEVICE_ORDER|LAUNCH_BLOCKING)"
    r"|CUDA_(MODULE_LOADING|SCALE_LAUNCH_QUEUES)|NVIDIA_TF32_OVERRIDE"
    r"|GPU_MAX_HW_QUEUES|HSA_ENABLE_SDMA|HSA_OVERRIDE_GFX_VERSION"
    r"|LLAMA_(ATTN_ROT_DISABLE|GRAPH_REUSE_DISABLE|SET_ROWS)"
    r"|OMP_(NUM_THREADS|PLACES|PROC_BIND|WAIT_POLICY)|GOMP_(CPU_AFFINITY|SPINCOUNT)"
    r"|KMP_(AFFINITY|BLOCKTIME)|MALLOC_ARENA_MAX|TZ"
    r"|GGML_(CPU|CUDA|HIP|METAL|OP|SCHED|SYCL|VK)_(?!VISIBLE_DEVICES)(?!.*PATH)\w+"
)


def without_owned(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without SlotServe's own flags and their values, and a note for each flag."""
    kept: list[str] = []
    notes: list[str] = []
    words, made_two = joined.split(arguments)
    room, is_owned_before = 0, False  # how many values the flag before may take still
    for word in words:
        if not _FLAG.match(word):
            if room and not is_owned_before:
                kept.append(word)
            elif not room and STRAY not in notes:
                notes.append(STRAY)  # no word of it: it may be a key
            room = max(0, room - 1)
            continue
        name = flag_name(word)
        why = _owned_because(name)
        is_owned_before = why is not None
        room = _values(word)
        if why is None:
            kept.append(word)
        else:
            notes.append(said("{name} was left out: {why}.", name=name, why=said(why)))
    return kept, [*notes, *joined.notes(made_two, kept)]


def allowed_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that may reach a server, and a note for each that may not."""
    kept: dict[str, str] = {}
    notes: list[str] = []
    for name, value in environment.items():
        if _TUNING.fullmatch(name):
            kept[name] = value
        elif name.startswith("LLAMA_ARG_"):
            notes.append(said("{name} was left out: write it among the arguments.", name=name))
        else:
            notes.append(
                said("{name} was left out: it is not one that a preset may set.", name=name)
            )
    return kept, notes


def is_flag(word: str) -> bool:
    """Whether the parser takes it for a flag rather than a value."""
    return bool(_FLAG.match(word))


def is_owned(name: str) -> bool:
    """Whether this flag is SlotServe's."""
    return _owned_because(name) is not None


def flag_name(word: str) -> str:
    """The flag as llama-server knows it: without a value joined to it, `-` for `_`."""
    name = _JOINED.split(word, maxsplit=1)[0]
    return name.replace("_", "-") if name.startswith("--") else name


def _values(word: str) -> int:
    """The most values that the flag may have after it."""
    if _JOINED.search(word):
        return 0
    return 2 if _PAIRED.fullmatch(flag_name(word)) else 1


def _owned_because(name: str) -> str | None:
    if name in _REASONS:
        return _REASONS[name]
    return next((why for why, family in OWNED_FAMILIES if family.fullmatch(name)), None)
