"""Dictionaries of small values, pickled into versions and read from them."""

import pickle
import struct
from collections.abc import MutableMapping
from typing import Any, Dict

from diapause.arguments import expected, whole_number
from diapause.failures import ARGUMENT, MISMATCH, failure

_HEADER = struct.Struct("<8sQ")  # a mark, and the bytes of the pickle behind it
_MARK = b"DIAPYST1"
_SIZE_MOST = 2**63 - 1


class State:
    """A dictionary of the program, which is pickled into every version."""

    def __init__(self, region: str, values: Dict[str, Any], most_bytes: int):
        if not isinstance(values, MutableMapping):
            raise expected(f"region '{region}'", "a dictionary", values)
        self._region, self._values = region, values
        self._most_bytes = whole_number("most_bytes", most_bytes, 0, _SIZE_MOST)

    def pickled(self) -> bytearray:
        try:
            body = pickle.dumps(self._values, protocol=4)
        except Exception as error:  # errors of the values' own functions, too
            raise failure(
                ARGUMENT,
                f"region '{self._region}': the state cannot be pickled: {error}") from error
        if len(body) > self._most_bytes:
            raise failure(ARGUMENT,
                          f"region '{self._region}': the state takes {len(body)} bytes, and "
                          f"{self._most_bytes} are allowed; protect arrays by themselves, or allow "
                          "more")
        return bytearray(_HEADER.pack(_MARK, len(body)) + body)

    def room_for(self, stored_bytes: int) -> bool:
        """Returns whether that many bytes can be a state that is allowed."""
        return 0 < stored_bytes <= self._most_bytes + _HEADER.size

    def restore(self, stored: bytes) -> None:
        """Puts what was stored, and verified, into the dictionary."""
        mark, length = _HEADER.unpack_from(stored) if len(stored) >= _HEADER.size else (b"", 0)
        if mark != _MARK or length != len(stored) - _HEADER.size or length > self._most_bytes:
            raise failure(MISMATCH,
                          f"region '{self._region}' holds no state of a Python program, or more "
                          f"than {self._most_bytes} bytes")
        try:
            values = dict(pickle.loads(stored[_HEADER.size:]))
        except Exception as error:  # such as a class that the program does not have any more
            raise failure(
                MISMATCH,
                f"region '{self._region}': the state cannot be unpickled: {error}") from error
        self._values.clear()
        self._values.update(values)
