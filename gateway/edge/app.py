"""The edge as a plain ASGI application."""

import os
from typing import Any

import orjson

from gateway.edge import catalogue
from gateway.edge.answer import Answer, Send
from gateway.edge.body import Receive
from gateway.edge.call import Call
from gateway.edge.dialects import Dialect
from gateway.edge.edge import Edge
from gateway.edge.headers import find, find_digest
from gateway.edge.metrics import CONTENT_TYPE
from gateway.edge.readiness import readiness
from gateway.edge.record import CLIENT_GONE_STATUS, usage_of
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routes import Kind, Matched, match
from gateway.edge.routing import Asked, Caller
from gateway.edge.serving import refuse_unread, serve

Scope = dict[str, Any]


class EdgeApp:
    """Takes lifespan and http; closes every websocket (they come with a later release)."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI scope."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.edge.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = self.edge.clock.monotonic()
        request_id = os.urandom(16).hex()
        matched = match(scope.get("raw_path") or scope["path"].encode())
        dialect = matched.route.dialect if matched else Dialect.OPENAI
        answer = Answer(send, dialect, request_id)
        try:
            await self._answer(scope, matched, receive, answer, request_id)
        finally:
            route = matched.route.path if matched else "other"
            code = answer.refusal.code if answer.refusal else ""
            seconds = self.edge.clock.monotonic() - arrived
            self.edge.metrics.count(route, answer.status or CLIENT_GONE_STATUS, code, seconds)

    async def _answer(
        self,
        scope: Scope,
        matched: Matched | None,
        receive: Receive,
        answer: Answer,
        request_id: str,
    ) -> None:
        refusal = _refuse_route(scope["method"], matched)
        if refusal is not None or matched is None:
            await refuse_unread(answer, receive, refusal or _NO_ROUTE)
        elif matched.route.kind is Kind.FORWARD:
            await self._model_call(scope, matched, receive, answer, request_id)
        else:
            await self._own_answer(scope, matched, answer)

    async def _model_call(
        self, scope: Scope, matched: Matched, receive: Receive, answer: Answer, request_id: str
    ) -> None:
        clock = self.edge.clock
        at, arrived = clock.now(), clock.monotonic()
        call = Call(
            parts=self.edge.parts,
            matched=matched,
            method=scope["method"],
            headers=scope["headers"],
            caller=Caller(find_digest(scope["headers"])),
            lane=_lane(scope, matched),
            receive=receive,
            answer=answer,
        )
        try:
            await serve(call)
        finally:
            ended = clock.monotonic()
            usage = usage_of(call, request_id=request_id, at=at, arrived=arrived, ended=ended)
            if usage is not None:
                self.edge.usage.put(usage)

    async def _own_answer(self, scope: Scope, matched: Matched, answer: Answer) -> None:
        kind = matched.route.kind
        if kind is Kind.HEALTH:
            await answer.send_json(200, b'{"status":"ok"}')
        elif kind is Kind.READY:
            edge = self.edge
            is_ready, body = readiness(
                edge.holder.table,
                edge.clock.now(),
                skew=edge.clock.skew(),
                max_age=edge.config.table_max_age,
            )
            headers = [] if is_ready else [(b"retry-after", b"1")]
            await answer.send_json(200 if is_ready else 503, orjson.dumps(body), headers)
        elif kind is Kind.METRICS:
            text = self.edge.metrics.text()
            length = (b"content-length", str(len(text)).encode())
            await answer.start(200, [(b"content-type", CONTENT_TYPE), length])
            await answer.finish(text)
        else:
            await self._models(scope, matched, answer)

    async def _models(self, scope: Scope, matched: Matched, answer: Answer) -> None:
        caller, lane = Caller(find_digest(scope["headers"])), _lane(scope, matched)
        table, now = self.edge.holder.table, self.edge.clock.now()
        max_age = self.edge.config.table_max_age
        if matched.model is None:
            found = catalogue.list_models(table, caller, lane, now, max_age=max_age)
        else:
            asked = Asked(matched.model, lane)
            found = catalogue.one_model(table, caller, asked, now, max_age=max_age)
        if isinstance(found, EdgeRefusal):
            await answer.refuse(found)
        else:
            await answer.send_json(200, orjson.dumps(found))


_NO_ROUTE = refuse("route_not_found", "there is nothing at this path; see /v1/models.")


def _refuse_route(method: str, matched: Matched | None) -> EdgeRefusal | None:
    if matched is None:
        return _NO_ROUTE
    if method not in matched.route.methods:
        allowed = " or ".join(matched.route.methods)
        return refuse("method_not_allowed", f"{matched.route.path} takes {allowed}, not {method}.")
    return None


def _lane(scope: Scope, matched: Matched) -> str | None:
    """The lane of the path, else of the header."""
    if matched.lane is not None:
        return matched.lane
    named = find(scope["headers"], b"x-slotserve-lane")
    return named.decode("latin-1").strip() or None if named is not None else None
