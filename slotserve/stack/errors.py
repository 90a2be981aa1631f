"""What stops a start."""


class StartError(Exception):
    """The product cannot be started; the text is one sentence that says what to do."""
