"""The errors that attnscope raises."""

from __future__ import annotations


class Error(Exception):
    """An error, told in one line as the command line tells it: "FILE: WHERE: what is wrong (got X, limit Y)".

    code: "usage" (what was asked for cannot be meant), "file", "value" (NaN, Inf), "resource" (memory, disk),
    "unavailable" (a backend that is not here), "interrupted"; of a command that was run as a program also
    "failure" (any of them) and "difference" (verify found one).
    """

    def __init__(self, text: str, code: str = "usage") -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (make_error, (str(self), self.code))


class UsageError(Error, ValueError):
    """An Error of code "usage"."""


class ResourceError(Error, MemoryError):
    """An Error of code "resource"."""


def make_error(text: str, code: str) -> Error:
    return {"usage": UsageError, "resource": ResourceError}.get(code, Error)(text, code)
