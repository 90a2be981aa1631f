"""Who and what the made-up company has: names, machines and models, as data."""

from dataclasses import dataclass

GIB = 2**30
GROUPS = ("Research", "Studio", "Students")
PEOPLE = (
    "ada", "bo", "carmen", "dmitri", "elif", "farid", "greta", "hiroshi", "ines", "jonas",
    "katya", "liam", "mei", "noah", "oyelaran", "priya", "quentin", "rosa", "sven", "tomoko",
)  # fmt: skip
PURPOSES = (
    "evaluation of the new prompts",
    "batch of summaries",
    "demo for the customer",
    "fine-tuning run",
    "thesis: long contexts",
    "captions of the archive",
    "",
    "",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A host, and how its cards are parted into lanes."""

    key: str
    name: str
    card: str
    card_bytes: int
    lanes: tuple[tuple[str, str, int], ...]  # slug, name, cards


@dataclass(frozen=True, slots=True)
class Model:
    """A model on one host, under one preset."""

    host: str
    slug: str
    name: str
    size_bytes: int
    arguments: tuple[str, ...]
    engine: str = "llama.cpp"
    quantisation: str = "Q4_K_M"
    context: int = 32768
    parameters: int = 14_000_000_000
    tokens_per_second: float = 45.0
    capabilities: tuple[str, ...] = ("completion",)


MACHINES = (
    Machine(
        "atlas",
        "Atlas",
        "NVIDIA RTX 6000 Ada Generation",
        48 * GIB,
        (("atlas-0", "Atlas 0", 1), ("atlas-1", "Atlas 1", 1)),
    ),
    Machine(
        "borealis",
        "Borealis",
        "NVIDIA A100 80GB PCIe",
        80 * GIB,
        (("borealis-a", "Borealis A", 1), ("borealis-b", "Borealis B", 1)),
    ),
    Machine("cumulus", "Cumulus", "NVIDIA H100 80GB HBM3", 80 * GIB, (("cumulus", "Cumulus", 4),)),
    Machine("desk", "Desk 7", "NVIDIA GeForce RTX 4090", 24 * GIB, (("desk", "Desk 7", 1),)),
)
MODELS = (
    Model("atlas", "qwen3-14b", "Qwen3 14B", 9_001_752_960, ("-c", "32768", "-np", "4")),
    Model(
        "atlas",
        "gemma-3-27b",
        "Gemma 3 27B",
        16_546_404_000,
        ("-c", "16384", "-np", "2"),
        parameters=27_400_000_000,
        tokens_per_second=28.0,
        capabilities=("completion", "vision"),
    ),
    Model(
        "borealis",
        "llama-3.3-70b",
        "Llama 3.3 70B Instruct",
        42_520_395_584,
        ("-c", "32768", "-np", "4"),
        parameters=70_600_000_000,
        context=131072,
        tokens_per_second=19.0,
    ),
    Model(
        "borealis",
        "qwen2.5-coder-32b",
        "Qwen2.5 Coder 32B",
        19_851_336_672,
        ("-c", "65536", "-np", "2"),
        parameters=32_800_000_000,
        context=131072,
        tokens_per_second=31.0,
    ),
    Model(
        "cumulus",
        "deepseek-r1-distill-70b",
        "DeepSeek R1 Distill 70B",
        141_107_000_000,
        ("--max-model-len", "65536", "--tensor-parallel-size", "4"),
        engine="vllm",
        quantisation="BF16",
        parameters=70_600_000_000,
        context=131072,
        tokens_per_second=62.0,
    ),
    Model(
        "cumulus",
        "mixtral-8x22b",
        "Mixtral 8x22B Instruct",
        281_000_000_000,
        ("--max-model-len", "32768", "--tensor-parallel-size", "4"),
        engine="vllm",
        quantisation="BF16",
        parameters=141_000_000_000,
        context=65536,
        tokens_per_second=48.0,
    ),
    Model(
        "desk",
        "mistral-small-24b",
        "Mistral Small 24B",
        14_333_910_720,
        (
            "-c",
            "16384",
        ),
        parameters=23_600_000_000,
        tokens_per_second=33.0,
    ),
    Model(
        "desk",
        "bge-m3",
        "BGE M3",
        1_157_671_000,
        ("--embeddings", "-c", "8192"),
        quantisation="F16",
        parameters=567_000_000,
        context=8192,
        tokens_per_second=900.0,
        capabilities=("embeddings",),
    ),
)
