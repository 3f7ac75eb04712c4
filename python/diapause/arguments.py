"""Checks of arguments: what cannot be used is refused by its name, before C takes
it for something else."""

import math
import operator
import os
import sys
from typing import Any, List, Optional

from diapause.failures import ARGUMENT, failure

_UINT64_MOST = 2**64 - 1
_INT_MOST = 2**31 - 1


def expected(what: str, wanted: str, value: Any) -> TypeError:
    """The exception for a value of a type that cannot be used."""
    return TypeError(
        f"{what}: {wanted} is expected, not {'None' if value is None else type(value).__name__}")


def name_of(what: str, value: Any) -> bytes:
    """A name as C has it, where a zero would end it."""
    if not isinstance(value, str):
        raise expected(what, "a str", value)
    if "\0" in value:
        raise failure(ARGUMENT, f"{what} {value!r}: a name holds no zero bytes")
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise failure(ARGUMENT,
                      f"{what} {value!r}: a name is text that can be written as UTF-8") from None


def names_of(what: str, values: Any) -> List[bytes]:
    """A list of names. One name alone is refused: it would be taken for the list of its letters."""
    if isinstance(values, (str, bytes)) or not hasattr(type(values), "__iter__"):
        raise expected(what, "a list of names", values)
    return [name_of("region", value) for value in values]


def path_of(what: str, value: Any) -> Optional[bytes]:
    """The path of a file; None stays None."""
    if value is None:
        return None
    try:
        path = os.fsencode(value)
    except TypeError:
        raise expected(what, "the path of a file", value) from None
    if b"\0" in path:
        raise failure(ARGUMENT, f"{what} {path!r}: a path holds no zero bytes")
    return path


def whole_number(what: str, value: Any, least: int = -_INT_MOST - 1, most: int = _INT_MOST) -> int:
    """A number that ctypes takes as it is: of one with more bits than C has it
    would take the last ones."""
    try:
        number = operator.index(value)
    except TypeError:
        raise expected(what, "a whole number", value) from None
    if least <= number <= most:
        return number
    raise failure(ARGUMENT, f"{what} {number} is out of range")


def whole_numbers(what: str, values: Any) -> List[int]:
    """Numbers of elements or places, of which none is negative."""
    if not hasattr(type(values), "__iter__"):
        raise expected(what, "a sequence of whole numbers", values)
    return [whole_number(what, value, 0, _UINT64_MOST) for value in values]


def real_number(what: str, value: Any) -> float:
    if not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__"):
        raise expected(what, "a number", value)
    number = float(value)
    if math.isnan(number):
        raise failure(ARGUMENT, f"{what}: nan is no number")
    return number


def communicator(value: Any) -> Any:
    """A communicator of mpi4py, which is imported where there is one."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(value, mpi.Comm):
        raise expected("comm", "a communicator of mpi4py", value)
    return value
