"""GET lanes/{slug}/log/ and runs/: a model server's own output, as JSON, as text, or followed."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import Http404, StreamingHttpResponse
from rest_framework import renderers, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import ApiToken
from lanes import log_reading
from lanes.log_reading import MOST_LINES, Piece
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve import log_following
from slotserve.api.errors import refuse
from wire.words import said

MOST = 2**63 - 1
ADMINISTRATORS = Refusal("not_administrator", said("Server logs are for administrators."))
NOT_BOTH = "Give offset, to go on from there, or lines, for the last ones: not both."
AS_TEXT = {"content_type": "text/plain; charset=utf-8", "headers": {"X-Accel-Buffering": "no"}}


class LogQuerySerializer(serializers.Serializer[Any]):
    """Which run, and what of its log."""

    run = serializers.IntegerField(
        min_value=1,
        max_value=MOST,
        required=False,
        help_text="which run, as runs/ says; without it the newest",
    )
    offset = serializers.IntegerField(
        min_value=0,
        max_value=MOST,
        required=False,
        help_text="go on from this byte: an answer's `next`",
    )
    lines = serializers.IntegerField(
        min_value=1,
        max_value=MOST_LINES,
        required=False,
        help_text="how many of the last lines, 400 unless said",
    )
    follow = serializers.BooleanField(
        default=False,
        help_text="stream text until the run has ended; without `run` that of every later one too",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Offset and lines exclude each other."""
        if "offset" in attrs and "lines" in attrs:
            raise serializers.ValidationError(NOT_BOTH)
        return attrs


class LogSerializer(serializers.Serializer[Any]):
    """Lines of a run's log."""

    run = serializers.IntegerField(allow_null=True, help_text="null: none has run here yet")
    offset = serializers.IntegerField(help_text="of the first byte of `lines`")
    next = serializers.IntegerField(help_text="the offset to ask for next")
    lines = serializers.ListField(child=serializers.CharField())
    unfinished = serializers.CharField(help_text="the beginning of a line that is not whole yet")
    skipped = serializers.IntegerField(help_text="bytes asked for that are not kept any more")
    has_more = serializers.BooleanField(help_text="more is there already")
    is_over = serializers.BooleanField(help_text="the run has ended, and this was the last of it")
    detail = serializers.CharField(help_text="what is wrong with the log; empty: nothing")


class RunSerializer(serializers.Serializer[Any]):
    """One run of a lane's model server."""

    id = serializers.IntegerField()
    preset = serializers.CharField(source="revision.preset.slug")
    revision = serializers.IntegerField(source="revision.number")
    generation = serializers.IntegerField()
    phase = serializers.CharField()
    started_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    exit_status = serializers.IntegerField(
        allow_null=True, help_text="minus the signal's number when one ended it"
    )
    reason = serializers.CharField(help_text="why it ended; empty: it was told to")


class PlainTextRenderer(renderers.BaseRenderer):
    """The lines as they are: what a terminal may be given."""

    media_type = "text/plain"
    format = "text"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> str:
        """Lines, then what is wrong; of a refusal its sentence."""
        words = [*data.get("lines", ()), *filter(None, [data.get("detail", "")])]
        return "".join(f"{line}\n" for line in words)


def read_log(lane: Lane, request: Request) -> Response | StreamingHttpResponse:
    """What of which run's log was asked for."""
    asked = LogQuerySerializer(data=request.query_params)
    asked.is_valid(raise_exception=True)
    wish = asked.validated_data
    run = _run(lane, wish.get("run"))
    if run is None:
        return Response({**_shown(NOTHING), "run": None, "detail": NO_RUN})
    lines = wish.get("lines", log_reading.LINES)
    if wish["follow"]:
        place = log_following.Place(run, wish.get("offset"), lines, goes_on="run" not in wish)
        return _follow(lane, place, request)
    piece = log_reading.fetch(lane, run, wish.get("offset"), lines=lines)
    if isinstance(piece, Refusal):
        return refuse(piece)
    return Response({**_shown(piece), "run": run.pk})


NOTHING = Piece(0, 0, (), "", 0, has_more=False, is_over=False, note="")
NO_RUN = "No model server has run on this lane yet."


def _run(lane: Lane, pk: int | None) -> Runtime | None:
    """The run of this number, or the lane's newest; one that is not the lane's is not found."""
    if pk is None:
        return log_reading.runs(lane).first()
    run = lane.runtimes.select_related("revision__preset").filter(pk=pk).first()
    if run is None:
        raise Http404
    return run


def _shown(piece: Piece) -> dict[str, Any]:
    shown = asdict(piece)
    del shown["note"]
    return {**shown, "lines": list(piece.lines), "detail": tell(piece.note)}


def _follow(
    lane: Lane, place: log_following.Place, request: Request
) -> Response | StreamingHttpResponse:
    if log_following.is_full():
        return refuse(log_following.TOO_MANY)
    token = request.auth.pk if isinstance(request.auth, ApiToken) else None
    session = None if token else request.session.session_key
    may_read = partial(
        log_following.may_read, cast(User, request.user).pk, token=token, session=session
    )
    text: AsyncIterator[str] = log_following.follow(lane, place, may_read)
    return StreamingHttpResponse(text, **AS_TEXT)
