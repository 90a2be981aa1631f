"""Any command: a program that listens where it is told, and says 200 at a path when it is ready.

Its whole command line is the preset's arguments, with macros (`macros`). A host starts only the
programs that its SLOTSERVE_COMMANDS names, so that who may edit presets may not run anything else
on it.
"""

import shutil
from collections.abc import Mapping, Sequence

from django.conf import settings

from lanes.engines import macros
from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.engines.command_failures import COMMAND
from lanes.engines.hosting import gpus, passed_on, words_of
from lanes.engines.options import Options
from lanes.failures.causes import Cause, Kind
from lanes.failures.reading import without_folders
from wire.words import said

HEALTH = "/health"
_OURS = ("SLOTSERVE_", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# By these, loaders and interpreters run other code than the program's: some hold code themselves,
# and PYTHONWARNINGS imports a module that starts what BROWSER says.
_LOADERS = (
    *("LD_", "DYLD_", "GLIBC_TUNABLES", "GCONV_PATH", "OPENSSL_", "BASH_", "PROMPT_COMMAND"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONBREAKPOINT"),
    *("PYTHONUSERBASE", "PYTHONINSPECT", "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR", "BROWSER"),
    *("PERL", "RUBY", "GEM_", "NODE_OPTIONS", "NODE_PATH", "LUA_", "JAVA_", "JDK_JAVA_OPTIONS"),
    *("_JAVA_OPTIONS", "CLASSPATH", "GIT_"),
)
_EXACTLY = ("PATH", "ENV", "SHELLOPTS", "IFS")  # PATH would choose which program a bare name is


class Command(EngineAdapter):
    """The adapter of any command."""

    failure_words = COMMAND

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.health_path = self.options.health_path or HEALTH
        self.protected_path: str | None = self.options.protected_path or None
        self.facts_path: str | None = None

    def with_options(self, options: Options) -> EngineAdapter:
        """With the preset's paths, stop command and slots."""
        return type(self)(options)

    def arguments(self, given: Sequence[str]) -> Kept:
        """All of them: every word is the command's own."""
        return list(given), []

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """All but those by which SlotServe knows its servers, gives out cards or starts Python."""
        barred = (*_OURS, *_LOADERS)
        kept = {
            name: text
            for name, text in given.items()
            if not name.startswith(barred) and name not in _EXACTLY
        }
        return kept, [
            said("{name} was left out: it is not one that a preset may set.", name=name)
            for name in given
            if name not in kept
        ]

    def objection(self, arguments: Sequence[str], variables: Mapping[str, str]) -> str:
        """Without a program, without a port, or with macros that do not exist."""
        if not arguments or "${" in arguments[0]:
            return said("Write the whole command: the program first, then its arguments.")
        if len(arguments) == 1 and len(arguments[0].split()) > 1:
            return said(
                "The command is one word: write program and arguments as words of their own."
            )
        for words in (arguments, self.options.stop_command):
            wrong = macros.objection(words, variables)
            if wrong:
                return wrong
        if not macros.uses((*arguments, *variables.values()), "PORT"):
            return said(
                "Tell the program its port: put ${{PORT}} among the arguments or the variables."
            )
        return ""

    def refusal(self, spec: ServerSpec) -> Cause | None:
        """Where SLOTSERVE_COMMANDS does not name the programs of start and stop."""
        for words in (spec.arguments, self.options.stop_command):
            if words and not _is_allowed(words[0]):
                return Cause(
                    Kind.PROGRAM,
                    said("This host may not start {program}.", program=without_folders(words[0])),
                    words[0],
                    said(
                        "Name it in SLOTSERVE_COMMANDS in the settings of the host's worker, or "
                        "change the preset."
                    ),
                )
        return None

    def launch(self, spec: ServerSpec) -> Launch:
        """The preset's own command, its macros filled in."""
        return self._launch(spec, spec.arguments)

    def stop(self, spec: ServerSpec) -> Launch | None:
        """The preset's stop command, with the same variables."""
        words = self.options.stop_command
        return self._launch(spec, words) if words else None

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """What the preset says."""
        return ServerFacts(slots=self.options.slots)

    def _launch(
        self, spec: ServerSpec, words: Sequence[str], program: Sequence[str] = ()
    ) -> Launch:
        own, _ = self.variables(spec.environment)
        known = macros.values(spec)
        filled = dict(zip(own, macros.filled(own.values(), known), strict=True))
        argv = macros.filled((*program, *words), macros.without_key(spec))
        environment = {**passed_on(), **filled, **gpus(spec)}
        files = {macros.key_path(spec): spec.api_key}
        return Launch(argv, environment, program_words=len(program) or 1, files=files)


def _is_allowed(program: str) -> bool:
    """By its whole path, however either is written."""
    wanted = shutil.which(program) or program
    named = words_of(settings.SLOTSERVE_COMMANDS)
    return any((shutil.which(each) or each) == wanted for each in named)
