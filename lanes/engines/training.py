"""A training service: a program of the host's that answers below /train/ and works on the cards.

SLOTSERVE_TRAINER is its command line with macros (`macros`); the preset's arguments follow it, and
${MODEL} is what is trained upon. It gets its key as API_KEY. Its requests go through the gateway at
/lanes/<slug>/upstream/train/…. A run outlives the request that began it, but not the slot: at its
end the service gets its stop command, or TERM, and SLOTSERVE_STOP_TIMEOUT_SECONDS to save its work.
"""

from collections.abc import Mapping, Sequence

from django.conf import settings

from lanes.engines import macros
from lanes.engines.base import Launch, ServerFacts, ServerSpec
from lanes.engines.command import Command
from lanes.engines.hosting import words_of
from lanes.failures.causes import Cause, Kind
from wire.words import said


class Training(Command):
    """The adapter of a host's training service."""

    def objection(self, arguments: Sequence[str], variables: Mapping[str, str]) -> str:
        """With macros that do not exist: the program and its port are the host's matter."""
        own = macros.objection(arguments, variables)
        return own or macros.objection(self.options.stop_command, {})

    def refusal(self, spec: ServerSpec) -> Cause | None:
        """Where SLOTSERVE_TRAINER names none."""
        if not words_of(settings.SLOTSERVE_TRAINER):
            return Cause(
                Kind.PROGRAM,
                said("This host has no training service."),
                advice=said(
                    "Set SLOTSERVE_TRAINER to its command in the settings of the host's worker."
                ),
            )
        stop = self.options.stop_command
        return super().refusal(_only(spec, stop)) if stop else None

    def launch(self, spec: ServerSpec) -> Launch:
        """The host's command, then the preset's arguments."""
        told = self._launch(spec, spec.arguments, words_of(settings.SLOTSERVE_TRAINER))
        environment = {**told.environment, "API_KEY": spec.api_key}
        return Launch(told.argv, environment, told.program_words, told.files)

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """What the preset says."""
        return ServerFacts(slots=self.options.slots, capabilities=("training",))


def _only(spec: ServerSpec, stop: tuple[str, ...]) -> ServerSpec:
    """A spec whose program is that of the stop command: the start's is the host's own."""
    return ServerSpec(
        spec.model_path, spec.alias, stop, spec.environment, spec.address, spec.port, spec.api_key
    )
