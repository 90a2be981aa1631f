"""What can be said of the failures of programs that are not known."""

from lanes.failures.causes import FailureWords

COMMAND = FailureWords(
    program="the program",
    gpu_memory="Have the program take less of it, or free the card.",
    host_memory="Have the program take less of it, or free memory on the host.",
)
