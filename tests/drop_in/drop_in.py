#!/usr/bin/env python3
"""Programs written for FTI, SCR and VELOC, linked with our libraries instead: killed,
robbed of a node, and compared.

drop_in.py TEST --programs DIR --mpiexec COMMAND --work DIR [--diapause COMMAND]
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

from broken_tiers import launcher_with_small_tmpfs  # noqa: E402
from harness import Place, Skip, exit_status_of, expect, expect_equal, parser_of  # noqa: E402

FOREVER = 1_000_000_000
RANKS = 3
NODES = {"DIAPAUSE_NODE_RANKS_PER_NODE": "1"}  # every rank is a node


def write_keys(path, sections):
    """A file of `key = value`, from {section: {key: value}}; "" is no section."""
    lines = []
    for section, entries in sections.items():
        lines += [f"[{section}]"] if section else []
        lines += [f"{key} = {value}" for key, value in entries.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def veloc_configuration(place, **keys):
    keys = {"scratch": place.local, "persistent": place.global_, "mode": "async"} | keys
    return write_keys(place.path / "veloc.cfg",
                      {"": {key: value for key, value in keys.items() if value is not None}})


def newest_version(place, job):
    return max((event["version"] for event in place.events(job, "checkpoint")), default=0)


def result_of(place, name):
    found = [(place.path / f"{name}.{rank}").read_bytes() for rank in range(RANKS)]
    expect(all(found), f"{name}: a rank has left no result")
    return found


def lose_node(place, node):
    """Everything that lies on a node goes."""
    lost = [path for tier in (place.memory, place.local) for path in tier.glob(f"*-*/{node}")]
    expect(lost, f"nothing lies on {node}")
    for path in lost:
        shutil.rmtree(path)


def lose_all_nodes(place):
    """Loses all nodes; every rank is a node here."""
    for rank in range(place.ranks):
        lose_node(place, f"node{rank}")


def end_the_same(site, prepare, after_kill=lambda place: None, versions=100,
                 steps_after=lambda newest: newest + 417):
    """A program that is to compute for ever is killed, goes on, and ends with the bytes of
    one that was left alone.

    `prepare(place)` gives a function from (name, steps, result) to the words that start it. It is
    killed when the numbers of its versions have grown by more than `versions`, and left alone for
    `steps_after(its newest version)`."""
    with Place(site, ranks=RANKS) as place:
        command = prepare(place)
        environment = NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        for _ in range(2):
            before = newest_version(place, "killed")
            run = place.start(*command("killed", FOREVER, "never"), environment=environment)
            run.wait_for(lambda: newest_version(place, "killed") > before + versions,
                         "versions of a running job")
            run.kill("killed", rank=RANKS - 1)
            run.be_killed()
            after_kill(place)
        steps = steps_after(newest_version(place, "killed"))
        place.run(*command("killed", steps, "killed"), environment=environment, messages=MPI_NOTICE)
        place.run(*command("alone", steps, "alone"), environment=environment, messages=MPI_NOTICE)
        restarts = [event["version"] for event in place.events("killed", "restart")]
        expect(len(restarts) == 2 and min(restarts) > versions // 2, f"restarted from {restarts}")
        expect(result_of(place, "killed") == result_of(place, "alone"),
               "the killed job ended with another result")


def a_veloc_program_that_is_killed_ends_the_same(site):
    def prepare(place):
        configuration = veloc_configuration(place, scratch_versions=2, max_versions=2)
        return lambda name, steps, result: ("veloc_solver", configuration, name, steps, result)
    end_the_same(site, prepare)


def a_veloc_program_that_loses_a_node_ends_the_same(site):
    def prepare(place):
        configuration = veloc_configuration(place, scratch_versions=2, max_versions=2,
                                            ec_interval=0, persistent_interval=FOREVER)
        return lambda name, steps, result: ("veloc_solver", configuration, name, steps, result)
    end_the_same(site, prepare, lambda place: lose_node(place, "node1"))


def velocs_functions_do_what_programs_lean_on(site):
    with Place(site, ranks=0) as place:
        configuration = veloc_configuration(place)
        environment = {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        place.run("veloc_functions", configuration, environment=environment, messages=("^veloc: ",))


def habits_of_veloc_programs_do_no_harm(site):
    with Place(site, ranks=RANKS) as place:
        configuration = veloc_configuration(place, scratch_versions=5, max_versions=5)
        told = configuration.read_text().replace("mode = async", "  Mode=async  ; as ever")
        configuration.write_text(told.replace(f"= {place.local}", f'\t=\t"{place.local}"\r'))
        environment = {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        # Launchers do not agree on whether a job ends well whose ranks call exit().
        place.start("veloc_habits", configuration, "begin", environment=environment).wait()
        expect("not so" not in place.runs[-1].stderr.read_text(), place.runs[-1].stderr.read_text())
        place.run("veloc_habits", configuration, "continue", environment=environment,
                  messages=(*MPI_NOTICE, "^veloc: ", "level 1 is taken instead"))


def what_velocs_serializers_write_comes_back(site):
    with Place(site, ranks=0) as place:
        configuration = veloc_configuration(place, mode="sync", persistent_interval=-1)
        environment = {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        place.run("veloc_serializers", configuration, environment=environment,
                  messages=("^veloc: rank 0 cannot restart from the data of rank 3",
                            "level 1 is taken instead"))


def what_archives_of_cereal_and_boost_write_comes_back(site):
    if not (site.programs / "veloc_archives").exists():
        raise Skip("there is no cereal, or no Boost.Serialization")
    with Place(site, ranks=0) as place:
        configuration = veloc_configuration(place, scratch_versions=0)
        place.run("veloc_archives", configuration, place.path / "cached",
                  environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)},
                  messages=("^veloc: ", "level 1 is taken instead"))


def a_veloc_program_that_writes_its_own_files_is_killed_and_ends_the_same(site):
    def prepare(place):
        configuration = veloc_configuration(place, scratch_versions=2, max_versions=2,
                                            ec_interval=-1)
        return lambda name, steps, result: ("veloc_files", configuration, name, steps, result)
    end_the_same(site, prepare, lambda place: lose_node(place, "node1"))


def a_checkpoint_of_veloc_outlives_a_node_when_its_call_has_returned(site):
    """The program's MPI lets no thread communicate, and the program makes no further call."""
    for program in ("veloc_solver", "veloc_files"):
        with Place(site, ranks=RANKS) as place:
            configuration = veloc_configuration(place, ec_interval=0, persistent_interval=-1)
            environment = NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
            run = place.start(program, configuration, "held", 20, "held", "hold",
                              environment=environment)
            run.wait_for(lambda: all((place.path / f"held.{rank}").exists()
                                     for rank in range(RANKS)),
                         "a checkpoint")
            run.kill("held", rank=0)
            run.be_killed()
            lose_node(place, "node1")
            place.run(program, configuration, "held", 20, "again", environment=environment,
                      messages=MPI_NOTICE)
            restarts = [event["version"] for event in place.events("held", "restart")]
            expect_equal(restarts, [20], f"versions that {program} has restarted from")
            expect_equal(result_of(place, "again"), result_of(place, "held"), program)


def scr_configuration(place, **keys):
    """Versions lie where SCR has its own files, below the prefix directory."""
    place.global_ = place.path / ".scr"
    keys = {"SCR_PREFIX": place.path, "SCR_CACHE_BASE": place.local, "SCR_CACHE_BYPASS": 0} | keys
    return write_keys(place.path / "scr.conf",
                      {"": {key: value for key, value in keys.items() if value is not None}})


def a_program_of_scr_that_loses_a_node_ends_the_same(site):
    def prepare(place):
        configuration = scr_configuration(place, SCR_COPY_TYPE="XOR", SCR_CACHE_SIZE=3, SCR_FLUSH=0,
                                          SCR_CHECKPOINT_INTERVAL=20)
        return lambda name, steps, result: ("scr_solver", configuration, name, steps, result)
    end_the_same(site, prepare, lambda place: lose_node(place, "node1"), versions=8,
                 steps_after=lambda newest: 20 * newest + 37)


def a_program_of_scr_that_loses_all_nodes_ends_the_same(site):
    """By default SCR bypasses its cache: every checkpoint is in the prefix directory."""
    def prepare(place):
        configuration = scr_configuration(place, SCR_CACHE_BYPASS=None, SCR_CHECKPOINT_INTERVAL=20)
        return lambda name, steps, result: ("scr_solver", configuration, name, steps, result)
    end_the_same(site, prepare, lose_all_nodes, versions=8,
                 steps_after=lambda newest: 20 * newest + 37)


def what_users_have_removed_does_not_come_back(site):
    """They begin anew by removing the directories that they know of, on any number of ranks."""
    for program in ("veloc_solver", "scr_solver"):
        with Place(site, ranks=RANKS) as place:
            is_veloc = program == "veloc_solver"
            configuration = (veloc_configuration(place) if is_veloc
                             else scr_configuration(place, SCR_CACHE_BYPASS=1,
                                                    SCR_CHECKPOINT_INTERVAL=50))
            for ranks in (RANKS, RANKS, RANKS - 1):
                run = place.start(program, configuration, "removed", 100, "result", ranks=ranks,
                                  environment=NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory)})
                run.succeed((*MPI_NOTICE, "^diapause: the directories of 'removed' were removed"))
                expect(place.events("removed", "checkpoint"), f"{program} took no checkpoints")
                expect_equal(place.events("removed", "restart"), [], f"restarts of {program}")
                for directory in (place.global_, *([place.local] if is_veloc else [])):
                    shutil.rmtree(directory)


def scrs_functions_do_what_programs_lean_on(site):
    for bypass in ("1", "0"):
        with Place(site, ranks=RANKS) as place:
            place.global_ = place.path / ".scr"
            environment = NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory),
                                   "SCR_CACHE_BYPASS": bypass}
            for part in ("begin", "continue", "fetch", "choose", "chosen", "failed"):
                if part == "fetch":
                    # What was not in the prefix directory when the last run ended is lost.
                    shutil.rmtree(place.memory)
                place.run("scr_functions", part, environment=environment,
                          messages=(*MPI_NOTICE, "^scr: "))


def a_dataset_of_scr_that_failed_is_offered_to_no_restart(site):
    """The prefix directory fills up, with checkpoints that bypass the cache and without."""
    for bypass in (1, 0):
        with Place(site, ranks=RANKS) as place:
            prefix = place.path / "prefix"
            prefix.mkdir()
            both = 'for part in begin continue; do "$@" $part || exit; done'
            place.launcher = [*launcher_with_small_tmpfs(prefix), "sh", "-c",
                              f"cd {prefix} && {both}", "sh", site.mpiexec]
            place.run("scr_full", messages=(*MPI_NOTICE, "^scr: ", "^diapause: ", "full"),
                      environment=NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory),
                                           "SCR_PREFIX": str(prefix), "SCR_FLUSH": "1",
                                           "SCR_CACHE_SIZE": "9", "SCR_PREFIX_SIZE": "9",
                                           "SCR_CACHE_BYPASS": str(bypass)})


def habits_of_scr_programs_do_no_harm(site):
    with Place(site, ranks=RANKS) as place:
        place.global_ = place.path / ".scr"
        environment = NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        place.start("scr_habits", "begin", environment=environment).be_killed()
        said = place.runs[-1].stderr.read_text()
        expect("not so" not in said, said)
        expect("has to write to the path that SCR_Route_file returns" in said,
               "no message says to which path to write")
        place.run("scr_habits", "continue", environment=environment,
                  messages=(*MPI_NOTICE, "^scr: "))


def a_program_on_one_node_has_level_1_instead_of_those_that_need_several(site):
    with Place(site, ranks=RANKS) as place:
        told = "^diapause: the job has too few nodes for level 3: level 1 is taken instead"
        for solver, configuration in (("scr_solver",
                                       scr_configuration(place, SCR_CHECKPOINT_INTERVAL=20)),
                                      ("veloc_solver", veloc_configuration(
                                          place, ec_interval=0, persistent_interval=-1))):
            run = place.start(solver, configuration, solver, 60, solver,
                              environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)})
            run.succeed((*MPI_NOTICE, told))
            expect_equal(run.stderr.read_text().count("level 1 is taken instead"), 1,
                         f"lines about it, of {solver}")
        configuration = fti_configuration(place, "one.fti", verbosity=2, node_size=RANKS,
                                          group_size=1)
        run = place.start("fti_solver", configuration, 2, 60, "fti_solver",
                          environment=fti_environment(place))
        run.succeed((*MPI_NOTICE, "^fti: ", told.replace("level 3", "level 2")))
        said = run.stderr.read_text()
        expect("(L1) is captured" in said and "(L2)" not in said, f"other levels: {said}")


def a_fortran_program_of_scr_goes_on(site):
    for program in ("scr_fortran", "scr_module"):
        fortran_goes_on(site, program)


def fortran_goes_on(site, program):
    need_fortran(site, program)
    with Place(site, ranks=RANKS) as place:
        environment = NODES | {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        for run in range(3):
            place.run(program, run, environment=environment, messages=(*MPI_NOTICE, "^scr: "))
        for rank in range(RANKS):
            expect_equal((place.path / f"count.3/rank_{rank}").read_text().strip(), "3",
                         "the last output")


def a_configuration_of_scr_that_cannot_be_used_is_refused_by_name(site):
    with Place(site, ranks=RANKS) as place:
        for key, value in (("SCR_COPY_TYPE", "TWICE"), ("SCR_FLUSH", "often"),
                           ("SCR_CHECKPOINT_OVERHEAD", "much")):
            configuration = scr_configuration(place, **{key: value})
            run = place.start("scr_solver", configuration, "wrong", 1, "never",
                              environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)})
            expect_equal(run.process.wait(120), 3, f"exit status with {key} = {value}")
            expect(key in run.stderr.read_text(), f"{key} = {value}: no message names it")


def what_has_no_meaning_in_the_environment_is_told_once(site):
    with Place(site, ranks=RANKS) as place:
        environment = {"DIAPAUSE_MEMORY_PATH": str(place.memory), "VELOC_THREADED": "1",
                       "SCR_FETCH_WIDTH": "4"}
        for solver, configuration, told in (
                ("scr_solver", scr_configuration(place), "SCR_FETCH_WIDTH"),
                ("veloc_solver", veloc_configuration(place), "threaded")):
            run = place.start(solver, configuration, solver, 1, solver, environment=environment)
            run.succeed((*MPI_NOTICE, "has no meaning for Diapause", "level 1 is taken instead"))
            expect_equal(run.stderr.read_text().count(f"{told} has no meaning"), 1,
                         f"lines about {told}")


def a_configuration_of_veloc_that_cannot_be_used_is_refused_by_name(site):
    with Place(site, ranks=0) as place:
        for key, value in (("scratch", None), ("mode", "sometimes"), ("max_versions", "two"),
                           ("ec_interval", -2), ("axl_type", "AXL_XFER_SYNC")):
            configuration = veloc_configuration(place, **{key: value})
            run = place.start("veloc_functions", configuration,
                              environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)})
            expect_equal(run.wait(), 1, f"exit status with {key} = {value}")
            expect(f"veloc.cfg: {key}" in run.stderr.read_text(),
                   f"{key} = {value}: no message names it")


def fti_configuration(place, name, restart={}, injection={}, **basic):
    basic = {"ckpt_dir": place.local,
             "glbl_dir": place.global_,
             "meta_dir": place.path / "meta",
             "node_size": 1,
             "group_size": RANKS,
             "ckpt_io": 1,
             "head": 0,
             "keep_last_ckpt": 0,
             "verbosity": 3} | basic
    return write_keys(place.path / name, {
        "Basic": basic, "restart": {"failure": 0, "exec_id": "NULL"} | restart,
        "injection": injection, "advanced": {"local_test": 1}})


def restart_of(configuration):
    """(failure, exec_id), as FTI's users read them back."""
    keys = dict(line.split(" = ")
                for line in configuration.read_text().splitlines() if " = " in line)
    return int(keys["failure"]), keys["exec_id"]


def fti_environment(place):
    return {"DIAPAUSE_MEMORY_PATH": str(place.memory)}


def fti_ends_the_same(site, level, after_kill=lambda place: None, ranks=RANKS, **basic):
    """A program that is to compute for ever is killed, goes on, and ends with the bytes of
    one that was left alone."""
    with Place(site, ranks=ranks) as place:
        killed, alone = (fti_configuration(place, f"{name}.fti", **basic)
                         for name in ("killed", "alone"))
        job = None
        for _ in range(2):
            before = newest_version(place, job) if job else 0
            run = place.start("fti_solver", killed, level, FOREVER, "never",
                              environment=fti_environment(place))
            run.wait_for(lambda: restart_of(killed)[0] == 1, "a first checkpoint")
            job = f"fti-{restart_of(killed)[1]}"
            run.wait_for(lambda: newest_version(place, job) > before + 3,
                         "versions of a running job")
            run.kill(job, rank=RANKS - 1)
            run.be_killed()
            after_kill(place)
        steps = 20 * newest_version(place, job) + 117
        # A restart that has to restore redundancy begins twice.
        restarts_of_job = lambda: sorted({event["version"]
                                          for event in place.events(job, "restart")})  # noqa: E731
        place.run("fti_solver", killed, level, steps, "killed", environment=fti_environment(place),
                  messages=MPI_NOTICE)
        expect(len(restarts_of_job()) == 2, f"restarted from {restarts_of_job()}")
        expect_equal(restart_of(killed)[0], 0, "failure, after the end")
        place.run("fti_solver", alone, level, steps, "alone", environment=fti_environment(place),
                  messages=MPI_NOTICE)
        expect(result_of(place, "killed") == result_of(place, "alone"),
               "the killed job ended with another result")


def habits_of_fti_programs_do_no_harm(site):
    with Place(site, ranks=RANKS) as place:
        configuration = place.path / "habits.fti"
        target = place.path / "mine.fti"
        configuration.symlink_to(target)
        target.touch(mode=0o600)
        configuration.write_text(f"""# as people write them
[ BASIC ]\r
Ckpt_Dir="{place.local}" ; of this node
\tGLBL_DIR\t=\t{place.global_}   # of all
node_size=1
Group_Size =2

[ Restart ]
\tfailure = 0

[advanced]
Local_Test = 1
""")
        environment = fti_environment(place)
        for part in ("begin", "ignore"):
            place.start("fti_habits", configuration, part, environment=environment).wait()
            said = place.runs[-1].stderr.read_text()
            expect("not so" not in said, said)
            expect_equal(restart_of(configuration)[0], 1, f"failure, after '{part}'")
            expect_equal(target.read_text().lower().count("failure"), 1, "lines with failure")
        expect(configuration.is_symlink(), "the link to the configuration was replaced")
        expect_equal(target.stat().st_mode & 0o777, 0o600, "mode of the configuration")
        place.run("fti_habits", configuration, "continue", environment=environment,
                  messages=(*MPI_NOTICE, "^fti: "))


MPI_NOTICE = ("MPI_THREAD_MULTIPLE",)  # most programs for these interfaces do without


def an_fti_program_that_is_killed_ends_the_same(site):
    fti_ends_the_same(site, level=1)


def an_fti_program_that_loses_a_node_ends_the_same(site):
    fti_ends_the_same(site, level=3, after_kill=lambda place: lose_node(place, "node1"))


def an_fti_program_with_heads_that_is_killed_ends_the_same(site):
    fti_ends_the_same(site, level=4, ranks=RANKS + 1, head=1, node_size=RANKS + 1, group_size=1)


def an_fti_program_goes_on_from_what_the_last_run_kept(site):
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(place, "kept.fti", keep_last_ckpt=1)
        place.run("fti_solver", configuration, 1, 100, "first", environment=fti_environment(place),
                  messages=MPI_NOTICE)
        failure, execution = restart_of(configuration)
        expect_equal(failure, 2, "failure, after a run that keeps its last checkpoint")
        for tier in (place.memory, place.local):
            shutil.rmtree(tier)
        before = len(place.events(f"fti-{execution}", "restart"))
        place.run("fti_solver", configuration, 1, 100, "second", environment=fti_environment(place),
                  messages=MPI_NOTICE)
        expect(result_of(place, "first") == result_of(place, "second"),
               "the kept checkpoint gave another result")
        expect_equal(len(place.events(f"fti-{execution}", "restart")), before + 1, "restarts")


def an_fti_program_that_has_finished_leaves_its_ledger_alone(site):
    """Each execution has a name of its own: nothing else of it can be of use again."""
    for keys in ({}, {"head": 1, "node_size": RANKS + 1, "group_size": 1}):
        with Place(site, ranks=RANKS + keys.get("head", 0)) as place:
            configuration = fti_configuration(place, "config.fti", **keys)
            place.run("fti_solver", configuration, 1, 100, "result",
                      environment=fti_environment(place), messages=MPI_NOTICE)
            left = [str(path) for tier in (place.memory, place.local)
                    for path in tier.rglob("*")]
            expect_equal(left, [], "paths on the nodes")
            expect_equal(len(list(place.global_.glob("fti-*/ledger.jsonl"))), 1, "ledgers")


def an_fti_program_that_has_lost_everything_is_told_so(site):
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(place, "lost.fti",
                                          restart={"failure": 1, "exec_id": "2020-01-01_00-00-00"})
        run = place.start("fti_solver", configuration, 1, 100, "never",
                          environment=fti_environment(place))
        expect_equal(run.process.wait(120), 20, "exit status, which stands for FTI_NREC")
        expect("nothing is left of the execution 2020-01-01_00-00-00" in run.stderr.read_text(),
               "no message says that nothing is left")


def ftis_functions_do_what_programs_lean_on(site):
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(
            place, "functions.fti", verbosity=1, inline_l2=1, grup_size=2, keep_l4_ckpt="no",
            enable_staging=1,
            injection={"rank": 1, "index": 3, "position": 62, "number": 1})
        messages = (*MPI_NOTICE, "^fti: ")
        staged = place.path / "staged"
        run = place.start("fti_functions", configuration, staged, "begin",
                          environment=fti_environment(place))
        run.succeed(messages)
        said = run.stderr.read_text()
        expect("fti: Variable ID 0 to protect." in said,
               "no line about a variable, which others look for")
        for line in ("without a meaning for Diapause: basic.inline_l2, basic.meta_dir",
                     "no keys of FTI: basic.grup_size"):
            expect_equal(said.count(f"fti: {configuration}: {line}\n"), 1,
                         f"lines that say: {line}")
        for rank in range(RANKS):
            expect_equal((place.path / f"staged.{rank}").read_text(), "staged", "what was staged")
        place.run("fti_functions", configuration, staged, "continue",
                  environment=fti_environment(place), messages=messages)
        expect_equal(restart_of(configuration)[0], 0, "failure, after the end")


def very_many_variables_of_fti_are_recovered(site):
    """A search through all of them for each would take minutes, and the run fails then."""
    with Place(site, ranks=1) as place:
        place.run("fti_many", fti_configuration(place, "many.fti", group_size=1),
                  environment=fti_environment(place), messages=MPI_NOTICE)


def ftis_global_datasets_are_recovered_on_other_numbers_of_ranks(site):
    with Place(site, ranks=RANKS) as place:
        keys = {"ckpt_io": 5, "h5_single_file_enable": 1, "verbosity": 2}
        run = lambda part, ranks, failure, **more: place.run(  # noqa: E731
            "fti_datasets",
            fti_configuration(place, f"{part}.fti", restart={"failure": failure}, group_size=1,
                              **keys, **more),
            part, ranks=ranks, environment=fti_environment(place), messages=(*MPI_NOTICE, "^fti: "))
        run("store", RANKS, 0, keep_l4_ckpt=1)
        for part, ranks in (("recover", RANKS + 2), ("select", RANKS), ("recover", RANKS)):
            run(part, ranks, 3)
        run("miss", RANKS - 1, 3)  # fewer than have stored them
        run("miss", RANKS, 3, h5_single_file_prefix="other")
        if not site.diapause:
            return
        for job, array, shape in (
                (f"fti-VPR-h5-{RANKS}", "field.npy", "(60, 41)"),
                (f"fti-{restart_of(place.path / 'store.fti')[1]}", "9 grid.r0.npy", "(3, 4)")):
            arrays = place.path / job
            subprocess.run([site.diapause, "export", job, "--to", arrays, "--global",
                            place.global_], check=True, stdout=subprocess.DEVNULL)
            head = (arrays / array).read_bytes()[:128].decode("latin-1")
            expect(f"'shape': {shape}" in head, f"{array} begins with {head}")


def runs_of_fti_that_begin_within_a_second_have_ids_of_their_own(site):
    with Place(site, ranks=RANKS) as place:
        first, second = (fti_configuration(place, f"{name}.fti") for name in ("first", "second"))
        place.run("fti_functions", first, second, "twice", environment=fti_environment(place),
                  messages=(*MPI_NOTICE, "^fti: "))
        expect(restart_of(first)[1] != restart_of(second)[1], "both runs have one id")


def a_checkpoint_of_fti_outlives_a_node_when_its_call_has_returned(site):
    """The program's MPI lets no thread communicate, and the program makes no further call."""
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(place, "held.fti")
        taken = place.path / "taken"
        run = place.start("fti_functions", configuration, taken, "hold",
                          environment=fti_environment(place))
        run.wait_for(lambda: all(pathlib.Path(f"{taken}.{rank}").exists() for rank in range(RANKS)),
                     "a checkpoint")
        run.kill(f"fti-{restart_of(configuration)[1]}", rank=0)
        run.be_killed()
        lose_node(place, "node1")
        place.run("fti_functions", configuration, taken, "recover",
                  environment=fti_environment(place), messages=(*MPI_NOTICE, "^fti: "))


def a_restart_of_fti_has_its_redundancy_back_when_it_is_begun(site):
    """The program that goes on is killed before it takes a checkpoint, and another
    node is lost than before."""
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(place, "again.fti")
        for part, node in (("hold", "node1"), ("stay", "node2")):
            reached = place.path / part
            run = place.start("fti_functions", configuration, reached, part,
                              environment=fti_environment(place))
            run.wait_for(lambda: all(pathlib.Path(f"{reached}.{rank}").exists()
                                     for rank in range(RANKS)),
                         part)
            run.kill(f"fti-{restart_of(configuration)[1]}", rank=0)
            run.be_killed()
            lose_node(place, node)
        place.run("fti_functions", configuration, reached, "recover",
                  environment=fti_environment(place), messages=(*MPI_NOTICE, "^fti: "))


def need_fortran(site, program):
    if not (site.programs / program).exists():
        raise Skip("there is no Fortran compiler with the module mpi")


def a_fortran_program_of_fti_goes_on(site):
    need_fortran(site, "fti_fortran")
    with Place(site, ranks=RANKS) as place:
        configuration = fti_configuration(place, "fortran.fti")
        for part in ("begin", "continue"):
            place.run("fti_fortran", configuration, part, environment=fti_environment(place),
                      messages=(*MPI_NOTICE, "^fti: variable 9: it is not contiguous",
                                "^fti: a field lies outside"))


def what_others_headers_have_compiled_is_only_linked_again(site):
    with Place(site, ranks=RANKS) as place:
        environment = {"DIAPAUSE_MEMORY_PATH": str(place.memory)}
        place.run("relinked_fti", fti_configuration(place, "relinked.fti"),
                  environment=environment, messages=MPI_NOTICE)
        place.run("relinked_scr", messages=(*MPI_NOTICE, "^scr: "),
                  environment=environment | NODES | {
                      "SCR_CONF_FILE": str(scr_configuration(place, SCR_CACHE_BYPASS=None))})
        place.run("relinked_veloc", veloc_configuration(place), ranks=0, environment=environment,
                  messages=("level 1 is taken instead",))


def a_configuration_of_fti_that_cannot_be_used_is_refused_by_name(site):
    with Place(site, ranks=RANKS) as place:
        for key, value in (("node_size", 2), ("group_size", 2), ("ckpt_io", 5),
                           ("keep_last_ckpt", 2), ("h5_single_file_enable", 2),
                           ("enable_dcp", "perhaps"), ("ckpt_dir", ""), ("verbosity", "loud")):
            configuration = fti_configuration(place, "wrong.fti", **{key: value})
            run = place.start("fti_solver", configuration, 1, 100, "never",
                              environment=fti_environment(place))
            expect_equal(run.process.wait(120), 3, f"exit status with {key} = {value}")
            expect(key in run.stderr.read_text(), f"{key} = {value}: no message names it")
        run = place.start("fti_solver", place.path, 1, 100, "never",
                          environment=fti_environment(place))
        expect_equal(run.process.wait(120), 3, "exit status with a directory")
        expect(f"{place.path}: this is a directory" in run.stderr.read_text(),
               "no message says that it is a directory")


def solvers(place):
    """(words that start a solver of each of the three, the keys that name its directories)"""
    configuration = fti_configuration(place, "shared.fti", keep_last_ckpt=1)
    yield ("fti_solver", configuration, 1, 100, "result"), ("ckpt_dir", "glbl_dir")
    yield (("veloc_solver", veloc_configuration(place), "shared", 100, "result"),
           ("scratch", "persistent"))
    configuration = scr_configuration(place, SCR_CHECKPOINT_INTERVAL=50, SCR_COPY_TYPE="SINGLE")
    yield ("scr_solver", configuration, "shared", 100, "result"), ("SCR_CACHE_BASE", "SCR_PREFIX")


def what_others_may_write_to_gets_a_directory_of_the_users_own(site):
    """Like /tmp and the file systems of clusters; and what is named is only a link to it."""
    for number in range(3):
        with Place(site, ranks=RANKS) as place:
            words, _ = list(solvers(place))[number]
            own = f"diapause-{os.geteuid()}"
            is_scr = words[0] == "scr_solver"  # its global directory is one in the prefix directory
            links = [place.local] if is_scr else [place.local, place.path / "global"]
            for link in links:
                directory = place.path / f"shared-{link.name}"
                directory.mkdir()
                directory.chmod(0o1777)
                link.symlink_to(directory)
            place.global_ = place.path / ".scr" if is_scr else place.path / "global" / own
            restarts = []
            for _ in range(2):
                place.run(*words, messages=(*MPI_NOTICE, "level 1 is taken instead"),
                          environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)})
                restarts.append(len(place.events("*", "restart")))
            expect(restarts[1] == restarts[0] + 1, f"restarts of {words[0]}: {restarts}")
            for link in links:
                expect_equal([path.name for path in link.iterdir()], [own], str(link))
                expect_equal((link / own).stat().st_mode & 0o777, 0o700, "its mode")


def what_cannot_be_written_to_is_told_at_the_beginning(site):
    with Place(site, ranks=RANKS) as place:
        (place.path / "file").touch()
        for words, keys in solvers(place):
            whole = words[1].read_text()
            for key in keys:
                wrong = f"{key} = {place.path / 'file' / 'inside'}\n"
                words[1].write_text("".join(wrong if line.startswith(f"{key} ") else line
                                            for line in whole.splitlines(keepends=True)))
                run = place.start(*words, environment={"DIAPAUSE_MEMORY_PATH": str(place.memory)})
                expect_equal(run.process.wait(120), 3, f"exit status of {words[0]} with {key}")
                said = run.stderr.read_text()
                expect(key in said and "nothing can be written there" in said,
                       f"{key}: no message names it: {said}")


BEGINNINGS = ("a_", "an_", "velocs_", "ftis_", "scrs_", "runs_", "what_", "habits_", "very_")
TESTS = {name: function for name, function in list(globals().items())
         if name.startswith(BEGINNINGS)}


def main():
    parser = parser_of(__doc__, TESTS)
    parser.add_argument("--diapause")
    site = parser.parse_args()
    return exit_status_of(TESTS[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
