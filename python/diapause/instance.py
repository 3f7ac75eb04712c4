"""Checkpoints of a running program: `Instance`, which `diapause.open` returns."""

import contextlib
import ctypes
import logging
import os
import pathlib
import threading
from ctypes import byref, c_char_p, c_uint64
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from diapause import library as c
from diapause.arguments import (communicator, name_of, names_of, path_of, real_number, whole_number,
                                whole_numbers)
from diapause.attributes import Attribute
from diapause.failures import ARGUMENT, NOT_FOUND, OK, TIMEOUT, DiapauseError, failure
from diapause.library import CheckpointInfo, Progress, RestartInfo, StopInfo
from diapause.memory import BYTES, memory_of
from diapause.states import State

NEWEST = c.NEWEST
CAPTURED = 0
CHANGING, STABLE, CONSTANT = 0, 1, 2
LATTICE, SZ3, ZFP = 0, 1, 2
FOREVER_S = 1e9

_LOG = logging.getLogger("diapause")
_SEVERITIES = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO}


class StoredRegion(NamedTuple):
    """A region of the version that a restart has opened: `count` elements of
    `element_bytes` bytes."""

    name: str
    type: int
    element_bytes: int
    count: int


# The library reads the memory of their regions until they are closed, also of those that the
# program forgets.
_OPEN: "set[Instance]" = set()


def _on_log(_user, severity, message):
    _LOG.log(_SEVERITIES.get(severity, logging.INFO), "%s", message.decode(errors="replace"))


_LOG_FUNCTION = c.LogFunction(_on_log)


def _region(name: str) -> bytes:
    return name_of("region", name)


def _version(number: int) -> int:
    return whole_number("version", number, 0, NEWEST)


def _level(number: int) -> int:
    return whole_number("level", number)


def _numbers(values: Sequence[int]):
    return (c_uint64 * len(values))(*values)


class Instance:
    """One instance: a named set of protected regions and its checkpoints.
    `diapause.open` creates it.

    A method does what the function of this name in diapause.h does, and is collective if that
    function is. Every call lets other threads of Python run; two threads that call one instance
    wait for each other. A call that fails raises a DiapauseError. Sizes are in bytes or elements,
    and times in seconds."""

    def __init__(self, name: str, comm: Optional[Any] = None,
                 config: "str | os.PathLike | None" = None):
        self._name = name
        name_in_c, path = name_of("name", name), path_of("config", config)
        self._lock = threading.RLock()
        self._regions: Dict[str, Any] = {}  # objects that keep the memory of a region where it is
        self._attributes: Dict[str, Attribute] = {}
        self._states: Dict[str, State] = {}
        self._ranks, self._has_comm = 1, comm is not None
        self._handle = None
        if comm is None:
            self._library, status, handle = c.open_serial(name_in_c, path, _LOG_FUNCTION)
        else:
            self._library, status, handle = c.open_mpi(communicator(comm), name_in_c, path,
                                                       _LOG_FUNCTION)
        if status != OK:
            raise self._failure(status)
        self._ranks = 1 if comm is None else comm.Get_size()
        self._handle = handle
        _OPEN.add(self)

    def __repr__(self) -> str:
        return f"<diapause.Instance {self._name!r}, {'closed' if self._handle is None else 'open'}>"

    # ---- opening and closing --------------------------------------------------------------------

    def __enter__(self) -> "Instance":
        return self

    def __exit__(self, kind, _value, _trace) -> None:
        """Closes the instance, unless one of several ranks leaves the block by an exception:
        closing is collective, and this rank would wait for others that do not close. Start such
        programs with `python -m mpi4py`, which ends the other ranks."""
        if kind is None or self._ranks == 1:
            self.close()

    def close(self, within_s: Optional[float] = None) -> None:
        """Waits for all versions in flight, or for about `within_s` seconds, and releases the
        instance. Its checkpoints stay. Collective."""
        limit_s = None if within_s is None else real_number("within_s", within_s)
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            if limit_s is None:
                status = self._library.diapause_close(handle)
            else:
                status = self._library.diapause_close_within(handle, limit_s)
            self._let_go()
            self._check(status)

    def finish(self) -> None:
        """Ends the job and closes the instance: its versions are removed, and the next
        start begins anew. Call it when the results are safe. The end of the `with` block
        then does nothing. Collective."""
        with self._lock:
            handle, self._handle = self._open(), None
            status = self._library.diapause_finish(handle)
            self._let_go()
            self._check(status)

    @property
    def comm(self) -> Any:
        """The mpi4py communicator that the program computes on. It is MPI.COMM_NULL on a dedicated
        rank, which closes the instance next. The instance owns it."""
        with self._lock:
            if not self._has_comm:
                raise failure(
                    ARGUMENT,
                    f"instance '{self._name}' has no communicator: give one to diapause.open")
            status, comm = c.program_comm(self._library, self._open())
            self._check(status)
            return comm

    # ---- what is protected ----------------------------------------------------------------------

    def protect(self, region: str, data: Any) -> None:
        """Protects the memory of `data`: an object with a buffer that is writable and contiguous,
        such as a NumPy array, an array.array or a memoryview, or a tensor of PyTorch on the host.
        Its memory must stay where it is until the region is protected anew or unprotected. Use
        `protect_attribute` for an array that the program replaces."""
        with self._lock:
            self._protect(region, data)
            self._forget_replaced(region)

    def protect_block(self, region: str, data: Any, global_shape: Sequence[int],
                      start: Sequence[int]) -> None:
        """Protects `data` as `protect` does, and records that it is the block that begins at
        `start` in a global array of `global_shape`. The data must be numbers in C order."""
        name = _region(region)
        memory = memory_of(region, data)
        whole = whole_numbers(f"region '{region}': global_shape", global_shape)
        first = whole_numbers(f"region '{region}': start", start)
        if not len(memory.shape) == len(whole) == len(first):
            raise failure(
                ARGUMENT,
                f"region '{region}': the data, global_shape and start have not the same dimensions")
        if memory.type == BYTES:
            raise failure(ARGUMENT, f"region '{region}': a block has numbers as elements")
        if not memory.is_in_c_order:
            raise failure(ARGUMENT, f"region '{region}': a block is in C order")
        with self._lock:
            self._check(self._library.diapause_protect_block(
                self._open(), name, memory.address, memory.type, len(first), _numbers(memory.shape),
                _numbers(whole), _numbers(first)))
            self._regions[region] = memory.owner
            self._forget_replaced(region)

    def protect_attribute(self, owner: Any, name: str, region: Optional[str] = None) -> None:
        """Protects the NumPy array `owner.name`, or `owner[name]` of a dictionary. The program may
        replace it by an array of another length: a checkpoint holds the current one. A restart puts
        a new array of the stored length there. Its type, all dimensions except the first, and its
        order in memory must stay the same."""
        region = name if region is None else region
        with self._lock:
            attribute = Attribute(region, owner, name)
            self._protect(region, attribute.get())
            self._forget_replaced(region)
            self._attributes[region] = attribute

    def protect_state(self, values: Dict[str, Any], region: str = "python.state",
                      most_bytes: int = 1 << 20) -> None:
        """Protects a dictionary of small values: it is pickled into every version, at most
        `most_bytes` bytes long, and a restart restores its contents. Only data that the library has
        verified is unpickled: data with a wrong checksum, or in files of another user, is refused
        before. Do not let others write to the directories."""
        with self._lock:
            state = State(region, values, most_bytes)
            self._protect_bytes(region, state.pickled())
            self._forget_replaced(region)
            self._states[region] = state

    def unprotect(self, region: str) -> None:
        """Forgets a region; later checkpoints do not hold it."""
        with self._lock:
            self._check(self._library.diapause_unprotect(self._open(), _region(region)))
            self._regions.pop(region, None)
            self._forget_replaced(region)

    def declare(self, region: str, declaration: int) -> None:
        """Declares how the program will write to a region: CHANGING, STABLE or CONSTANT. The
        declaration holds until the region is protected anew."""
        self._call("diapause_declare", _region(region), whole_number("declaration", declaration))

    def allow_loss(self, region: str, bound: float, codec: int = LATTICE) -> None:
        """Allows values in the global tier to be off by at most `bound`. docs/compression.md
        says when that is safe."""
        self._call("diapause_allow_loss", _region(region), whole_number("codec", codec),
                   real_number("bound", bound))

    # ---- checkpoints ----------------------------------------------------------------------------

    def checkpoint(self, version: int, level: int = 1) -> CheckpointInfo:
        """Takes a checkpoint now. Collective."""
        info = CheckpointInfo()
        version, level = _version(version), _level(level)
        with self._lock:
            self._follow()
            self._check(
                self._library.diapause_checkpoint(self._open(), version, level, byref(info)), info)
        return info

    @contextlib.contextmanager
    def files(self, version: int, level: int = 1) -> Iterator[pathlib.Path]:
        """Gives an empty directory of this rank, into which the body writes files with any library.
        At the end of the body a checkpoint is taken of these files and of all protected regions. If
        the body of one rank raises an exception, there is no version, and the other ranks get an
        ArgumentError. Collective."""
        version, level = _version(version), _level(level)
        directory = self._directory("diapause_files")
        try:
            yield directory
        except BaseException:
            self._checkpoint_files(version, level, False)
            raise
        self._check(self._checkpoint_files(version, level, True))

    def restore_files(self) -> pathlib.Path:
        """Returns the directory with this rank's files of the version that restart_begin has
        opened. They are there until restart_end. Collective."""
        return self._directory("diapause_restore_files")

    def snapshot(self, version: int) -> CheckpointInfo:
        """Takes a checkpoint if one is due, or the last one if the program
        has to stop. Collective."""
        version = _version(version)
        with self._lock:
            self._follow()
            return self._snapshot(version)

    def should_stop(self) -> Optional[StopInfo]:
        """Returns why the program has to stop, as the last snapshot has found out, or None if it
        need not. The answer is the same on all ranks."""
        info = StopInfo()
        with self._lock:
            return info if self._library.diapause_should_stop(self._handle, byref(info)) else None

    def wait(self, version: int, level: int = 1, seconds: float = FOREVER_S) -> bool:
        """Waits until the version holds at `level` or deeper, or is CAPTURED. Returns False if
        `seconds` were over first."""
        with self._lock:
            status = self._library.diapause_wait(self._open(), _version(version), _level(level),
                                                 min(real_number("seconds", seconds), FOREVER_S))
            if status != TIMEOUT:
                self._check(status)
            return status == OK

    def poll(self, version: int) -> Progress:
        """Returns which levels a version has reached."""
        progress = Progress()
        self._call("diapause_poll", _version(version), byref(progress))
        return progress

    @property
    def background_reason(self) -> str:
        """The text of the failure that `background` of a CheckpointInfo has reported."""
        with self._lock:
            return self._library.diapause_background_reason(self._open()).decode(errors="replace")

    def steps(self, count: int, first: int = 0) -> Iterator[int]:
        """Restarts, and gives the numbers of `range(first, count)` that are left. After each step
        it takes a checkpoint if one is due; the version is the number of steps done. If a
        checkpoint fails, the log says so. The loop ends early if the program has to stop. Protect
        everything before, and use it on all ranks."""
        count, first = (whole_number("count", count, 0, NEWEST),
                        whole_number("first", first, 0, NEWEST))
        found = self.restart()
        step = found.version if found is not None else first
        while step < count:
            yield step
            step += 1
            with self._lock:
                self._follow()  # a failure here is one of this rank alone, and ends it
                try:
                    self._snapshot(step)
                except DiapauseError as error:
                    # The error is the same on all ranks. What was computed is worth more than a
                    # checkpoint.
                    _LOG.error("going on without a checkpoint of step %d: %s", step, error)
            if self.should_stop() is not None:
                return

    # ---- restart --------------------------------------------------------------------------------

    def restart(self, version: int = NEWEST) -> Optional[RestartInfo]:
        """Restores all protected regions from the newest version that all ranks can have, or from
        the one of this number. Returns None if there is no version yet, which is a fresh start.
        Arrays of `protect_attribute` are replaced by new ones of the stored length. Collective."""
        with self._lock:
            if not self._attributes and not self._states:
                # diapause_restart reads everything once, straight to its place.
                return self._begun("diapause_restart", version)
            info = self._begun("diapause_restart_begin", version)
            if info is None:
                return None
            self._make_room()
            try:
                self._check(self._library.diapause_restore(self._open(), None, 0))
            except DiapauseError:  # the same on all ranks
                self._library.diapause_restart_end(self._open())
                raise
            self._check(self._library.diapause_restart_end(self._open()))
            for region, state in self._states.items():
                state.restore(bytes(self._regions[region]))
        return info

    def restart_begin(self, version: int = NEWEST) -> Optional[RestartInfo]:
        """Begins a restart in steps: ask for stored sizes, make room, protect, restore,
        restart_end. Returns None if there is no version yet. Collective."""
        with self._lock:
            return self._begun("diapause_restart_begin", version)

    def stored(self) -> List[StoredRegion]:
        """Returns the regions of this rank in the version that a restart has opened."""
        with self._lock:
            count = self._library.diapause_stored_count(self._open())
            if count < 0:
                raise self._failure(count)
            regions, info = [], c.RegionInfo()
            for index in range(count):
                self._check(self._library.diapause_stored_at(self._open(), index, byref(info)))
                name = info.name.decode(errors="surrogateescape")
                regions.append(StoredRegion(name, info.type, info.element_bytes, info.count))
            return regions

    def restore(self, regions: Optional[Sequence[str]] = None) -> None:
        """Restores all protected regions, or the named ones. Collective."""
        names = [] if regions is None else names_of("regions", regions)
        if regions is not None and not names:
            raise failure(ARGUMENT, "restore: name at least one region")
        with self._lock:
            self._check(self._library.diapause_restore(
                self._open(), (c_char_p * len(names))(*names) if names else None, len(names)))
            for region in self._states:
                if regions is None or _region(region) in names:
                    self._states[region].restore(bytes(self._regions[region]))

    def restart_end(self) -> None:
        """Ends a restart. Collective."""
        self._call("diapause_restart_end")

    @property
    def restart_reason(self) -> str:
        """Returns why the last restart stepped back or failed, or "" if it did neither."""
        with self._lock:
            return self._library.diapause_restart_reason(self._open()).decode(errors="replace")

    def inject_bit_flip(self, region: str, element: int, bit: int) -> None:
        """Flips one bit of protected memory on purpose."""
        self._call("diapause_inject_bit_flip", _region(region),
                   whole_number("element", element, 0, NEWEST), whole_number("bit", bit, 0))

    # ---- inside ---------------------------------------------------------------------------------

    def _open(self):
        if self._handle is None:
            raise failure(ARGUMENT, "the instance is closed")
        return self._handle

    def _let_go(self) -> None:
        """Holds nothing of the program's any more: the library has closed the instance."""
        for held in (self._regions, self._attributes, self._states):
            held.clear()
        _OPEN.discard(self)

    def _call(self, function: str, *arguments: Any) -> None:
        with self._lock:
            self._check(getattr(self._library, function)(self._open(), *arguments))

    def _directory(self, function: str) -> pathlib.Path:
        path = c_char_p()
        self._call(function, byref(path))
        return pathlib.Path(os.fsdecode(path.value))

    def _checkpoint_files(self, version: int, level: int, valid: bool) -> int:
        info = CheckpointInfo()
        with self._lock:
            self._follow()
            return self._library.diapause_checkpoint_files(self._open(), version, level, int(valid),
                                                           byref(info))

    def _snapshot(self, version: int) -> CheckpointInfo:
        info = CheckpointInfo()
        self._check(self._library.diapause_snapshot(self._open(), version, byref(info)), info)
        return info

    def _begun(self, function: str, version: int) -> Optional[RestartInfo]:
        """Returns None if there is nothing to restart from."""
        info = RestartInfo()
        status = getattr(self._library, function)(self._open(), _version(version), byref(info))
        if status == NOT_FOUND and version == NEWEST:
            return None
        self._check(status)
        return info

    def _failure(self, status: int, info: Optional[CheckpointInfo] = None):
        return failure(status, self._library.diapause_last_error().decode(errors="replace"), info)

    def _check(self, status: int, info: Optional[CheckpointInfo] = None) -> None:
        if status != OK:
            raise self._failure(status, info)

    def _protect(self, region: str, data: Any) -> None:
        name = _region(region)
        memory = memory_of(region, data)
        if memory.type == BYTES:
            status = self._library.diapause_protect_bytes(
                self._open(), name, memory.address, memory.count, max(memory.element_bytes, 1))
        else:
            status = self._library.diapause_protect(self._open(), name, memory.address,
                                                    memory.count, memory.type)
        self._check(status)
        self._regions[region] = memory.owner

    def _protect_bytes(self, region: str, data: bytearray) -> None:
        held = (ctypes.c_char * len(data)).from_buffer(data)
        self._check(self._library.diapause_protect_bytes(self._open(), _region(region),
                                                         ctypes.addressof(held), len(data), 1))
        self._regions[region] = held

    def _forget_replaced(self, region: str) -> None:
        """Follows no attribute and no state any more that went by this name."""
        self._attributes.pop(region, None)
        self._states.pop(region, None)

    def _follow(self) -> None:
        """Protects again all arrays and states that the program has replaced or
        changed since the last time."""
        for region, attribute in self._attributes.items():
            data = attribute.get_like_the_first()
            if getattr(self._regions[region], "obj", None) is not data:
                self._protect(region, data)
        for region, state in self._states.items():
            self._protect_bytes(region, state.pickled())

    def _make_room(self) -> None:
        """Makes memory of the stored length for all regions that may change their length. A region
        that does not fit stays as it is; the restore then fails on all ranks."""
        stored = {region.name: region for region in self.stored()}
        for region, attribute in self._attributes.items():
            found = stored.get(region)
            if (found and attribute.has_kind()
                and attribute.kind.fits(found.element_bytes, found.count)):
                attribute.set(attribute.kind.empty(found.count))
                self._protect(region, attribute.get())
        for region, state in self._states.items():
            bytes_ = stored[region].count * stored[region].element_bytes if region in stored else 0
            if state.room_for(bytes_):
                self._protect_bytes(region, bytearray(bytes_))
