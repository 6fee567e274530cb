"""The errors that attnscope raises."""

from __future__ import annotations

import re


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
        return (type(self), (str(self), self.code))

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError, which one of them is as well, would put it in quotes


class UsageError(Error, ValueError):
    """An Error of code "usage"."""


class PlaceError(UsageError, IndexError):
    """A place outside an axis, or a number that nothing has."""


class AbsentError(UsageError, KeyError):
    """A name, or a step, layer and branch, that nothing has."""


class KindError(UsageError, TypeError):
    """A thing of a kind that is not taken there."""


class ResourceError(Error, MemoryError):
    """An Error of code "resource"."""


class MissingPackage(Error, ImportError):
    """A package that this needs is not installed, or too old."""

    def __init__(self, text: str, code: str = "unavailable") -> None:
        super().__init__(text, code)


def make_error(text: str, code: str) -> Error:
    return {"usage": UsageError, "resource": ResourceError}.get(code, Error)(text, code)


_PYTHON_WORDS = {"from": "from_", "as": "as_"}
# A fact that is told, as the warnings of captures propose it: "--as q_state=final says …".
_FACT = re.compile(r"--as (\w+)=(\w+)(?= )")
# An option of the command line, and the space before its value where that is a number or a placeholder.
_OPTION = re.compile(r"(?<![\w/.-])--([a-z]+(?:-[a-z0-9]+)*)( (?=[A-Z0-9]))?")


def python_words(text: str) -> str:
    """What the libraries tell, with Python's words for the command line's: --layers 9 is layers=9, --text-token is
    text_token, --as q_state=final is as_={"q_state": "final"}."""

    def name(option: re.Match[str]) -> str:
        word = option[1].replace("-", "_")
        return _PYTHON_WORDS.get(word, word) + ("=" if option[2] else "")

    return _OPTION.sub(name, _FACT.sub(r'as_={"\1": "\2"}', text))


def engine_error(text: str, code: str) -> Error:
    """An error of the compiled part."""
    return make_error(python_words(text), code)
