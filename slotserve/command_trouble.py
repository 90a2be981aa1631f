"""What every command says when the database does not let it do its work."""

from django.db import Error, ProgrammingError, connection


def in_words(error: Error) -> str:
    """A sentence with what to do; the database is asked whether it answers at all."""
    reason = " ".join(str(error).split()).rstrip(".")
    if not _answers():
        return f"The database does not answer: {reason}. Start it, or correct DATABASE_URL."
    if isinstance(error, ProgrammingError) or "no such " in reason:
        return (
            f"The database lacks what this release needs: {reason}. "
            "Run `python manage.py migrate` first."
        )
    return f"The database cannot be used: {reason}."


def _answers() -> bool:
    try:
        connection.close()
        connection.ensure_connection()
    except Error:
        return False
    return True
