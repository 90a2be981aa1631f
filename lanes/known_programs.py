"""What is known of the programs of this host, which its worker has asked (`llama_probing`)."""

from pathlib import Path

from lanes.engines import llama_cpp
from lanes.models import Engine, Host, LlamaServer, PresetRevision
from lanes.version import code_version


def identity() -> str:
    """Which file is started for llama.cpp; of the built-in runner which code."""
    if llama_cpp.is_built_in():
        return f"built in, {code_version()}"
    path = Path(llama_cpp.program()[0])
    try:
        found = path.stat()
    except OSError:
        return f"{path}, not there"
    return f"{path}, {found.st_size} bytes, {found.st_mtime_ns}"


def known_flags(host: Host, revision: PresetRevision) -> frozenset[str]:
    """The flags of what starts on this host now for this revision; empty: nobody knows."""
    if revision.engine != Engine.LLAMA_CPP or revision.image:  # an image has its own program
        return frozenset()
    known = LlamaServer.objects.filter(host=host).first()
    if known is None or known.identity != identity():
        return frozenset()
    return frozenset(known.flags)
