"""The shared libraries as they are: where they lie, their functions and their structures.

They are called by ctypes, which lets other threads of Python run during every call.
"""

import ctypes
import os
import pathlib
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Iterator

from diapause.failures import DiapauseError

NEWEST = 2**64 - 1
_HERE = pathlib.Path(__file__).resolve().parent

# void (*)(void* user, int severity, const char* message)
LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class _Told(ctypes.Structure):
    """The result of a call, which prints as its members."""

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self._fields_)
        return f"{type(self).__name__}({members})"


class CheckpointInfo(_Told):
    """Says what a checkpoint call has done. Sizes are in bytes, and times in seconds.

    taken             1 if a checkpoint was taken; 0 for a snapshot that was not due
    version           its number
    level_asked, level_reached   1 to 4; reached: the deepest that holds on all ranks now, 0 if none
    bytes, bytes_total           protected bytes of this rank, and of all ranks; the latter is 0
                                 with work in the background
    blocked_s         time this rank spent in the call
    skipped           1 if it was due and too many versions were in flight
    waited_s          the part of blocked_s that went into waiting for versions in flight
    background, background_version   status of the first failure behind the program since the last
                                     call, and the version that failed
    """

    _fields_ = [("taken", c_int), ("version", c_uint64), ("level_asked", c_int),
                ("level_reached", c_int), ("bytes", c_uint64), ("bytes_total", c_uint64),
                ("blocked_s", c_double), ("skipped", c_int), ("waited_s", c_double),
                ("background", c_int), ("background_version", c_uint64)]


class Progress(_Told):
    """Says how far a version has come. A level_reached of 0 means that it is captured only."""

    _fields_ = [("version", c_uint64), ("level_asked", c_int), ("level_reached", c_int),
                ("in_flight", c_int), ("captured", c_int)]


class RestartInfo(_Told):
    """Which version a restart chose: its number, its deepest level, whether a newer one could
    not be had, the bytes of this rank, the greatest error of any value (0: all are exact), and
    whether a level of it does not hold any more until the restart has ended and the lost
    redundancy is restored."""

    _fields_ = [("version", c_uint64), ("level", c_int), ("stepped_back", c_int),
                ("bytes", c_uint64), ("greatest_error", c_double), ("redundancy_lost", c_int)]


class StopInfo(_Told):
    """The signal and the rank that got it; 0 and -1 for the end of the allocation."""

    _fields_ = [("signal", c_int), ("rank", c_int)]


class RegionInfo(_Told):
    """A region as it is stored."""

    _fields_ = [("name", c_char_p), ("type", c_int), ("element_bytes", c_uint64),
                ("count", c_uint64)]


_FUNCTIONS = {
    "diapause_finish": [c_void_p],
    "diapause_close": [c_void_p],
    "diapause_close_within": [c_void_p, c_double],
    "diapause_protect": [c_void_p, c_char_p, c_void_p, c_uint64, c_int],
    "diapause_protect_bytes": [c_void_p, c_char_p, c_void_p, c_uint64, c_uint64],
    "diapause_protect_block":
        [c_void_p, c_char_p, c_void_p, c_int, c_int] + [POINTER(c_uint64)] * 3,
    "diapause_unprotect": [c_void_p, c_char_p],
    "diapause_declare": [c_void_p, c_char_p, c_int],
    "diapause_allow_loss": [c_void_p, c_char_p, c_int, c_double],
    "diapause_wait": [c_void_p, c_uint64, c_int, c_double],
    "diapause_restore": [c_void_p, POINTER(c_char_p), c_uint64],
    "diapause_restart_end": [c_void_p],
    "diapause_files": [c_void_p, POINTER(c_char_p)],
    "diapause_restore_files": [c_void_p, POINTER(c_char_p)],
    "diapause_inject_bit_flip": [c_void_p, c_char_p, c_uint64, ctypes.c_uint32],
}
# These fill a structure, and are told how long Python knows it to be: diapause_..._sized.
_FILLING = {
    "diapause_checkpoint": [c_void_p, c_uint64, c_int, POINTER(CheckpointInfo)],
    "diapause_checkpoint_files": [c_void_p, c_uint64, c_int, c_int, POINTER(CheckpointInfo)],
    "diapause_snapshot": [c_void_p, c_uint64, POINTER(CheckpointInfo)],
    "diapause_should_stop": [c_void_p, POINTER(StopInfo)],
    "diapause_poll": [c_void_p, c_uint64, POINTER(Progress)],
    "diapause_restart": [c_void_p, c_uint64, POINTER(RestartInfo)],
    "diapause_restart_begin": [c_void_p, c_uint64, POINTER(RestartInfo)],
    "diapause_stored_find": [c_void_p, c_char_p, POINTER(RegionInfo)],
    "diapause_stored_at": [c_void_p, c_uint64, POINTER(RegionInfo)],
}
_TEXTS = {
    "diapause_last_error": [],
    "diapause_status_name": [c_int],
    "diapause_background_reason": [c_void_p],
    "diapause_restart_reason": [c_void_p],
    "diapause_version": [],
}


def _places(file: str) -> Iterator[str]:
    """Where a library may lie: named, in the wheel, in the prefix of an installation,
    where the loader looks."""
    if os.environ.get("DIAPAUSE_LIBRARY_PATH"):
        yield os.path.join(os.environ["DIAPAUSE_LIBRARY_PATH"], file)
        return
    yield str(_HERE / "lib" / file)
    for prefix in list(_HERE.parents)[3:4]:  # <prefix>/share/diapause/python/diapause
        for libdir in [prefix / "lib", *prefix.glob("lib/*-linux-gnu*"), prefix / "lib64"]:
            yield str(libdir / file)
    yield file


def _load(file: str) -> ctypes.CDLL:
    tried = []
    for place in _places(file):
        if os.sep in place and not os.path.exists(place):
            tried.append(place)
            continue
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
    raise DiapauseError(
        f"{file} cannot be loaded; set DIAPAUSE_LIBRARY_PATH to its directory: " + "; ".join(tried))


_loaded = {}


def _sized(function, arguments):
    """`function` without its last argument, the size of the structure that it fills."""
    size = ctypes.sizeof(arguments[-1]._type_)
    function.argtypes = [*arguments, c_size_t]
    return lambda *given: function(*given, size)


def library(name: str) -> ctypes.CDLL:
    """`diapause` or `diapause_mpi`, loaded once, with the types of its functions."""
    if name not in _loaded:
        found = _load(f"lib{name}.so.0.1")
        for function, arguments in _FUNCTIONS.items():
            getattr(found, function).argtypes = arguments
        for function, arguments in _FILLING.items():
            setattr(found, function, _sized(getattr(found, function + "_sized"), arguments))
        for function, arguments in _TEXTS.items():
            getattr(found, function).argtypes = arguments
            getattr(found, function).restype = c_char_p
        found.diapause_stored_count.argtypes = [c_void_p]
        found.diapause_stored_count.restype = c_int64
        _loaded[name] = found
    return _loaded[name]


class _OpenOptions(ctypes.Structure):
    _fields_ = [("config_path", c_char_p), ("config_text", c_char_p), ("log", LogFunction),
                ("log_user", c_void_p)]


def _mpi_name(vendor: str) -> bytes:
    """Returns the name that diapause_mpi.h has for the MPI that mpi4py was built with, by
    the handles that it has."""
    if vendor == "Open MPI":
        return b"Open MPI"
    relatives = ("MPICH", "Intel MPI", "MVAPICH", "Cray MPI")
    return b"MPICH" if any(name in vendor for name in relatives) else b"another MPI"


def open_serial(name: bytes, config: "bytes | None", log):
    """The library, the status and the handle. All messages go to `log`."""
    found, handle = library("diapause"), c_void_p()
    options = _OpenOptions(config_path=config or None, log=log)
    found.diapause_open_sized.argtypes = [c_char_p, POINTER(_OpenOptions), c_size_t,
                                          POINTER(c_void_p)]
    return found, found.diapause_open_sized(name, byref(options), ctypes.sizeof(options),
                                            byref(handle)), handle


def open_mpi(comm, name: bytes, config: "bytes | None", log):
    """Does the same on an mpi4py communicator, which is handed over by its address."""
    from mpi4py import MPI

    found, handle = library("diapause_mpi"), c_void_p()
    options = _OpenOptions(config_path=config or None, log=log)
    found.diapause_mpi_open_sized.argtypes = [c_void_p, c_size_t, c_char_p, c_char_p,
                                              POINTER(_OpenOptions), c_size_t, POINTER(c_void_p)]
    status = found.diapause_mpi_open_sized(MPI._addressof(comm), MPI._sizeof(comm),
                                           _mpi_name(MPI.get_vendor()[0]), name, byref(options),
                                           ctypes.sizeof(options), byref(handle))
    return found, status, handle


def program_comm(found: ctypes.CDLL, handle: c_void_p):
    """(status, the communicator that the program computes on)."""
    from mpi4py import MPI

    comm = MPI.Comm()
    found.diapause_comm.argtypes = [c_void_p, c_void_p]
    return found.diapause_comm(handle, MPI._addressof(comm)), comm
