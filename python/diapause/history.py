"""Sums up what happened to a job: for how long checkpoints blocked it, and how often it failed.

The rules are those of `diapause history`; a test compares the two.
"""

from __future__ import annotations

from diapause import records


class History:
    """The history of one job over all its starts, until the last line of its ledger."""

    def __init__(self, ledger):
        self.starts = self.failures = self.restarts = 0
        self.checkpoints = self.failed = 0
        self.blocked_s = self.runtime_s = 0.0
        self._opened_s = self._ran_before_s = 0.0
        self._has_ended = True
        for line in ledger.lines:
            if isinstance(line, records.Event):
                self._add(line.kind, line)
            if self.starts:
                now_s = line.end_unix_s if isinstance(line, records.Energy) else line.unix_s
                self.runtime_s = max(self.runtime_s, self._ran_before_s + now_s - self._opened_s)

    def _add(self, kind, line):
        if kind == "open":
            self.failures += not self._has_ended
            self.starts += 1
            self._ran_before_s, self._opened_s, self._has_ended = self.runtime_s, line.unix_s, False
        elif kind == "checkpoint":
            self.checkpoints += 1
            self.failed += not records.count(line.fields, "level_reached")
            self.blocked_s += records.duration(line.fields, "blocked_s") or 0.0
        elif kind == "restart":
            self.restarts += 1
        elif kind in ("stop", "close"):
            self._has_ended = True

    @property
    def overhead(self):
        """The share of the time that checkpoints held the program up; None: no time is known."""
        return self.blocked_s / self.runtime_s if self.runtime_s > 0 else None
