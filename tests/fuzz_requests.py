"""Random requests, valid and not, as bytes for a socket; each says whom its credential names.

`x-fuzz-user` carries that name to the model server, so that a test can tell who got there. Bytes
that only a smuggler would have read as a request carry the name SMUGGLED.
"""

import base64
import json
import random
from collections.abc import Callable

from tests.edge_harness import MEMBER, OWNER, key_of

SMUGGLED = "smuggled"
LANES = ("free", "owned", "gpu", "draining", "loading", "nowhere")
USERS = ("owner", "member", "limited", "expired", "scopeless", "nobody", "none")
_WEIGHTS = (6, 6, 3, 1, 1, 1, 1)
KEYS = {
    "owner": key_of(OWNER),
    "member": key_of(MEMBER),
    "limited": "ss_limited_to_free",
    "expired": "ss_expired",
    "scopeless": "ss_scopeless",
    "nobody": "ss_nobody_knows_this_one",
}
_JSON_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/audio/speech",
    "/v1/images/generations",
    "/rerank",
    "/infill",
    "/v1/tokenize",
    "/detokenize",
    "/apply-template",
    "/completion",
)
_FORM_PATHS = ("/v1/audio/transcriptions", "/v1/images/edits", "/v1/audio/translations")
_READ_PATHS = ("/v1/models", "/v1/models/qwen", "/props", "/v1/slots", "/health", "/ready")
_ODD_PATHS = (
    "/",
    "*",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/../v1/chat/completions",
    "/v1/chat%2Fcompletions",
    "/v1/chat/completions/",
    "/v1/chat/completions;x=1",
    "/upstream/props",
    "/tools",
    "/cors-proxy",
    "/models/load",
    "/slots/0?action=save",
    "/upstream/../tools",
    "/upstream/%2e%2e/tools",
    "/upstream/metrics",
    "/upstream//props",
    "/lora-adapters",
    "/v1/realtime",
    "/%00",
    "/\x7f",
    "/é",
)
_METHODS = ("POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW", "CONNECT", "post")
_MODELS = ("qwen", "big", "smol", "auto", "", "coder", "no-such-model", "q" * 500, "mod\u00e9l", 7)


class Fuzzer:
    """Makes requests from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> bytes:
        """One request, or what pretends to be one."""
        chance = self.random.random()
        if chance < 0.04:
            return self.random.randbytes(self.random.randint(1, 300))
        head, body = self._head_and_body()
        whole = head + body
        if chance < 0.10:
            return self._mangled(whole)
        if chance < 0.14:
            return whole[: self.random.randint(1, len(whole))]
        if chance < 0.18:
            return whole + self._smuggled()
        return whole

    def _head_and_body(self) -> tuple[bytes, bytes]:
        path, body, kind = self._pick(self._json, self._json, self._json, self._form, self._read)()
        method = "POST" if body else "GET"
        if self._is_rare():
            method = self.random.choice(_METHODS)
        user = self.random.choices(USERS, _WEIGHTS)[0]
        lines = [f"{method} {self._lane()}{path}{self._query()} HTTP/1.1", "Host: edge"]
        lines += [f"x-fuzz-user: {user}", *self._credential(user), *self._odd_headers()]
        if kind:
            lines.append(f"Content-Type: {kind}")
        framing, body = self._framed(body)
        self.random.shuffle(framing)
        return "\r\n".join([*lines, *framing, "", ""]).encode("utf-8", "replace"), body

    def _json(self) -> tuple[str, bytes, str]:
        """A JSON body, most often a sound one."""
        model = self.random.choice(_MODELS)
        message = {"role": "user", "content": self._text()}
        body = {"model": model, "messages": [message], "stream": self.random.random() < 0.3}
        if self._is_rare():
            del body["model"]
        data = json.dumps(body).encode()
        if self._is_rare():
            data = self.random.choice(
                [
                    b"[" * 5000,
                    b"null",
                    b"[]",
                    b'{"model":',
                    b"\xff\xfe{}",
                    b"",
                    data[:-1],
                    b'{"a":1}x',
                ]
            )
        return self._path(_JSON_PATHS), data, "application/json"

    def _form(self) -> tuple[str, bytes, str]:
        """A form with a file, most often a sound one."""
        edge = "xYzBoundary"
        model = str(self.random.choice(_MODELS))
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n',
            f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
            f"Content-Type: audio/wav\r\n\r\n{self._text()}\r\n",
        ]
        self.random.shuffle(parts)
        body = "".join(parts) + f"--{edge}--\r\n"
        kind = f"multipart/form-data; boundary={edge}"
        if self._is_rare():
            kind = self.random.choice(["multipart/form-data", "text/plain", f"{kind}zz", ""])
        if self._is_rare():
            body = body[: self.random.randint(0, len(body))]
        return self._path(_FORM_PATHS), body.encode("utf-8", "replace"), kind

    def _read(self) -> tuple[str, bytes, str]:
        """No body."""
        return self._path(_READ_PATHS), b"", ""

    def _path(self, sound: tuple[str, ...]) -> str:
        return self.random.choice(_ODD_PATHS if self._is_rare() else sound)

    def _lane(self) -> str:
        chance = self.random.random()
        if chance < 0.5:
            return f"/lanes/{self.random.choice(LANES)}"
        return (
            self.random.choice(["/lanes/FREE", "/lanes/%66ree", "/lanes"]) if chance < 0.53 else ""
        )

    def _query(self) -> str:
        if not self._is_rare():
            return ""
        return self.random.choice(
            [
                "?",
                "?model=qwen",
                "?model=%00",
                "?api_key=ss_x",
                "?key=ss_nobody",
                "?a=%zz",
                "?" + "q" * 900,
            ]
        )

    def _credential(self, user: str) -> list[str]:
        key = KEYS.get(user)
        if key is None:
            return self.random.choice([[], ["Authorization: Basic !!!"], ["x-api-key:"]])
        basic = base64.b64encode(f"u:{key}".encode()).decode()
        return [
            self.random.choice(
                [
                    f"Authorization: Bearer {key}",
                    f"x-api-key: {key}",
                    f"authorization: Basic {basic}",
                ]
            )
        ]

    def _odd_headers(self) -> list[str]:
        if not self._is_rare():
            return []
        odd = [
            "Expect: 100-continue",
            "Prefer: wait=0",
            "Prefer: wait=99999999999999999999",
            "Connection: close, x-fuzz-user",
            "X-SlotServe-Lane: owned",
            "X-SlotServe-Lane: \u00e9",
            "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
            "Origin: https://evil.example",
            "Cookie: sessionid=1",
            "Content-Encoding: gzip",
            "x-long: " + "l" * self.random.choice([5000, 70_000]),
            " folded: header",
            "bad header name: 1",
            "x-nul: \0",
        ]
        return self.random.sample(odd, self.random.randint(1, 2))

    def _framed(self, body: bytes) -> tuple[list[str], bytes]:
        """Content-Length or chunks, sometimes a lie."""
        if not self._is_rare():
            return [f"Content-Length: {len(body)}"], body
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        return self.random.choice(
            [
                (["Transfer-Encoding: chunked"], chunked),
                (["Transfer-Encoding: chunked"], b"zz\r\n" + body),
                (["Transfer-Encoding: chunked", "Content-Length: 5"], chunked),
                (["Transfer-Encoding: gzip, chunked"], chunked),
                (["Transfer-Encoding : chunked", "Content-Length: 0"], chunked),
                ([f"Content-Length: {len(body)}", f"Content-Length: {len(body) + 3}"], body),
                ([f"Content-Length: {len(body) + 10}"], body),
                (["Content-Length: -1"], body),
                (["Content-Length: 1e3"], body),
                (["Content-Length: 99999999999999999999"], body),
                ([], body),
            ]
        )

    def _smuggled(self) -> bytes:
        """A whole request behind another: it is one of its own, but without a credential."""
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nx-fuzz-user: {SMUGGLED}\r\n"
        return f"{head}Content-Length: 2\r\n\r\n{{}}".encode()

    def _mangled(self, data: bytes) -> bytes:
        """Some bytes changed, lost or doubled."""
        changed = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randrange(len(changed))
            changed[at : at + self.random.randint(0, 2)] = self.random.randbytes(
                self.random.randint(0, 3)
            )
            if not changed:
                return b"\r\n"
        return bytes(changed)

    def _text(self) -> str:
        return self.random.choice(
            ["Hi", "x" * 3000, "\u2603" * 50, '"model": "smol"', "\\u0000", ""]
        )

    def _is_rare(self) -> bool:
        return self.random.random() < 0.15

    def _pick(
        self, *makers: Callable[[], tuple[str, bytes, str]]
    ) -> Callable[[], tuple[str, bytes, str]]:
        return self.random.choice(makers)
