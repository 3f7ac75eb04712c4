"""The sums that tables and pictures show."""

import pathlib
import tempfile
import unittest

import samples
from diapause import records
from diapause.account import Account


class AccountTest(unittest.TestCase):
    def account(self, lines):
        with tempfile.TemporaryDirectory() as scratch:
            return Account(
                records.read_ledger(samples.write(pathlib.Path(scratch) / "ledger.jsonl", lines)))

    def test_program_and_phases_add_up_to_the_whole(self):
        account = self.account(samples.RUN)
        self.assertEqual((account.runtime_s, account.whole.complete, account.watts),
                         (100.0, 11000.0, 110.0))
        self.assertEqual(account.program.joules + account.all_phases.joules, 11000.0)
        self.assertEqual((account.total, account.kind, account.incarnations),
                         ("node", "measured", [1, 2]))

    def test_the_rest_of_a_node_is_in_its_total_and_in_no_other(self):
        for total, is_covered in (("node", True), ("node+gpu", True), ("psys", True),
                                  ("package+dram", False), ("", False), ("mixed", False)):
            account = self.account([samples.energy(9.0, 9.0, 1.0, [], total=total)])
            self.assertEqual(account.is_covered("other"), is_covered, total)

    def test_groups_tell_phases_levels_and_versions_apart(self):
        account = self.account(samples.RUN)
        self.assertEqual(list(account.by_phase()), ["capture", "global", "restore"])
        self.assertEqual({level: sum_.joules for level, sum_ in account.by_level().items()},
                         {0: 500.0, 4: 1000.0, "restart": 500.0})
        self.assertEqual({key: sum_.joules for key, sum_ in account.by_version().items()},
                         {(10, False): 1500.0, (10, True): 500.0})

    def test_bytes_of_a_version_count_once(self):
        self.assertEqual(self.account(samples.RUN).by_version()[(10, False)].bytes, 1024)

    def test_bounds_of_phases_add_up(self):
        phases = [samples.phase("keep", 1, 1, 5.0, uncertainty=samples.off(3.0, 10.0)),
                  samples.phase("keep", 2, 1, 5.0, uncertainty=samples.off(4.0, 10.0, 2.0))]
        sum_ = self.account([samples.energy(9.0, 9.0, 1.0, phases)]).all_phases
        self.assertEqual((sum_.parts_j, sum_.uncertainty_j), ((7.0, 20.0, 2.0), 29.0))

    def test_of_a_sum_with_an_estimate_there_is_no_bound(self):
        phases = [samples.phase("keep", 1, 1, 5.0),
                  samples.phase("keep", 2, 1, 5.0, uncertainty=samples.off(4.0, None))]
        sum_ = self.account([samples.energy(9.0, 9.0, 1.0, phases)]).all_phases
        self.assertEqual((sum_.is_estimate, sum_.uncertainty_j, sum_.bound), (True, None, None))

    def test_of_the_whole_job_only_its_ends_are_uncertain(self):
        lines = [samples.energy(end, 10.0, 1000.0, []) for end in (10.0, 20.0, 30.0)]
        for line, ends in zip(lines, ([1.0, 8.0], [8.0, 7.0], [7.0, 2.0])):
            line["whole"] |= {"uncertainty": samples.off(9.0, 5.0), "ends_j": ends}
        self.assertEqual(self.account(lines).whole.uncertainty_j, 3.0 + 15.0)

    def numbered(self, number, end):
        line = samples.energy(end, 10.0, 1000.0, [], **({"number": number} if number else {}))
        line["whole"] |= {"uncertainty": samples.off(8.0, 5.0), "ends_j": [4.0, 4.0]}
        return line

    def test_lines_that_are_missing_are_a_gap_and_their_energy_is_too(self):
        account = self.account([self.numbered(1, 100.0), self.numbered(2, 110.0),
                                self.numbered(5, 140.0)])
        self.assertEqual((account.missing_lines, account.runtime_s, account.gap_s, account.watts),
                         (2, 50.0, 20.0, 100.0))
        self.assertEqual((account.whole.complete, account.whole.of_known), (None, 3000.0))
        self.assertEqual(account.whole.sampling_j, 4 * 4.0)  # no error cancels across the hole

    def test_lines_without_numbers_miss_others_where_their_times_do_not_adjoin(self):
        account = self.account([self.numbered(0, end) for end in (100.0, 110.0, 140.0)])
        self.assertEqual((account.missing_lines, account.missing_s), (1, 20.0))
        adjoining = self.account([self.numbered(0, end) for end in (100.0, 111.0)])
        self.assertEqual(adjoining.missing_lines, 0)

    def test_lines_that_are_missing_before_the_first_are_a_gap_since_the_start(self):
        account = self.account([samples.event("open", 70.0), self.numbered(3, 100.0)])
        self.assertEqual((account.missing_lines, account.missing_s), (2, 20.0))

    def test_no_error_cancels_across_a_line_without_a_total(self):
        lines = [self.numbered(1, 100.0), self.numbered(2, 110.0), self.numbered(3, 120.0)]
        lines[1]["whole"]["joules"]["total"] = None
        self.assertEqual(self.account(lines).whole.sampling_j, 4 * 4.0)

    def test_errors_of_a_domain_do_not_cancel_across_a_line_that_lacks_it(self):
        lines = [self.numbered(number, 90.0 + 10.0 * number) for number in (1, 2, 3)]
        for line in lines:
            line["whole"] |= {"uncertainty_of": {"package": [9.0, 5.0, 0.0]},
                              "ends_of": {"package": [4.0, 4.0]},
                              "joules": {"package": 900.0, "total": 1000.0}}
        self.assertEqual(self.account(lines).by_domain["package"][0].sampling_j, 2 * 4.0)
        del lines[1]["whole"]["joules"]["package"]
        self.assertEqual(self.account(lines).by_domain["package"][0].sampling_j, 4 * 4.0)

    def test_lines_that_are_there_twice_count_once(self):
        account = self.account(samples.RUN + samples.RUN)
        self.assertEqual((account.whole.complete, account.ledger.repeated_lines), (11000.0, 5))
        self.assertEqual(len(account.lost), 1)

    def test_lines_of_schema_1_have_the_uncertainty_of_their_samples(self):
        old = samples.phase("keep", 1, 1, 5.0) | {"uncertainty_j": 4.0}
        del old["uncertainty"]
        self.assertEqual(self.account(
            [samples.energy(9.0, 9.0, 1.0, [old], schema=1)]).all_phases.parts_j, (4.0, None, 0.0))

    def test_an_uncertainty_that_is_missing_is_not_taken_for_none(self):
        phases = [samples.phase("keep", 1, 1, 5.0),
                  samples.phase("keep", 2, 1, 5.0, uncertainty=None)]
        self.assertIsNone(
            self.account([samples.energy(9.0, 9.0, 1.0, phases)]).all_phases.uncertainty_j)

    def test_a_start_without_a_line_that_ends_it_is_told(self):
        opened = samples.event("open", 1000.0)
        line = samples.energy(1060.0, 60.0, 6000.0, [], number=1)
        for lines, open_ends, missing in (
                ([opened, line], [(1, None, False)], 0),
                ([opened], [(1, None, False)], 0),
                ([opened, line, samples.event("open", 1065.0, 2)],
                 [(1, 5.0, False), (2, None, False)], 0),
                ([opened, line, samples.event("close", 1070.0)], [(1, 10.0, True)], 1),
                ([opened, line | {"last": True}, samples.event("close", 1070.0)], [], 0),
                ([opened, line, {"event": "close", "time_unix_s": 1070.0}], [], 0)):
            with self.subTest(lines):
                account = self.account(lines)
                self.assertEqual([(end.incarnation, end.seconds, end.was_closed)
                                  for end in account.open_ends], open_ends)
                self.assertEqual((account.missing_lines, account.gap_s),
                                 (missing, 10.0 * missing))
                self.assertEqual(account.whole.is_partial, bool(missing))

    def test_the_restart_says_when_its_version_was_captured_if_no_other_line_does(self):
        restart = samples.event("restart", 1110.0, 3, version=7, captured_unix_s=1096.0)
        (lost,) = self.account([samples.RUN[-1], restart]).lost
        self.assertEqual((lost.seconds, lost.joules.complete), (10.0, 750.0))

    def test_a_clock_that_is_emulated_is_known(self):
        slowed = samples.phase("keep", 1, 1, 5.0,
                               slowed={"actuator": "emulated", "asked": 0.85, "obtained": 0.85})
        self.assertTrue(self.account([samples.energy(9.0, 9.0, 1.0, [slowed])]).is_emulated)
        self.assertFalse(self.account(samples.RUN).is_emulated)

    def test_unknown_and_absent_energy_is_no_zero(self):
        phases = [samples.phase("keep", 1, 1, None), samples.phase("drain", 1, 0, ...)]
        account = self.account([samples.energy(9.0, 9.0, 1.0, phases)])
        sums = account.by_phase()
        self.assertEqual((sums["keep"].complete, sums["keep"].unknown), (None, 1))
        self.assertEqual((sums["drain"].complete, sums["drain"].absent), (None, 1))

    def test_a_phase_of_which_only_a_domain_is_known_has_no_total(self):
        phases = [samples.phase("keep", 1, 1, None) | {"joules": {"dram": 2.0, "total": None}}]
        account = self.account([samples.energy(9.0, 9.0, 1.0, phases)])
        self.assertEqual((account.all_phases.complete, account.all_phases.unknown), (None, 1))

    def test_of_a_whole_of_which_a_part_is_missing_there_are_no_shares(self):
        keep = samples.phase("keep", 1, 1, 50.0, uncertainty=None)
        to_disk = samples.phase("global", 1, 4, 900.0, uncertainty=None)
        lines = [samples.energy(10.0, 10.0, 500.0, [keep]),
                 samples.energy(20.0, 10.0, 1.0, [to_disk])]
        lines[1] |= {"whole": {"joules": {"total": None}}}
        account = self.account(lines)
        self.assertEqual((account.whole.complete, account.whole.of_known), (None, 550.0))
        keep, large = account.by_phase()["keep"], account.by_phase()["global"]
        self.assertEqual([account.percent(keep), account.percent(large)], [None, None])
        self.assertEqual([account.share_text(keep), account.share_text(large)], ["≤ 9.1 %", "-"])

    def test_a_part_of_which_something_is_missing_has_at_least_its_share(self):
        phases = [samples.phase("keep", 1, 1, 50.0), samples.phase("keep", 2, 1, None)]
        account = self.account([samples.energy(10.0, 10.0, 950.0, phases)])
        self.assertEqual(account.share_text(account.by_phase()["keep"]), "≥ 5.0 %")

    def test_nobody_shares_a_node_in_no_time(self):
        used = {"job_s": 0.0, "others_s": 0.0, "others_most_s": 0.0}
        account = self.account([samples.energy(9.0, 0.0, 0.0, [], processors=used)])
        self.assertIsNone(account.sharing)

    def test_energy_without_that_of_a_machine_is_partial(self):
        account = self.account([samples.energy(9.0, 9.0, 1.0, [], machines=2, unmetered=1)])
        self.assertIsNone(account.whole.complete)

    def test_machines_without_meters_are_counted(self):
        lines = [samples.energy(9.0, 9.0, 1.0, []),
                 samples.energy(19.0, 9.0, 1.0, [], machines=4, unmetered=3)]
        self.assertEqual((self.account(lines).machines, self.account(lines).unmetered), (4, 3))

    def test_when_in_the_time_of_a_line_its_energy_was_used_is_unknown(self):
        lines = [line | {"program": {**line["program"], "uncertainty": samples.off(1.0)}}
                 if "program" in line else line
                 for line in samples.RUN]
        (lost,) = self.account(lines).lost
        self.assertEqual((lost.joules.complete, lost.joules.uncertainty_j), (2000.0, None))

    def test_a_third_of_the_work_was_lost(self):
        (lost,) = self.account(samples.RUN).lost  # 20 s of 60
        self.assertEqual((lost.incarnation, lost.version, lost.seconds, lost.joules.complete),
                         (2, 10, 20.0, 2000.0))

    def test_work_is_lost_once(self):
        again = [samples.event("restart", 1110.0, 3, version=10)]
        self.assertEqual([lost.seconds for lost in self.account(samples.RUN + again).lost],
                         [20.0, 40.0])

    def test_work_lost_since_a_capture_of_which_no_line_tells_is_unknown(self):
        (lost,) = self.account([samples.RUN[-1],
                                samples.event("restart", 1110.0, 3, version=7)]).lost
        self.assertIsNone(lost.seconds)
