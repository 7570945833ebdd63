"""The exceptions that requests and builds raise. Each has a stable code, a message and help (docs/errors.md)."""

from __future__ import annotations

from collections.abc import Sequence

from kith import _kith


class KithError(Exception):
    """A request or a build failed. ``code`` is for programs; ``str(error)`` says what happened, and ``help`` what to do."""

    code: str
    help: str
    wrong: list[str]
    """If rows were refused: the first of these rows, and what is wrong with each."""

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
    """The answer did not arrive before the deadline."""


class Overloaded(KithError):
    """The cluster has too much work. Wait before you send the request again."""


class Unreachable(KithError, ConnectionError):
    """No process that could answer can be reached."""


class Denied(KithError, PermissionError):
    """The cluster does not know the caller, or the caller lacks the right."""


class NotFound(KithError, LookupError):
    """The store, graph, member or entity does not exist."""


class Refused(KithError, ValueError):
    """Nothing was built, because rows, a file, a name or the schema are wrong. ``wrong`` has the first wrong rows."""


def error_of(code: str, message: str, help: str, wrong: Sequence[str] = ()) -> KithError:
    """Returns an exception with this code. Its class follows from the code; the Rust part of the client says how."""
    name = _kith.ERROR_CLASSES.get(code, "KithError")
    made: KithError = globals()[name](code, message, help, wrong)
    return made
