"""The edge as a plain ASGI application."""

from functools import partial
from random import getrandbits
from typing import Any
from urllib.parse import parse_qsl

import orjson

from gateway.edge import verdicts
from gateway.edge.answer import Answer, Send
from gateway.edge.body import Receive
from gateway.edge.call import Call
from gateway.edge.catalogue import Model, list_models, one_model
from gateway.edge.dialects import Dialect
from gateway.edge.edge import Edge
from gateway.edge.headers import Headers, find, find_digest
from gateway.edge.metrics import CONTENT_TYPE
from gateway.edge.model_shapes import list_body, model_body
from gateway.edge.query import refuse_query
from gateway.edge.readiness import readiness
from gateway.edge.record import CLIENT_GONE_STATUS, usage_of
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routes import Kind, Matched, match
from gateway.edge.routing import Asked, Caller
from gateway.edge.serving import refuse_unread, serve
from gateway.edge.websocket import NO_UPGRADE, as_http, serve_websocket
from wire.http_protocol import CONNECTION, GuardedProtocol

Scope = dict[str, Any]


class EdgeApp:
    """Takes lifespan, http and websocket."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI scope."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._http(scope | {"method": "GET"}, receive, as_http(send))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.edge.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = self.edge.clock.monotonic()
        # No secret: enough of them foretell the next ones.
        request_id = f"{getrandbits(128):032x}"
        matched = match(scope.get("raw_path") or scope["path"].encode())
        cors = self.edge.cors
        more = cors.answer_headers(scope["headers"]) if cors is not None else ()
        answer = Answer(send, _dialect(scope, matched), request_id, more)
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
        refusal = _refuse_route(scope["method"], matched, scope["query_string"])
        allowed = self._preflight(scope, matched)
        if allowed is not None:
            await answer.start(204, allowed)
            await answer.finish()
        elif refusal is not None or matched is None:
            await refuse_unread(answer, receive, refusal or _NO_ROUTE)
        elif matched.route.kind is Kind.WEBSOCKET and scope["type"] == "http":
            await refuse_unread(answer, receive, NO_UPGRADE)
        elif matched.route.kind in _FOR_MODELS:
            await self._model_call(scope, matched, receive, answer, request_id)
        else:
            await self._own_answer(scope, matched, answer)

    def _preflight(self, scope: Scope, matched: Matched | None) -> Headers | None:
        """What a browser asks before it lets a page of another origin call; None for the rest."""
        cors = self.edge.cors
        if cors is None or matched is None or scope["method"] != "OPTIONS":
            return None
        if matched.route.kind in _FOR_OPERATORS:
            return None
        return cors.preflight_headers(scope["headers"], matched.route.methods)

    async def _model_call(
        self, scope: Scope, matched: Matched, receive: Receive, answer: Answer, request_id: str
    ) -> None:
        clock = self.edge.clock
        connection: GuardedProtocol | None = (scope.get("extensions") or {}).get(CONNECTION)
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
            connection=connection,
            has_whole_body=connection is not None and connection.has_whole(scope),
            query=scope["query_string"],
        )
        answer.notes = partial(self.edge.notes.headers, path=matched.route.path)
        if connection is not None:
            answer.line = connection.line_of(scope)
        try:
            if matched.route.kind is Kind.WEBSOCKET:
                await serve_websocket(call, scope)
            else:
                await serve(call)
        finally:
            ended = clock.monotonic()
            self._learn(call, ended - arrived)
            usage = usage_of(call, request_id=request_id, at=at, arrived=arrived, ended=ended)
            if usage is not None:
                self.edge.usage.put(usage)
                self.edge.metrics.served(usage)

    def _learn(self, call: Call, seconds: float) -> None:
        """How long a whole answer took, for the warnings of those that follow."""
        exchange = call.exchange
        if exchange is not None and exchange.is_complete and call.answer.status == 200:
            route, path = exchange.route, call.matched.route.path
            key = (route.lane.slug, route.upstream.preset, path)
            self.edge.typical.add(key, seconds - call.queue_seconds)

    async def _own_answer(self, scope: Scope, matched: Matched, answer: Answer) -> None:
        kind = matched.route.kind
        if kind is Kind.HEALTH:
            await answer.send_json(200, b'{"status":"ok"}')
        elif kind is Kind.READY:
            edge = self.edge
            is_ready, body = readiness(
                edge.holder.table,
                edge.clock,
                max_age=edge.config.table_max_age,
                is_stopping=edge.is_stopping,
                has_twin=edge.roster.has_twin,
            )
            headers = [] if is_ready else [(b"retry-after", b"1")]
            await answer.send_json(200 if is_ready else 503, orjson.dumps(body), headers)
        elif kind is Kind.METRICS:
            await self._metrics(scope, answer)
        else:
            await self._models(scope, matched, answer)

    async def _metrics(self, scope: Scope, answer: Answer) -> None:
        wanted = self.edge.config.metrics_digest
        if wanted is not None and find_digest(scope["headers"]) != wanted:
            await answer.refuse(_NO_METRICS)
            return
        text = await self.edge.metrics.told()
        length = (b"content-length", str(len(text)).encode())
        await answer.start(200, [(b"content-type", CONTENT_TYPE), length])
        await answer.finish(text)

    async def _models(self, scope: Scope, matched: Matched, answer: Answer) -> None:
        if self.edge.clock.is_in_doubt:
            await answer.refuse(verdicts.clock_was_set())
            return
        caller, lane = Caller(find_digest(scope["headers"])), _lane(scope, matched)
        table, now = self.edge.holder.table, self.edge.clock.now()
        max_age = self.edge.config.table_max_age
        found: tuple[Model, ...] | Model | EdgeRefusal
        if matched.model is None:
            found = list_models(table, caller, lane, now, max_age=max_age)
        else:
            found = one_model(table, caller, Asked(matched.model, lane), now, max_age=max_age)
        if isinstance(found, EdgeRefusal):
            await answer.refuse(found)
        elif isinstance(found, Model):
            await answer.send_json(200, orjson.dumps(model_body(found, answer.dialect)))
        else:
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            await answer.send_json(200, orjson.dumps(list_body(found, answer.dialect, query)))


_FOR_MODELS = frozenset({Kind.FORWARD, Kind.WEBSOCKET})
_FOR_OPERATORS = frozenset({Kind.HEALTH, Kind.READY, Kind.METRICS})
_NO_METRICS = refuse("invalid_api_key", "/metrics needs SLOTSERVE_METRICS_TOKEN as a bearer token.")
_NO_ROUTE = refuse("route_not_found", "there is nothing at this path; see /v1/models.")


def _dialect(scope: Scope, matched: Matched | None) -> Dialect:
    """The route's own; else Anthropic's for its clients, which name a version of it."""
    if matched is not None and matched.route.kind is Kind.FORWARD:
        return matched.route.dialect
    is_anthropic = find(scope["headers"], b"anthropic-version") is not None
    return Dialect.ANTHROPIC if is_anthropic else Dialect.OPENAI


def _refuse_route(method: str, matched: Matched | None, query: bytes) -> EdgeRefusal | None:
    if query and (refusal := refuse_query(query)) is not None:
        return refusal
    if matched is None:
        return _NO_ROUTE
    if method not in matched.route.methods:
        methods = matched.route.methods
        words = f"{matched.route.path} takes {' or '.join(methods)}, not {method}."
        return refuse("method_not_allowed", words, allow=methods)
    return None


def _lane(scope: Scope, matched: Matched) -> str | None:
    """The lane of the path, else of the header."""
    if matched.lane is not None:
        return matched.lane
    named = find(scope["headers"], b"x-slotserve-lane")
    return named.decode("latin-1").strip() or None if named is not None else None
