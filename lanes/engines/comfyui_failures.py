"""What ComfyUI writes when it fails. A workflow that runs out of memory does not end the server."""

import re

from lanes.failures.causes import FailureWords

COMFYUI = FailureWords(
    program="ComfyUI",
    gpu_memory="Add --lowvram or --novram, or make smaller images.",
    host_memory="Add --disable-pinned-memory or --cache-none, or free memory on the host.",
    # Of one workflow, or of one custom node: the server goes on.
    harmless=re.compile(
        r"!!! Exception during processing|Got an OOM, unloading|\(IMPORT FAILED\)"
        r"|Cannot import \S+ module for custom nodes"
    ),
)
