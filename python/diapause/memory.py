"""Where the values of an object lie in memory, and of which type they are."""

import ctypes
import re
import sys
from typing import Any, NamedTuple, Tuple

from diapause.failures import ARGUMENT, failure

BYTES, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64 = range(11)
_SIGNED = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
_UNSIGNED = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}
_FLOATS = {4: FLOAT32, 8: FLOAT64}
_NATIVE = "@=<" if sys.byteorder == "little" else "@=>!"

_WRITABLE, _FORMAT, _ANY_CONTIGUOUS = 0x1, 0x4, 0x80 | 0x10 | 0x8


class _PyBuffer(ctypes.Structure):
    """Py_buffer of Python's C interface."""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
                ("internal", ctypes.c_void_p)]


class Memory(NamedTuple):
    """`count` elements of `element_bytes` at `address`; `owner` keeps the memory where it
    is as long as it lives."""

    owner: Any
    address: int
    count: int
    element_bytes: int
    type: int
    shape: Tuple[int, ...]
    is_in_c_order: bool


def _refuse(region: str, why: str):
    return failure(ARGUMENT, f"region '{region}': {why}")


def _type_of(format_: str, size: int) -> int:
    """Returns the type of one element, by the characters of the module `struct`. A format that is
    no plain number is opaque."""
    if format_[:1] in "@=<>!" and format_[:1] not in _NATIVE:
        return BYTES
    letter = format_.lstrip("@=<>!")
    if letter in tuple("bhilqn"):
        return _SIGNED.get(size, BYTES)
    if letter in tuple("BHILQN"):
        return _UNSIGNED.get(size, BYTES)
    return _FLOATS.get(size, BYTES) if letter in ("f", "d") else BYTES


def _holds_references(format_: str) -> bool:
    """Returns whether elements are, or hold, Python objects, whose addresses would mean
    nothing after a restart."""
    return "O" in re.sub(r":[^:]*:", "", format_)


def _of_buffer(region: str, data: Any) -> Memory:
    view = memoryview(data)  # held: what is exported can be neither moved nor freed
    if view.readonly:
        raise _refuse(region, "its memory is read-only, and a restart writes to it")
    if not view.contiguous:
        raise _refuse(region, "it is not contiguous: protect the whole array, or a copy")
    if _holds_references(view.format):
        raise _refuse(region,
                      "it holds references to Python objects; keep these with protect_state")
    raw = _PyBuffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes, get.restype = ([ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int],
                                 ctypes.c_int)
    get(view, ctypes.byref(raw), _WRITABLE | _FORMAT | _ANY_CONTIGUOUS)
    address = raw.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
    count = view.nbytes // view.itemsize if view.itemsize else 0
    return Memory(view, address, count, view.itemsize, _type_of(view.format, view.itemsize),
                  tuple(view.shape or ()), view.c_contiguous)


def _is_one_piece(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> bool:
    """Returns whether elements lie side by side, whatever the order of the dimensions."""
    expected = 1
    for stride, extent in sorted(zip(strides, shape)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def _of_tensor(region: str, data: Any) -> Memory:
    """A tensor of PyTorch, which has no buffer."""
    if data.device.type != "cpu":
        raise _refuse(region,
                      f"the tensor lies on {data.device}; only memory of the host can be protected")
    if str(data.layout) != "torch.strided":
        raise _refuse(region, f"the layout of the tensor is {data.layout}: "
                      "protect the tensors that it consists of")
    if data.is_conj() or data.is_neg():
        raise _refuse(region, "the tensor is the conjugate or the negative of what its memory "
                      "holds: protect the tensor that it was made from")
    shape, strides = tuple(data.shape), tuple(data.stride())
    if data.numel() > 0 and not _is_one_piece(shape, strides):
        raise _refuse(region, "the tensor is not contiguous: protect the whole one that it is "
                      "a part of")
    kind = str(data.dtype).rpartition(".")[2]
    size = data.element_size()
    types = {"float": _FLOATS, "int": _SIGNED, "uint": _UNSIGNED}.get(kind.rstrip("0123456789"), {})
    return Memory(data, data.data_ptr(), data.numel(), size, types.get(size, BYTES), shape,
                  data.is_contiguous())


def _is_tensor(data: Any) -> bool:
    return hasattr(data, "data_ptr") and hasattr(data, "element_size")


def _is_masked(data: Any) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(data, masked.MaskedArray)


def memory_of(region: str, data: Any) -> Memory:
    """The memory of a NumPy array, a memoryview, an array.array, a bytearray, a ctypes
    object, or a PyTorch tensor."""
    if _is_masked(data):
        raise _refuse(
            region,
            "its mask would not be stored: protect its data and its mask, each under a name")
    if _is_tensor(data):
        return _of_tensor(region, data)
    try:
        return _of_buffer(region, data)
    except (TypeError, ValueError) as error:
        # A ValueError comes from types without a character, such as dates of NumPy.
        if getattr(error, "status", None) is not None:
            raise
        if hasattr(data, "dtype") and not data.dtype.hasobject and hasattr(data, "view"):
            opaque = _of_buffer(region, data.view("V%d" % data.dtype.itemsize))
            return opaque._replace(owner=(data, opaque.owner))
        raise _refuse(region,
                      f"{type(data).__name__} gives no access to its memory: {error}") from None
