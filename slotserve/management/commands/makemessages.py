"""`makemessages`: also collects what pure modules say by `wire.words.said`."""

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Django's command, knowing the function that pure modules use in place of gettext."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=said"]
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]
