"""`makemessages`: also collects what pure modules say by `wire.words`, and why servers fail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.commands import makemessages
from django.forms.utils import pretty_name

from lanes.engines import comfyui, forms, llama_flags, registry, sglang_flags, vllm_flags
from lanes.failures import common, reading
from lanes.models import TokenState
from slotserve.selfcheck.findings import Level
from slotserve.web.fields import StyledForm
from slotserve.web.hosts import ORDER

COLLECTED = "collected_for_makemessages.py"
LANGUAGES = ["de"]
NO_SOURCES = (".venv*", "static/*", "tests/*", "bench/*", "var/*")


class Command(makemessages.Command):
    """Django's command, knowing the functions that pure modules use in place of gettext."""

    xgettext_options = [
        *makemessages.Command.xgettext_options,
        "--keyword=said",
        "--keyword=marked",
    ]
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]

    def handle(self, *args: object, **options: Any) -> None:
        """Write the texts that stand in tables where xgettext finds them, while it looks."""
        options["locale"] = options["locale"] or LANGUAGES
        options["ignore_patterns"] = [*options["ignore_patterns"], *NO_SOURCES]
        options["no_location"] = options["no_wrap"] = True
        file = Path(settings.BASE_DIR) / COLLECTED
        file.write_text("".join(f"marked({text!r})\n" for text in sorted(set(table_texts()))))
        try:
            super().handle(*args, **options)
        finally:
            file.unlink()


def table_texts() -> Iterator[str]:
    """What is said of flags, of forms of models and of failures by any engine, and of states."""
    yield from _engine_texts()
    yield from _labels(StyledForm)
    yield from (state.value for state in (*TokenState, *Level))
    yield from ("joining", *ORDER)
    yield from common.ADVICE.values()
    yield from (text for _, text in reading.SIGNALS.values())
    known = [adapter.failure_words for adapter in registry.ENGINES.values()]
    patterns = [*common.PATTERNS]
    for words in known:
        yield from (words.gpu_memory, words.host_memory)
        patterns += [*words.patterns, *words.late_patterns]
    for one in patterns:
        yield from filter(None, (one.sentence, one.advice))


def _engine_texts() -> Iterator[str]:
    """Why flags are SlotServe's, what forms models have, and what to do when one does not fit."""
    yield from (form.value for form in forms.Form)
    yield from forms.ADVICE.values()
    yield from (why for why, _ in (*llama_flags.OWNED, *llama_flags.OWNED_FAMILIES))
    for module in (comfyui, sglang_flags, vllm_flags):
        yield from module.OWNED.reasons.values()
        yield from (why for why, _ in module.OWNED.families)


def _labels(form: type[StyledForm]) -> Iterator[str]:
    """What fields without a label of their own are called, in this form and those made of it."""
    yield from (pretty_name(name) for name, field in form.base_fields.items() if not field.label)
    for each in form.__subclasses__():
        yield from _labels(each)
