"""A llama-server of three versions, by its flags alone: `python llama_server.py OLD|NEW|BARE …`.

Help and errors are written as common/arg.cpp does. It serves nothing: it ends when it is started.
"""

import sys

COMMON = """\
----- common params -----

-h,    --help, --usage                  print usage and exit
--version                               show version and build info
-c,    --ctx-size N                     size of the prompt context (default: 0)
                                        (env: LLAMA_ARG_CTX_SIZE)
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', 'auto')
-m,    --model FNAME                    model path to load; see --no-such-flag
"""
SERVER = """\

----- server params -----

--host HOST                             ip address to listen
--port PORT                             port to listen (default: 8080)
       --swa-full                       use full-size SWA cache
--tools TOOL1,TOOL2,...                 experimental: which tools to enable
"""
NAMED = """\
-a,    --alias STRING                   set alias for model name
"""
OLD = """\
--mlock                                 force system to keep model in RAM
--no-mmap                               do not memory-map model
--draft, --draft-n, --draft-max N       number of tokens to draft (default: 16)
"""
NEW = """\
--load-mode {auto,none,mmap,mlock,mmap+mlock,dio}
                                        how to read the model
--spec-draft-n-max N                    number of tokens to draft (default: 3)
--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max or
                                        --spec-ngram-mod-n-max
--spec-ngram-size-m, --spec-ngram-size-max M
                                        the argument has been removed. use the respective one
"""


VERSIONS = {
    "OLD": ("10068 (571d0d5)", COMMON + SERVER + NAMED + OLD),
    "NEW": ("11434 (18ef86e)", COMMON + SERVER + NAMED + NEW),
    "BARE": ("99999 (0000000)", COMMON + SERVER + NEW),
}


def main() -> int:
    version, *words = sys.argv[1:]
    number, text = VERSIONS[version]
    if words == ["--help"]:
        sys.stdout.write(text)
        return 0
    if words == ["--version"]:
        sys.stderr.write("ggml_cuda_init: found 1 CUDA devices:\n")
        sys.stderr.write(f"version: {number}\nbuilt with GNU 12.2.0 for Linux x86_64\n")
        return 0
    sys.stderr.write(f"error: invalid argument: {' '.join(words)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
