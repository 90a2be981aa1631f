"""A preset's words in those that a build takes, and what is said of the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.engines import llama_drift, llama_help
from lanes.engines.llama_flags import is_owned
from tests.standins import llama_server

OLD, NEW, BARE = (llama_help.flags_of(text) for _, text in llama_server.VERSIONS.values())


def test_a_help_names_every_flag_that_is_taken() -> None:
    common = {"-h", "--help", "--usage", "--version", "-c", "--ctx-size", "-fa", "--flash-attn"}
    common |= {"-m", "--model", "--host", "--port", "--swa-full", "--tools"}
    drafts = {"--draft", "--draft-n", "--draft-max"}
    common |= {"-a", "--alias"}
    old = common | drafts | {"--mlock", "--no-mmap"}
    assert sorted(OLD) == sorted(old)
    assert sorted(NEW) == sorted(common | {"--load-mode", "--spec-draft-n-max"})


@pytest.mark.parametrize("text", ["", "usage: tail [OPTION]\n  -f, --follow  follow\n", "\x00" * 9])
def test_what_is_no_help_of_a_server_names_no_flags(text: str) -> None:
    assert llama_help.flags_of(text) == frozenset()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("ggml_cuda_init: found 1\nversion: 9596 (18ef86e)\nbuilt with clang\n", "9596 (18ef86e)"),
        ("\nllama-server of a friend\n", "llama-server of a friend"),
        ("", ""),
        ("version: " + "9" * 500, "9" * 100),
    ],
)
def test_a_version_is_the_number_or_the_first_line(text: str, version: str) -> None:
    assert llama_help.version_of(text) == version


@pytest.mark.parametrize(
    ("words", "flags", "given"),
    [
        ("-c 4096 --no-mmap", OLD, "-c 4096 --no-mmap"),
        ("-c 4096 --no-mmap -fa on", NEW, "-c 4096 -fa on --load-mode none"),
        ("--mlock", NEW, "--load-mode mmap+mlock"),
        ("--mlock --no_mmap", NEW, "--load-mode mlock"),
        ("--no-mmap --mmap", NEW, "--load-mode mmap"),
        ("--direct-io", NEW, "--load-mode dio"),
        ("--no-mmap --load-mode dio", NEW, "--load-mode dio"),
        ("--load-mode none -c 1", OLD, "--no-mmap -c 1"),
        ("--load-mode mlock", OLD, "--no-mmap --mlock"),
        ("--load-mode auto", OLD, ""),
        ("--load-mode dio", OLD, "--load-mode dio"),
        ("--load-mode", OLD, "--load-mode"),
        ("--draft-max 4", NEW, "--spec-draft-n-max 4"),
        ("--spec_draft_n_max 4", OLD, "--draft-max 4"),
        ("--model /a", NEW, "--model /a"),
        ("--nothing-like it", NEW, "--nothing-like it"),
        ("--no-mmap --draft-max 4", frozenset(), "--no-mmap --draft-max 4"),
    ],
)
def test_words_are_given_as_the_build_takes_them(
    words: str, flags: frozenset[str], given: str
) -> None:
    assert " ".join(llama_drift.fitted(words.split(), flags).words) == given


@given(
    st.lists(st.sampled_from(["--no-mmap", "--mlock", "-c", "1", "--draft-max", "--x", "a b", ""])),
    st.frozensets(st.sampled_from(sorted(OLD | NEW | {"--mmap"}))),
)
def test_whatever_the_build_nothing_of_ours_comes_in(
    words: list[str], flags: frozenset[str]
) -> None:
    found = llama_drift.fitted(words, flags)
    assert not any(is_owned(word) for word in found.words)
    assert llama_drift.fitted(found.words, flags).words == found.words
    assert [word for word in words if word in ("1", "a b", "")] == [
        word for word in found.words if word in ("1", "a b", "")
    ]


def test_a_name_that_a_build_does_not_take_is_left_out_with_a_note() -> None:
    assert llama_drift.named("qwen", BARE) == ()
    assert llama_drift.named("qwen", OLD) == ("--alias", "qwen")
    only_short = (OLD | {"-a"}) - {"--alias"}
    assert llama_drift.named("qwen", only_short) == ("-a", "qwen")


@pytest.mark.parametrize(
    ("words", "flags", "note"),
    [
        ("--no-mmap", NEW, "B does not know --no-mmap: --load-mode none is given in its place."),
        ("--load-mode auto", OLD, "B does not know --load-mode auto: it is left out, "),
        ("--flash 1", NEW, "B does not know --flash; the nearest that it knows is --flash-attn."),
        (
            "--ctx-sise 1",
            NEW,
            "B does not know --ctx-sise; the nearest that it knows is --ctx-size.",
        ),
        (
            "--ctx-size=1",
            NEW,
            "B does not know --ctx-size=…: write --ctx-size and its value as two",
        ),
        ("--tool", NEW, "B does not know --tool."),
        ("--zzz k3y", NEW, "B does not know --zzz."),
        ("-c 1", NEW, ""),
        ("-c 1", BARE, "B has no --alias: it is started without a name."),
        ("--zzz", frozenset(), ""),
    ],
)
def test_a_note_names_what_a_build_does_not_know(
    words: str, flags: frozenset[str], note: str
) -> None:
    told = " ".join(llama_drift.notes(words.split(), flags, "B"))
    assert told.startswith(note)
    assert bool(told) == bool(note)
    assert "k3y" not in told
