"""How long a model's header takes to read, and what a scan of a large folder costs.

    .venv/bin/python -m bench.catalogue [--model FILE] [--runs 20] [--folders 100]

Header of the demo model (or of FILE), and of a made one with a vocabulary of 150,000 tokens and as
many merges; a walk through folders of 10 models each, of which nothing has changed. The controls
read the same bytes without understanding them, and ask the file system for the same files. Times
are of the processor, so that other work on the machine counts little. Fails when a header takes
250 ms or more.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lanes.catalogue.gguf import read_gguf
from lanes.catalogue.grouping import group
from lanes.catalogue.opening import opened
from lanes.catalogue.walking import walk
from lanes.demo_model import FILE_NAME, fetch_demo_model
from tests.model_files import KEYS, gguf

TOKENS = 150_000
MOST_SECONDS = 0.25
KEPT = Path.home() / ".cache" / "slotserve-tests"
MODELS_EACH = 10


def main() -> int:
    """Measure, print; 1 when a header takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--folders", type=int, default=100)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ss-bench-") as folder:
        real = wanted.model or fetch_demo_model(KEPT)
        made = Path(folder) / "made.gguf"
        made.write_bytes(large_vocabulary())
        slowest = max(_header(real, wanted.runs), _header(made, wanted.runs))
        _folders(Path(folder) / "models", wanted.folders, wanted.runs)
    return 1 if slowest >= MOST_SECONDS else 0


def large_vocabulary() -> bytes:
    """A header as a model of a large vocabulary has it: tokens, their types and scores, merges."""
    source = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyzé中 "

    def word() -> str:
        return "".join(source.choices(letters, k=min(40, max(1, round(source.gauss(6, 3))))))

    tokens = [word() for _ in range(TOKENS)]
    merges = [f"{word()} {word()}" for _ in range(TOKENS)]
    lists = {"tokenizer.ggml.scores": [0.0] * TOKENS, "tokenizer.ggml.merges": merges}
    tensors = tuple((f"blk.{n // 9}.part.{n % 9}", (64, 2), 0, 512 * n) for n in range(400))
    keys = {"tokenizer.ggml.tokens": tokens, **lists}
    return gguf({**KEYS, **keys}, tensors, data=512 * 400)


def _header(path: Path, runs: int) -> float:
    """Print and return the median of reading one header."""
    with opened(str(path)) as source:
        header = read_gguf(source)
        length = header.bytes_needed if header.bytes_needed < 2**24 else 2**22
    name = "demo model" if path.name == FILE_NAME else path.name

    def understand() -> None:
        with opened(str(path)) as source:
            read_gguf(source)

    def only_read() -> None:
        with opened(str(path)) as source:
            source.read_at(0, length)

    seconds, control = _median(understand, runs), _median(only_read, runs)
    facts = header.facts
    print(f"{name}: {facts.architecture}, vocabulary {facts.vocabulary_size:,}")
    print(f"  header: {seconds * 1e3:.1f} ms; control, {length / 1e6:.1f} MB read: ", end="")
    print(f"{control * 1e3:.1f} ms")
    return seconds


def _folders(root: Path, count: int, runs: int) -> None:
    for number in range(count):
        inside = root / f"{number:03}"
        inside.mkdir(parents=True)
        for each in range(MODELS_EACH):
            (inside / f"m{each}-Q4_K_M.gguf").touch()

    def look() -> None:
        group(walk(str(root)).files)

    def only_ask() -> None:
        for folder, _, names in os.walk(root):
            for name in names:
                os.stat(f"{folder}/{name}")

    seconds, control = _median(look, runs), _median(only_ask, runs)
    print(f"{count} folders with {count * MODELS_EACH:,} models, nothing changed")
    print(f"  look: {seconds * 1e3:.1f} ms; control, os.walk and os.stat: {control * 1e3:.1f} ms")


def _median(step: Callable[[], None], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
