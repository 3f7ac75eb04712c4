"""Ledgers and traces as jobs, crashes and strangers leave them."""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import samples
from diapause import records
from diapause.files import Trouble

HEAD = {"schema": 1, "what": "diapause power trace", "host": "n1", "started_unix_s": 1000.0,
        "period_s": 0.1,
        "domains": [{"domain": "package", "source": "powercap", "kind": "measured"}],
        "total": {"name": "package", "kind": "measured", "domains": [0]}}
ROWS = [{"t": 0.1, "j": [1.0], "c": [0.1]}, {"t": 0.2, "j": [2.0], "c": [0.2]}]


class FileTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "ledger.jsonl"


class LedgerTest(FileTest):
    def read(self, lines):
        return records.read_ledger(samples.write(self.path, lines))

    def assert_left_out(self, *damaged):
        ledger = self.read([*samples.RUN, *damaged])
        self.assertEqual((len(ledger.lines), ledger.damaged_lines),
                         (len(samples.RUN), len(damaged)))

    def test_a_line_that_a_crash_cut_short_is_left_out(self):
        self.read(samples.RUN)
        self.path.write_bytes(self.path.read_bytes()[:-40])
        ledger = records.read_ledger(self.path)
        self.assertEqual((len(ledger.energy), ledger.damaged_lines), (1, 1))

    def test_what_is_no_line_of_a_ledger_is_left_out(self):
        self.assert_left_out("", "[]", "7", "\0", "[" * 100000, '{"event": 7}',
                             '{"event": "energy"}')

    def test_numbers_that_no_machine_has_are_no_numbers(self):
        for text in ("NaN", "Infinity", "-Infinity", "1e400", "1e19", "true", '"1"', "-1", "null",
                     "[]"):
            with self.subTest(text):
                self.assert_left_out(
                    json.dumps(samples.RUN[1]).replace('"seconds": 60.0', f'"seconds": {text}'))

    def test_a_line_without_end_is_passed_over(self):
        self.read(samples.RUN)
        self.path.write_bytes(b'"' + b"x" * 10000 + b'"\n' + self.path.read_bytes())
        with mock.patch.object(records, "LONGEST_LINE", 4096):
            ledger = records.read_ledger(self.path)
        self.assertEqual((len(ledger.energy), ledger.damaged_lines), (2, 1))

    def test_another_schema_is_refused_by_its_number(self):
        with self.assertRaisesRegex(records.RecordError,
                                    r"ledger.jsonl:2: schema 3, and this version reads 1 and 2"):
            self.read([samples.RUN[0], samples.RUN[1] | {"schema": 3}])

    def test_text_has_no_characters_that_steer_a_screen(self):
        sources = [{"domain": "a\u202eb", "source": "\u001b[2J\ud800", "kind": "measured"}]
        (line,) = self.read([samples.energy(1.0, 1.0, 1.0, [], sources=sources)]).energy
        self.assertEqual((line.sources[0].domain, line.sources[0].name),
                         ("a\ufffdb", "\ufffd[2J\ufffd"))

    def test_a_ledger_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(records.RecordError, "ledger.jsonl"):
            records.read_ledger(self.path)


    def test_what_might_never_end_is_refused(self):
        pipe = self.path.parent / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, "/dev/zero"):
            for read in (records.read_ledger, records.read_trace):
                with self.subTest(path, read=read), self.assertRaisesRegex(
                        Trouble, f"^{path} is not a regular file"):
                    read(path)


class TraceTest(FileTest):
    def read(self, lines):
        return records.read_trace(samples.write(self.path, lines))

    def test_rows_are_read_and_the_last_half_one_left_out(self):
        trace = self.read([HEAD, *ROWS, '{"t": 0.3, "j": [3'])
        self.assertEqual((trace.seconds, trace.joules, trace.damaged_lines),
                         ([0.1, 0.2], [[1.0], [2.0]], 1))

    def test_rows_that_go_back_or_have_other_columns_are_left_out(self):
        trace = self.read([HEAD, *ROWS, ROWS[0], {"t": 0.4, "j": [1.0, 2.0], "c": [0.1]}])
        self.assertEqual((len(trace.seconds), trace.damaged_lines), (2, 2))

    def test_another_schema_or_another_file_is_refused(self):
        with self.assertRaisesRegex(records.RecordError, "schema 2"):
            self.read([HEAD | {"schema": 2}])
        with self.assertRaisesRegex(records.RecordError, "is no power trace"):
            self.read(samples.RUN)
        with self.assertRaisesRegex(records.RecordError, "is no power trace"):
            self.read([])
