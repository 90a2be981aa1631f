"""Tables as CSV that a spreadsheet opens without running anything in it."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

# The wide ones are what spreadsheets of Japanese and Chinese take for the first four.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
Cell = str | int | float


def guarded(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula, with an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def written(rows: Iterable[Sequence[Cell]]) -> str:
    """Rows as lines of CSV."""
    text = io.StringIO()
    csv.writer(text).writerows([guarded(cell) for cell in row] for row in rows)
    return text.getvalue()


def csv_answer(name: str, batches: Iterator[Sequence[Sequence[Cell]]]) -> StreamingHttpResponse:
    """A file that is sent batch by batch, each read when the one before it is sent."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
    }
    return StreamingHttpResponse(
        _chunks(batches), content_type="text/csv; charset=utf-8", headers=headers
    )


async def _chunks(batches: Iterator[Sequence[Sequence[Cell]]]) -> AsyncIterator[str]:
    """Batches are read from the database, which has a thread of its own."""
    read = sync_to_async(lambda: next(batches, None))
    while (batch := await read()) is not None:
        yield written(batch)
