#!/usr/bin/env python3
"""Tests of what a user of Diapause sees: small programs (programs/), run
and killed in several ways.

behaviour.py --list                 names of all tests, a line each, with their ctest labels
behaviour.py <test> --programs DIR --mpiexec COMMAND --diapause COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import argparse
import inspect
import pathlib
import sys

import broken_tiers
import damage
import field_failures
import modes
import scenarios
from harness import exit_status_of

# Programs that run in the background in every test run; the others do with the long tests.
IN_BACKGROUND_AT_ONCE = ("ring", "uneven", "split")
CAPTURED = (("ring", "copy-on-write"), ("uneven", "copy-on-write"), ("dropped", "incremental"))
WITH_RANKS_SET_ASIDE = ("ring", "uneven")
MANY_KILLS_SEEDS = range(1, 11)  # a thousand kills in all
LONG = ({"knows_the_size_of_a_region_of_more_than_2_gib",
         "keeps_a_program_of_2_times_2_3_gib_alive_that_lost_a_node"}
        | {f"ends_the_same_in_the_background_with_{program.what}"
           for name, program in modes.PROGRAMS.items() if name not in IN_BACKGROUND_AT_ONCE}
        | {f"ends_the_same_beside_dedicated_ranks_with_{modes.PROGRAMS['uneven'].what}"}
        | {f"a_job_killed_a_hundred_times_in_the_background_ends_the_same_{seed}"
           for seed in MANY_KILLS_SEEDS}
        | {f"ends_the_same_captured_in_every_way_with_{program.what}"
           for program in modes.PROGRAMS.values()})
# These ask what Diapause does with files and memory, whatever the MPI: they run with the first one
# only.
PROGRAMS_OF_EVERY_MPI = ("ring", "split", "uneven")
ONCE = ({name for module in (broken_tiers, damage)
         for name, _ in inspect.getmembers(module, inspect.isfunction)}
        | {f"ends_the_same_killed_or_not_with_{program.what}"
           for name, program in modes.PROGRAMS.items() if name not in PROGRAMS_OF_EVERY_MPI}
        | {"a_job_killed_again_and_again_ends_the_same",
           "finds_what_it_stored_whatever_the_order_of_calls",
           "finds_what_it_stored_when_it_was_killed_in_any_call",
           "goes_on_in_mapped_memory",
           "keeps_a_program_alive_that_has_little_memory",
           "keeps_a_program_alive_that_lost_a_node_and_has_little_memory",
           "keeps_a_program_alive_with_room_for_its_versions_and_no_more",
           "takes_every_version_of_a_program_at_60_percent_of_its_limit"})


def needed_parameters(function):
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is parameter.empty]


def all_tests():
    """Test name -> function of a site."""
    tests = {}
    for name, program in modes.PROGRAMS.items():
        test = f"ends_the_same_killed_or_not_with_{program.what}"
        tests[test] = lambda site, name=name: modes.run_all_modes(site, name)
        test = f"ends_the_same_in_the_background_with_{program.what}"
        tests[test] = lambda site, name=name: modes.run_in_background(site, name)
        test = f"ends_the_same_captured_in_every_way_with_{program.what}"
        tests[test] = lambda site, name=name: modes.run_all_captures(site, name)
    tests["a_job_killed_again_and_again_ends_the_same"] = modes.killed_again_and_again
    tests["a_job_killed_with_versions_in_flight_ends_the_same"] = (
        lambda site: modes.killed_again_and_again(site, kills=6, **modes.IN_BACKGROUND,
                                                  capture={"strategy": "copy-on-write"}))
    for seed in MANY_KILLS_SEEDS:
        test = f"a_job_killed_a_hundred_times_in_the_background_ends_the_same_{seed}"
        tests[test] = (lambda site, seed=seed: modes.killed_again_and_again(
            site, kills=100, seed=seed, **modes.IN_BACKGROUND))
    for name, strategy in CAPTURED:
        test = (f"ends_the_same_captured_by_{strategy.replace('-', '_')}"
                f"_with_{modes.PROGRAMS[name].what}")
        tests[test] = (lambda site, name=name,
                       strategy=strategy: modes.run_captured(site, name, strategy))
    tests["ends_the_same_where_threads_may_not_communicate"] = (
        lambda site: modes.run_without_threads_that_communicate(site, "ring"))
    for name in WITH_RANKS_SET_ASIDE:
        test = f"ends_the_same_beside_dedicated_ranks_with_{modes.PROGRAMS[name].what}"
        tests[test] = lambda site, name=name: modes.run_with_dedicated_ranks(site, name)
    for module in (scenarios, broken_tiers, damage):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and needed_parameters(function) == ["site"]:
                tests[name] = function
    tests["names_a_test_for_every_field_failure"] = lambda site: field_failures.check(tests)
    return tests


def main():
    tests = all_tests()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", nargs="?", choices=tests, metavar="test")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--mpiexec")
    parser.add_argument("--diapause", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    site = parser.parse_args()
    if site.list:
        for name in tests:
            print(name, "behaviour",
                  *[label for label, names in (("long", LONG), ("once", ONCE)) if name in names])
        return 0
    return exit_status_of(tests[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
