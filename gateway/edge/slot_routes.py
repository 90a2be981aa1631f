"""Which requests take a slot of the model server: those it works on token by token.

The others it answers beside its slots, at once. They count as in flight all the same, so that a
drain waits for them.
"""

from gateway.edge.route import POST, Kind, Matched

_BESIDE_THE_SLOTS = (
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/count_tokens",
    "/input_tokens",
)


def needs_slot(method: str, matched: Matched) -> bool:
    """Whether a model server is busy with such a request. Reads (props, slots) never are."""
    if matched.route.kind is Kind.WEBSOCKET:
        return True
    return method in POST and not matched.upstream_path.endswith(_BESIDE_THE_SLOTS)
