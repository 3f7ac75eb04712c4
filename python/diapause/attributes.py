"""NumPy arrays that a program may replace: what must stay the same, and arrays of
another length like them."""

import sys
from typing import Any, NamedTuple, Tuple

from diapause.arguments import expected
from diapause.failures import ARGUMENT, failure


class Kind(NamedTuple):
    """Says what all arrays that take the place of one another have in common."""

    dtype: Any
    dims: int
    row: Tuple[int, ...]  # all dimensions except the first
    order: str  # "C" or "F": how the elements follow one another in memory

    @property
    def row_elements(self) -> int:
        elements = 1
        for extent in self.row:
            elements *= extent
        return elements

    def fits(self, element_bytes: int, count: int) -> bool:
        """Returns whether so many elements are whole rows of such an array."""
        rows = self.row_elements
        return (self.dtype.itemsize == element_bytes and rows > 0 and count % rows == 0
                and (self.dims > 0 or count == 1))

    def empty(self, count: int) -> Any:
        """Returns an array of `count` elements."""
        import numpy

        shape = (count // self.row_elements, *self.row) if self.dims > 0 else ()
        return numpy.empty(shape, dtype=self.dtype, order=self.order)


def _is_array(data: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def _is_of(data: Any, kind: Kind) -> bool:
    in_order = data.flags.c_contiguous if kind.order == "C" else data.flags.f_contiguous
    return (data.dtype, data.ndim, data.shape[1:]) == (kind.dtype, kind.dims, kind.row) and in_order


class Attribute:
    """An array that is an attribute of an object or an item of a dictionary."""

    def __init__(self, region: str, owner: Any, name: str):
        self._region, self._owner, self._name = region, owner, name
        data = self.get()
        if not _is_array(data):
            raise expected(f"region '{region}'", "a NumPy array", data)
        is_in_c_order = data.flags.c_contiguous or not data.flags.f_contiguous
        self.kind = Kind(data.dtype, data.ndim, data.shape[1:], "C" if is_in_c_order else "F")

    def get(self) -> Any:
        return (self._owner[self._name] if isinstance(self._owner, dict)
                else getattr(self._owner, self._name))

    def get_like_the_first(self) -> Any:
        """The array that is there now. One of another kind would be taken for one of
        this kind by a restart."""
        data = self.get()
        if not _is_array(data):
            raise expected(f"region '{self._region}'", "a NumPy array", data)
        if not _is_of(data, self.kind):
            raise failure(ARGUMENT,
                          f"region '{self._region}': the array has been replaced by one of another "
                          "kind: type, number of dimensions, all dimensions but the first, and C "
                          "or Fortran order must stay the same")
        return data

    def has_kind(self) -> bool:
        data = self.get()
        return _is_array(data) and _is_of(data, self.kind)

    def set(self, data: Any) -> None:
        if isinstance(self._owner, dict):
            self._owner[self._name] = data
        else:
            setattr(self._owner, self._name, data)
