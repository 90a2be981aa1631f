"""Close codes and reasons, as functions."""

import pytest

from gateway.edge.refusals import STATUSES, refuse
from gateway.edge.table import digest_of
from gateway.edge.websocket import find_protocol_digest
from gateway.edge.ws_close import LONGEST_REASON, close_of, passed_on, short


@pytest.mark.parametrize(
    ("code", "close"),
    [
        ("gpu_reserved", 1008),
        ("invalid_api_key", 1008),
        ("request_timeout", 1008),
        ("gateway_stopping", 1001),
        ("upstream_failed", 1011),
        ("model_switching", 1012),
        ("rate_limited", 1013),
        ("gateway_busy", 1013),
    ],
)
def test_a_refusal_has_a_close_code_and_leads_its_reason(code: str, close: int) -> None:
    assert close_of(refuse(code, "why.")) == (close, f"{code}: why.")


@pytest.mark.parametrize("code", STATUSES)
def test_a_reason_fits_a_control_frame_in_whole_characters(code: str) -> None:
    _, reason = close_of(refuse(code, "é" * 200))
    assert LONGEST_REASON - 1 <= len(reason.encode()) <= LONGEST_REASON
    assert short("é" * 61 + "xé") == "é" * 61 + "x"


@pytest.mark.parametrize(
    ("given", "told"),
    [(1000, 1000), (1001, 1001), (3000, 3000), (4999, 4999), (1011, 1011)]
    + [(each, 1000) for each in (None, 0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000)],
)
def test_only_codes_that_may_be_sent_are_passed_on(given: int | None, told: int) -> None:
    assert passed_on(given) == told


@pytest.mark.parametrize("prefix", ["openai-insecure-api-key.", "OpenAI-Insecure-API-Key."])
def test_a_key_among_subprotocols_is_found_however_it_is_spelled(prefix: str) -> None:
    assert find_protocol_digest(["realtime", f"{prefix}ss_x"]) == digest_of(b"ss_x")
    assert find_protocol_digest(["realtime", prefix]) is None
