"""changepassword: Django's, but for what it writes."""

import getpass
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.management.commands import changepassword
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

TRIES = 3


class Command(changepassword.Command):
    """Django's saves the whole row as it was before it asked: whom an administrator has deactivated
    meanwhile could log in again."""

    help = "Change a member's password, and nothing else."

    def handle(self, *_args: object, **options: Any) -> None:
        """Ask for it twice, three times at most."""
        name = options["username"] or getpass.getuser()
        people = User.objects.using(options["database"]).filter(username=name)
        person = people.first()
        if person is None:
            raise CommandError(f"There is no member {name}.")
        self.stdout.write(f"Changing the password of {name}.")
        people.filter(pk=person.pk).update(password=make_password(self._asked(person)))
        self.stdout.write("It is changed.")

    def _asked(self, person: User) -> str:
        for _ in range(TRIES):
            password = getpass.getpass("Password: ")
            if password != getpass.getpass("Password (again): "):
                self.stderr.write("These are two different ones.")
                continue
            try:
                validate_password(password, person)
            except ValidationError as error:
                self.stderr.write("\n".join(error.messages))
            else:
                return password
        raise CommandError(f"Nothing was changed after {TRIES} attempts.")
