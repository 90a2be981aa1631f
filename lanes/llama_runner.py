"""The built-in model server: llama.cpp's own HTTP server from the xllamacpp wheel, started by
llama-server's flags. `python -m lanes.llama_runner -m FILE --host 127.0.0.1 --port 18100 …`

It takes the flags of lanes/llama_options.py, reads keys from LLAMA_API_KEY only, and differs from
llama-server in two defaults: no web pages, and no cache of old prompts in host memory (see
lanes/engines/llama_cpp.py). Imports no Django.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import metadata

import xllamacpp

from lanes.llama_options import OPTIONS, Option, Params

_BY_NAME: dict[str, Option] = {name: option for option in OPTIONS for name in option.names.split()}


class ArgumentError(ValueError):
    """The command line cannot be used; the text is what llama-server would print."""


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal ends the process; 1 when the model cannot be served."""
    if asked := _ANSWERS.get(" ".join(arguments)):
        sys.stdout.write(asked())
        return 0
    # A handler in Python would wait for the load to end; the default action ends it at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        params = read_arguments(arguments)
    except ArgumentError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    params.api_keys = [key for key in os.environ.get("LLAMA_API_KEY", "").split(",") if key]
    try:
        _server = xllamacpp.Server(params)  # returns once the model is loaded; lives in threads
    except RuntimeError as error:
        sys.stderr.write(f"error: {error}\n")  # the cause is in the lines before
        return 1
    threading.Event().wait()
    return 0


def help_text() -> str:
    """Its flags in the form of llama-server's help."""
    rows = (", ".join(option.names.split()) + " VALUE" * option.takes_value for option in OPTIONS)
    return "".join(f"{row}\n" for row in rows)


def version_text() -> str:
    """In the form of llama-server's version."""
    return f"version: xllamacpp {metadata.version('xllamacpp')}\n"


_ANSWERS = {"--help": help_text, "--version": version_text}


def read_arguments(arguments: Sequence[str]) -> Params:
    """xllamacpp's parameters for this command line, or ArgumentError."""
    params = _defaults()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name = word.replace("_", "-") if word.startswith("--") else word
        option = _BY_NAME.get(name)
        if option is None:
            raise ArgumentError(f"error: invalid argument: {name}")
        if option.takes_value and not rest:
            raise ArgumentError(f"error: expected value for argument {name}")
        _apply(option, params, name, rest.pop(0) if option.takes_value else "")
    return _settled(params)


def _apply(option: Option, params: Params, name: str, text: str) -> None:
    try:
        option.apply(params, text)
    except (ValueError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise ArgumentError(f'error while handling argument "{name}": {error}') from error


def _defaults() -> Params:
    params = xllamacpp.CommonParams()
    params.hostnames = ["127.0.0.1"]
    params.port = 8080
    params.n_parallel = -1
    params.cache_ram_mib = 0
    params.ui = False
    return params


def _settled(params: Params) -> Params:
    """What llama-server works out once all arguments are known."""
    if not params.model.path:
        raise ArgumentError("error: no model is given: use -m FILE")
    if params.n_parallel < 0:
        params.n_parallel = 4
        params.kv_unified = True
    if params.embedding:
        params.n_batch = min(params.n_batch, params.n_ubatch)
    return params


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
