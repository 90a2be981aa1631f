"""Which files of a folder are one model: parts of split GGUFs, projectors, Hugging Face folders.

Pure: paths with sizes in, models out.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePosixPath

from lanes.catalogue.facts import word
from wire.words import Words, marked, said

GGUF, HUGGING_FACE, OTHER = "gguf", "huggingface", "other"
CONFIG, PIPELINE = "config.json", "model_index.json"
# Beside config.json and weights; their change is the model's change.
INDEX, TOKENIZER = "model.safetensors.index.json", "tokenizer_config.json"
TEMPLATES = frozenset({"chat_template.jinja", "chat_template.json"})
NAMES = TEMPLATES | {INDEX, TOKENIZER, CONFIG, PIPELINE}
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_HUB = re.compile(r"/models--([^/]+)/snapshots/[^/]+$")
# How names of GGUF files tell their quantisation, at their end.
_GRADE = re.compile(
    r"[-._ ](i1|ud|imat|(i?q|tq)\d[a-z0-9_]*|k_[sml]|[bf]?f?(16|32)|mxfp4(_moe)?|nvfp4)$"
)
_GRADES = ("f16", "bf16", "q8_0", "f32")  # of several projectors for one model, the first of these
LONGEST_NAME = 200
LONGEST_PATH = 500  # characters of one in a sentence
MOST_NAMED = 3  # files with other names in one sentence


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One file as the file system shows it; of a symbolic link, what it leads to."""

    path: str
    size: int
    modified_ns: int
    device: int
    inode: int
    is_link: bool = False

    @property
    def name(self) -> str:
        """Without its folder."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The folder that it is in."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Found:
    """One model. `path` is what a server is told to load."""

    kind: str
    path: str
    name: str
    files: tuple[FileSeen, ...]  # what holds weights, in order; none in a folder of another form
    beside: tuple[FileSeen, ...] = ()
    projector: FileSeen | None = None
    parts: int = 1  # that there should be

    @property
    def size(self) -> int:
        """Bytes of its weights."""
        return sum(each.size for each in self.files)

    @property
    def fingerprint(self) -> str:
        """Differs when a file was added, removed, replaced or written to."""
        digest = blake2b(digest_size=16)
        for each in (*self.files, *self.beside, *((self.projector,) if self.projector else ())):
            said = (each.path, each.size, each.modified_ns, each.device, each.inode)
            digest.update(repr(said).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    @property
    def modified_ns(self) -> int:
        """When the newest of its files was written to."""
        return max(each.modified_ns for each in (*self.files, *self.beside))


def group(files: Iterable[FileSeen]) -> list[Found]:
    """The models among these files, by path."""
    by_folder: dict[str, list[FileSeen]] = defaultdict(list)
    for each in _once_each(files):
        by_folder[each.folder].append(each)
    pipelines = {folder for folder, inside in by_folder.items() if _has(PIPELINE, inside)}
    found = [model for inside in by_folder.values() for model in _ggufs(inside)]
    for folder, inside in by_folder.items():
        if not _is_within(folder, pipelines):
            found.extend(_hugging_face(folder, inside))
    return sorted(found, key=lambda model: model.path)


def _once_each(files: Iterable[FileSeen]) -> list[FileSeen]:
    """Without links to files that are there by themselves, or twice."""
    kept: dict[tuple[int, int, str], FileSeen] = {}
    for each in sorted(files, key=lambda seen: (seen.is_link, seen.path)):
        # Small files beside weights may well be one in several folders.
        shared = "" if each.name.lower().endswith(".gguf") else each.path
        kept.setdefault((each.device, each.inode, shared), each)
    return sorted(kept.values(), key=lambda seen: seen.path)


def hard_links(files: Iterable[FileSeen]) -> list[Words]:
    """A sentence for each GGUF that has other names, which are left out; links are not told of."""
    named: dict[tuple[int, int], list[str]] = defaultdict(list)
    for each in sorted(files, key=lambda seen: seen.path):
        if each.name.lower().endswith(".gguf") and not each.is_link:
            named[each.device, each.inode].append(each.path)
    several = [paths for paths in named.values() if len(paths) > 1]
    sentences = [_same_file(paths[0], len(paths) - 1) for paths in several[:MOST_NAMED]]
    if len(several) > MOST_NAMED:
        sentences.append(said("So it is with {count} more.", count=len(several) - MOST_NAMED))
    return sentences


def _same_file(path: str, others: int) -> Words:
    name = word(path, LONGEST_PATH)
    if others == 1:
        text = marked("1 is the same file as {path} (a hard link), which stands for it.")
        return said(text, path=name)
    text = marked("{count} are the same file as {path} (hard links), which stands for them.")
    return said(text, path=name, count=others)


def _is_within(folder: str, pipelines: set[str]) -> bool:
    return any(folder == each or folder.startswith(each + "/") for each in pipelines)


def _ggufs(files: Sequence[FileSeen]) -> list[Found]:
    """The GGUF models of one folder, each with the projector that belongs to it."""
    ggufs = [each for each in files if each.name.lower().endswith(".gguf")]
    projectors = [each for each in ggufs if "mmproj" in each.name.lower()]
    several: dict[tuple[str, int], list[FileSeen]] = defaultdict(list)
    found = []
    for each in ggufs:
        if each in projectors:
            continue
        part = _PART.fullmatch(each.name)
        if part and int(part["count"]) > 1:
            several[part["stem"], int(part["count"])].append(each)
        else:
            found.append(Found(GGUF, each.path, _shown(each.name), (each,)))
    found += [_split(stem, count, parts) for (stem, count), parts in several.items()]
    return _paired(found, projectors)


def _split(stem: str, count: int, parts: list[FileSeen]) -> Found:
    """One model of several parts; a server is given the first, and finds the others."""
    first = f"{parts[0].folder}/{stem}-00001-of-{count:05}.gguf"
    known = next((p.path for p in parts if p.path.lower() == first.lower()), first)
    return Found(GGUF, known, stem[:LONGEST_NAME], tuple(parts), parts=count)


def _paired(models: list[Found], projectors: list[FileSeen]) -> list[Found]:
    """Each model with the projector named like it; in a folder of one model, with any."""
    stems = {model.path: stem_of(model.name) for model in models}
    is_one_model = len(set(stems.values())) == 1
    paired = []
    for model in models:
        stem = stems[model.path]
        like = [each for each in projectors if is_like(stem_of(_shown(each.name)), stem)]
        fitting = like or (projectors if is_one_model else [])
        best = min(fitting, key=_grade, default=None)
        paired.append(Found(model.kind, model.path, model.name, model.files, (), best, model.parts))
    return paired


def stem_of(name: str) -> str:
    """A model's name without its quantisation and the words for projectors."""
    stem = name.lower().removesuffix(".gguf").replace("mmproj", "")
    stem = re.sub(r"^[-._ ]+|[-._ ]+$", "", stem)
    while match := _GRADE.search("-" + stem):
        stem = stem[: max(0, match.start() - 1)].rstrip("-._ ")
    return re.sub(r"[-._ ]+", "-", stem).removeprefix("model").strip("-")


def is_like(projector: str, model: str) -> bool:
    """Whether one name ends with the other: uploaders put their own in front."""
    if not projector or not model:
        return False
    return projector == model or model.endswith(projector) or projector.endswith(model)


def _grade(projector: FileSeen) -> tuple[int, str]:
    name = projector.name.lower()
    at = next((n for n, grade in enumerate(_GRADES) if grade in name.replace("bf16", "b_f16")), 9)
    return (_GRADES.index("bf16") if "bf16" in name else at), name


def _hugging_face(folder: str, files: Sequence[FileSeen]) -> list[Found]:
    """The folder, if it is a model in Hugging Face's form."""
    weights = [each for each in files if each.name.endswith(".safetensors")]
    # Some folders hold the weights in another form as well.
    usual = [each for each in weights if not each.name.startswith("consolidated")] or weights
    if not usual or not _has(CONFIG, files):
        return []
    beside = tuple(each for each in files if each.name in NAMES)
    hub = _HUB.search(folder)
    name = hub[1].replace("--", "/") if hub else folder.rpartition("/")[2]
    return [Found(HUGGING_FACE, folder, name[:LONGEST_NAME], tuple(usual), beside)]


def _has(name: str, files: Iterable[FileSeen]) -> bool:
    return any(each.name == name for each in files)


def _shown(name: str) -> str:
    return PurePosixPath(name).stem[:LONGEST_NAME]
