"""What is raised when a question has no answer: a stable code, what happened and why, what to do (docs/errors.md)."""

from __future__ import annotations

from collections.abc import Sequence

from kith import _kith


class KithError(Exception):
    """``code`` is for programs, ``str(error)`` says what happened, ``help`` what to do."""

    code: str
    help: str
    wrong: list[str]
    """Of rows that are refused: the first of them, and what is wrong with each."""

    def __init__(self, code: str, message: str, help: str = "", wrong: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.help = help
        self.wrong = list(wrong)
        if help:
            self.add_note(f"help: {help}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(code={self.code!r}, message={str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (error_of, (self.code, str(self), self.help, self.wrong))


class DeadlineExceeded(KithError, TimeoutError):
    """Time ran out."""


class Overloaded(KithError):
    """The cluster turns work away: wait before asking again."""


class Unreachable(KithError, ConnectionError):
    """Nobody who could answer can be reached."""


class Denied(KithError, PermissionError):
    """Nobody knows who asks, or they lack the right."""


class NotFound(KithError, LookupError):
    """There is no such store, graph, member or entity."""


class Refused(KithError, ValueError):
    """Rows, files, a name or a schema that nothing is built of; ``wrong`` has the first wrong rows."""


def error_of(code: str, message: str, help: str, wrong: Sequence[str] = ()) -> KithError:
    """The exception of a code, of the class that the client's Rust half gives it."""
    name = _kith.ERROR_CLASSES.get(code, "KithError")
    made: KithError = globals()[name](code, message, help, wrong)
    return made
