"""Exceptions: one class for each status of the library, with the library's text."""

from typing import Any, Dict, Optional, Type


class DiapauseError(RuntimeError):
    """A call that failed. `status` is the number of diapause.h, `info` a CheckpointInfo if a
    checkpoint failed: its `level_reached` says what holds."""

    def __init__(self, text: str, status: int = 0, info: Optional[Any] = None):
        super().__init__(text)
        self.status = status
        self.info = info


class ArgumentError(DiapauseError, ValueError):
    """An argument is out of range, or ranks disagree on it."""


class ConfigError(DiapauseError, ValueError):
    """The configuration has an unknown key, a wrong type or an impossible value."""


class InputOutputError(DiapauseError, OSError):
    """A system call failed."""


class FullError(DiapauseError, OSError):
    """A tier has no room; the last good version is still there."""


class BusyError(DiapauseError):
    """Another running job or instance uses the same checkpoints."""


class CorruptError(DiapauseError):
    """Stored data is damaged, and no intact copy is left."""


class NotFoundError(DiapauseError, LookupError):
    """There is no such version or region."""


class MismatchError(DiapauseError, ValueError):
    """Stored data does not fit: regions, their size or type, the number of ranks."""


class CommError(DiapauseError):
    """Communication between ranks failed."""


class OffError(DiapauseError):
    """The instance turned itself off after an earlier failure."""


class InternalError(DiapauseError):
    """A defect in the library."""


class DeniedError(DiapauseError, PermissionError):
    """A directory or file belongs to somebody else, or others can write to it."""


class NoMemoryError(DiapauseError, MemoryError):
    """Out of memory."""


class WaitTimeoutError(DiapauseError, TimeoutError):
    """The time given was over before it happened; it may still happen."""


class AgainError(DiapauseError):
    """The system is short of something for the moment; nothing was changed: try again."""


OK, ARGUMENT, CORRUPT, NOT_FOUND, MISMATCH, TIMEOUT = 0, -1, -6, -7, -8, -14

OF_STATUS: Dict[int, Type[DiapauseError]] = {
    ARGUMENT: ArgumentError, -2: ConfigError, -3: InputOutputError, -4: FullError, -5: BusyError,
    CORRUPT: CorruptError, NOT_FOUND: NotFoundError, MISMATCH: MismatchError, -9: CommError,
    -10: OffError, -11: InternalError,
    -12: DeniedError, -13: NoMemoryError, TIMEOUT: WaitTimeoutError, -15: AgainError,
}


def failure(status: int, text: str, info: Optional[Any] = None) -> DiapauseError:
    """The exception for a status of the library."""
    return OF_STATUS.get(status, DiapauseError)(text, status, info)
