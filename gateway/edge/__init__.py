"""The gateway: one process that passes requests on to model servers. No Django.

Its modules, in the order in which a request meets them:

process     command, workers, line; server, config; edge (wires all parts), readiness
connection  wire.http_protocol, wire.http_answers, wire.http_unframed; ws_protocol; app (ASGI), call
what        route, routes, upstream_routes, engine_paths, query; headers (credentials), prefer
body        serving; body, json_scan, json_patterns, form_scan; spool
who, where  table, holder (reads it), clock; routing, closures, verdicts (the order of refusals)
let in      attempt; allowance, limits, buckets; admission, gate, exchange, endings
waiting     waiting, queue, slots, slot_routes, paces, telling (comments of a stream)
forwarded   forward, upload, asking, upstreams, connections, pump, retold
answered    answer, answer_headers, typical, dialects, refusals, cors
sockets     websocket, ws_session, ws_close
models      catalogue, model_shapes
edges       company, roster, reports, shared (the script), heritage; valkey, pauses
recorded    record, tail, token_counts; metering, usage_spool; metrics, metrics_folder,
            tallies, gauges
"""
