"""What the page of a job says, without a browser."""

import pathlib
import tempfile
import unittest

import samples
from diapause import records, report
from diapause.account import Account


class ReportTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "ledger.jsonl"

    def account(self, lines, cut=b""):
        samples.write(self.path, lines)
        self.path.write_bytes(self.path.read_bytes() + cut)
        return Account(records.read_ledger(self.path))

    def page(self, account, compared=()):
        return report.page_of("heat", account, compared, [])[0].decode()

    def test_a_damaged_ledger_gives_a_page_that_says_so(self):
        page = self.page(self.account([*samples.RUN, "{"], cut=b"\xff\xfe"))
        self.assertIn("2 lines of the ledger are damaged", page)

    def test_jobs_are_compared_with_the_first_one_named(self):
        plain = self.account([samples.energy(1080.0, 80.0, 8000.0, [])])
        page = self.page(self.account(samples.RUN), [("plain", plain)])
        for change in ("+25.0 %", "+10.0 %", "+37.5 %"):
            self.assertIn(change, page)

    def metered(self, joules, sampling_j, **more):
        line = samples.energy(1010.0, 10.0, joules, [], **({"hosts": "a1"} | more))
        line["whole"] |= {"uncertainty": samples.off(sampling_j, 0.05 * joules),
                          "ends_j": [0.0, sampling_j]}
        return line

    def test_a_change_that_meters_cannot_tell_apart_is_not_told_apart(self):
        plain = self.account([self.metered(1000.0, 10.0)])
        page = self.page(self.account([self.metered(1012.0, 20.0)]), [("plain", plain)])
        self.assertIn("+1.2 % ± 3.0 %: not told apart", page)
        other = [{"domain": "node", "source": "another board", "kind": "measured"}]
        page = self.page(self.account([self.metered(1012.0, 20.0, sources=other)]),
                         [("plain", plain)])
        self.assertIn("+1.2 % ± 13.1 %: not told apart", page)
        page = self.page(self.account([self.metered(1012.0, 20.0, hosts="b2")]), [("plain", plain)])
        self.assertIn("+1.2 % ± 13.1 %: not told apart", page)
        page = self.page(self.account([self.metered(500.0, 5.0)]), [("plain", plain)])
        self.assertIn("-50.0 % ± 1.0 %<", page)

    def test_what_the_ledger_lacks_or_has_twice_is_told(self):
        lines = [self.metered(1000.0, 5.0, number=1),
                 self.metered(1000.0, 5.0, number=9) | {"time_unix_s": 1090.0},
                 samples.event("lost", 1090.0, lines=7)]
        texts = report.notes_of(self.account(lines + lines[:1]))
        self.assertIn("At least 7 lines of the ledger are missing, of 70.000 s: the energy of that "
                      "time is in no number.", texts)
        self.assertIn(
            "7 lines of the ledger could not be written while the job ran, and are lost.", texts)
        self.assertIn("1 lines of the ledger are there twice, and count once.", texts)

    def test_the_domains_of_a_total_are_told_with_their_shares(self):
        keep = samples.phase("keep", 1, 1, 40.0) | {"joules": {"package": 30.0, "total": 40.0},
                                                    "uncertainty_of": {"package": [1, 1, 1]}}
        line = samples.energy(1010.0, 10.0, 260.0, [keep], total="package+dram")
        line["whole"] = {"joules": {"package": 240.0, "dram": 60.0, "gpu": 7.0, "total": 300.0},
                         "uncertainty_of": {"package": [1.0, 11.0, 0.0], "dram": [1.0, None, 0.0]}}
        page = self.page(self.account([line]))
        table = page[page.index('id="domains"'):]
        table = table[:table.index("</table>")]
        for text in (">240 J<", ">± 12 J<", ">80 %<", ">30.0 J<", ">≈ 60 J<",
                     ">not in the total<", ">unknown<"):
            self.assertIn(text, table)

    def test_energy_of_which_a_part_is_missing_is_not_compared(self):
        plain = self.account([self.metered(1000.0, 10.0)])
        unknown = {"whole": {"joules": {"total": None}}}
        lines = [self.metered(500.0, 5.0), samples.energy(1020.0, 10.0, 1.0, []) | unknown]
        page = self.page(self.account(lines), [("plain", plain)])
        self.assertIn("+100.0 %", page)  # of the runtime
        self.assertNotIn("-50.0 %", page)
        gap = self.page(self.account([self.metered(500.0, 5.0, gap_s=5.0)]), [("plain", plain)])
        self.assertIn("-50.0 % ± 101.0 %: not told apart", gap)

    def test_what_is_no_more_than_its_uncertainty_is_said_to_be_below_their_sum(self):
        keep = samples.phase("keep", 11, 1, 10.0) | {"uncertainty": samples.off(15.0)}
        self.assertIn("&lt; 25 J",
                      self.page(self.account([samples.energy(1120.0, 10.0, 900.0, [keep])])))

    def test_an_estimate_without_a_bound_is_marked_as_one(self):
        line = samples.energy(1120.0, 10.0, 987.65, [])
        line["sources"][0]["kind"] = "modelled"
        line["program"] |= {"uncertainty": samples.off(5.0, None)}
        line["whole"] |= {"uncertainty": samples.off(5.0, None), "ends_j": [2.0, 3.0]}
        page = self.page(self.account([line]))
        self.assertIn("≈ 990 J", page)
        self.assertNotIn(">987.65", page)
        self.assertIn("≈ 99 W", page)
        self.assertIn("energy of the whole job, modelled", page)

    def test_replayed_energy_is_marked_as_such(self):
        trace = [{"domain": "node", "source": "replay of a board", "kind": "replayed"}]
        page = self.page(self.account([self.metered(1000.0, 10.0, sources=trace)]))
        self.assertIn('<span class="kind replayed">replayed</span>', page)
        self.assertIn("energy of the whole job, replayed", page)
        self.assertIn("comes from a recorded trace", page)

    def test_the_headline_and_every_sum_say_how_far_they_may_be_off(self):
        line = samples.energy(1120.0, 10.0, 987.65, [])
        line["whole"] |= {"uncertainty": samples.off(5.0, 49.0), "ends_j": [2.0, 3.0]}
        page = self.page(self.account([line]))
        self.assertIn("990 ± 50 J", page)
        self.assertIn("energy of the whole job, measured", page)

    def test_boards_without_a_meter_and_what_tells_a_slow_total_apart_are_named(self):
        line = samples.energy(1060.0, 60.0, 6000.0, [], told_apart_by="package+dram",
                              left_out=["gpu boards of AMD: 2 seen", 7])
        texts = report.notes_of(self.account([line]))
        self.assertIn("Phases are told apart by package+dram, calibrated against the slower meter "
                      "of the total.", texts)
        self.assertIn("gpu boards of AMD: 2 seen.", texts)

    def test_a_shared_node_is_said_to_be_one_with_the_part_of_the_job(self):
        used = {"job_s": 30.0, "others_s": 10.0, "others_most_s": 10.0}
        line = samples.energy(1120.0, 10.0, 1000.0, [],
                              processors=used | {"job_j": 750.0, "job_attribution_j": 100.0})
        line["whole"] |= {"uncertainty": samples.off(5.0, 40.0), "ends_j": [0.0, 0.0]}
        page = self.page(self.account([line]))
        self.assertIn("Whole nodes, shared with others: 25 % of the processor time", page)
        self.assertIn("the job&#x27;s part is 750 ± 130 J", page)
        line["processors"]["others_most_s"] = 4.0
        self.assertNotIn("shared with others", self.page(self.account([line])))
        line["processors"]["others_s"] = "10"
        self.assertNotIn("shared with others", self.page(self.account([line])))

    def test_lost_work_and_slowed_phases_are_named(self):
        slowed = samples.phase("global", 11, 4, 5.0,
                               slowed={"actuator": "emulated", "asked": 0.85, "obtained": 0.84})
        page = self.page(self.account(
            [*samples.RUN, samples.energy(1120.0, 10.0, 900.0, [slowed], incarnation=2)]))
        self.assertIn(
            "Start 2 went back to version 10: 20.00 s and ≈ 2,000 J (no bound) of the program were "
            "for nothing.", page)
        self.assertIn("clocks emulated", page)
        self.assertIn('data-value="0.84"', page)

    def test_a_job_without_a_source_has_times_and_no_joules(self):
        bare = samples.energy(10.0, 10.0, 0.0, [samples.phase("keep", 1, 1, ...)], total="",
                              sources=[])
        bare |= {"program": {}, "whole": {}}
        page = self.page(self.account([bare]))
        self.assertIn("no source of energy", page)
        self.assertNotIn("0.00 J", page)
