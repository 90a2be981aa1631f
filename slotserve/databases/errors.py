"""Why a database was not copied."""


class CopyError(Exception):
    """Nothing was changed; the text is a sentence that says what to do."""
