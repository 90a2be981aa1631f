"""Model files for tests: small, but true to their formats."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.gguf import GgufHeader, read_gguf

Tensor = tuple[str, Sequence[int], int, int]  # name, dimensions, type, offset
KEYS: dict[str, Any] = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.context_length": 4096,
    "tokenizer.ggml.tokens": ["a", "bc", ""],
    "tokenizer.chat_template": "{{ messages }}",
}
TENSORS: tuple[Tensor, ...] = (
    ("token_embd.weight", (64, 2), 0, 0),
    ("output.weight", (64,), 2, 512),
)


class Memory:
    """Bytes as a file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def read_at(self, offset: int, length: int) -> bytes:
        """As a file answers."""
        return self.content[offset : offset + length]


def read(content: bytes) -> GgufHeader | str:
    """The header, or the sentence against it."""
    try:
        return read_gguf(Memory(content))
    except UnreadableError as error:
        return str(error)


def text(value: str) -> bytes:
    """As GGUF writes a text."""
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def gguf(
    keys: Mapping[str, Any] = KEYS, tensors: Sequence[Tensor] = TENSORS, data: int = 640
) -> bytes:
    """A whole GGUF file with so many bytes of weights."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(text(name) + _value(value) for name, value in keys.items())
    for name, dimensions, kind, offset in tensors:
        head += text(name) + struct.pack("<I", len(dimensions))
        head += b"".join(struct.pack("<Q", each) for each in dimensions)
        head += struct.pack("<IQ", kind, offset)
    return head + b"\0" * (-len(head) % 32 + data)


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if value and isinstance(value[0], float):
        return struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(each) for each in value)


def safetensors(tensors: Mapping[str, tuple[str, Sequence[int], int]], data: int = -1) -> bytes:
    """A safetensors file of these tensors (dtype, shape, bytes), with all or so many bytes."""
    header, at = {}, 0
    for name, (kind, shape, size) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * (at if data < 0 else data)


def hugging_face(folder: Path, **config: Any) -> Path:
    """A folder with a model in Hugging Face's form."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {
        "architectures": ["Qwen2ForCausalLM"],
        "max_position_embeddings": 32768,
        "vocab_size": 151936,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(said | config))
    weights = safetensors({"model.embed.weight": ("BF16", (4, 8), 64)})
    (folder / "model.safetensors").write_bytes(weights)
    return folder
