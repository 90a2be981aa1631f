"""Multipart forms: the model is found while the form arrives, and the form goes up unchanged."""

import httpx
import pytest

from gateway.edge.form_scan import MOST_PARTS, FormReader, form_reader
from gateway.edge.json_scan import MOST_NAME_BYTES
from gateway.edge.refusals import EdgeRefusal
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, bearer, edge_at, lane
from tests.edge_harness import upstream as upstream_at

PATHS = [
    "/v1/audio/transcriptions",
    "/audio/translations",
    "/v1/images/edits",
    "/lanes/main/v1/images/variations",
]
FILE = ("a.wav", b"RIFF\r\n--x\r\n" * 40_000, "audio/wav")


def _field(name: str, value: bytes = b"qwen", more: str = "") -> bytes:
    head = f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + value + b"\r\n"


async def _read(body: bytes, size: int) -> str | EdgeRefusal | None:
    reader = FormReader(b"x")
    for at in range(0, len(body), size):
        refusal = await reader.feed(body[at : at + size])
        if refusal is not None:
            return refusal
    return reader.finish()


@pytest.mark.parametrize(
    ("parts", "model"),
    [
        (_field("model"), "qwen"),
        (_field("prompt", b"a") + _field("model"), "qwen"),
        (_field("file", b"\r\n-" * 9000, '; filename="a"') + _field("model"), "qwen"),
        (_field("model", b"smol") + _field("model"), "qwen"),
        (_field("model") + _field("model", b"smol", '; filename="a"'), "qwen"),
        (_field("Model"), None),
        (_field("prompt", b'name="model"'), None),
        (_field("model", b""), ""),
        (_field("model", "модель".encode()), "модель"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 5000, 10**6])
async def test_the_last_field_of_the_name_counts(parts: bytes, model: str, size: int) -> None:
    assert await _read(parts + b"--x--\r\n", size) == model


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "ends before"),
        (b"{}", "not multipart"),
        (_field("model"), "ends before"),
        (_field("model", b"a" * (MOST_NAME_BYTES + 1)) + b"--x--", "too long"),
        (_field("model", b"\xff") + b"--x--", "not UTF-8"),
        (_field("a") * (MOST_PARTS + 1) + b"--x--", "parts at most"),
        (b"--x\r\nbad header\r\n\r\n", "not multipart"),
        (b"--x\r\n" + b"a: b\r\n" * 1000 + b"\r\n", "not multipart"),
    ],
)
async def test_what_is_no_good_form_is_a_400(body: bytes, words: str) -> None:
    found = await _read(body, 5000)
    assert isinstance(found, EdgeRefusal)
    assert found.status == 400
    assert words in found.words


@pytest.mark.parametrize(
    "kind",
    [b"multipart/form-data", b"multipart/form-data; boundary=", b"x; boundary=" + b"a" * 500],
)
def test_a_form_must_name_its_boundary(kind: bytes) -> None:
    found = form_reader(kind)
    assert isinstance(found, EdgeRefusal)
    assert found.status == 400


@pytest.mark.valkey
async def test_a_form_goes_up_byte_for_byte_and_its_model_chooses(
    valkey_server: ValkeyServer,
) -> None:
    async with edge_at(valkey_server.url) as edge, upstreams.running(upstreams.echoes) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        for path in PATHS:
            form = httpx.Request("POST", edge.url, data={"model": "qwen"}, files={"file": FILE})
            sent, kind = form.read(), form.headers["content-type"]
            headers = bearer(OWNER) | {"content-type": kind}
            answer = await edge.client.post(path, content=sent, headers=headers)
            assert answer.status_code == 200
            assert fake.seen[-1].body == sent
            assert fake.seen[-1].header("content-type") == kind
            files = {"file": FILE}
            answer = await edge.client.post(
                path, data={"model": "smol"}, files=files, headers=bearer(OWNER)
            )
            assert answer.json()["error"]["code"] == "model_not_loaded"
        assert edge.edge.parts.spools.used == 0
