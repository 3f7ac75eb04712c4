"""Tests of jobs that run before their memory is read."""

import os

import nodes
from support import BIG, Job, Scenario, damage_all, first_difference, must, until


def may_fill_behind(place):
    """Returns whether memory may be filled while the job runs. The kernel lets only root follow
    what a process does to it."""
    return place.user == 0 and os.geteuid() == 0


def mapped(place, options):
    """A job that runs before it has its memory sees it as it was, whatever it does to it."""
    scenario = Scenario(place, [place.own_copy(options.programs / "behind")])
    job = scenario.launch()
    job.wait_for_lines(8)
    job.checkpoint("--level", "4")
    job.kill()
    for _ in range(3):
        place.gate.touch()
        job = Job(place, "restart", "job", "--mapped")
        status, errors = job.wait()
        is_same = status == scenario.status and scenario.reference.endswith(job.output())
        must(is_same, f"{status} {first_difference(job.output(), scenario.reference)} {errors}")
        is_eager = "all memory is restored before the job runs" in errors
        must(is_eager != may_fill_behind(place), f"eager: {is_eager} {errors}")


def restarts(place):
    return place.verb("history", "job")[1].count("went on from version")


def mapped_restart(place):
    """One that runs, and may still lack memory."""
    before = restarts(place)
    job = Job(place, "restart", "job", "--mapped")
    until(lambda: restarts(place) > before or job.process.poll() is not None, "it is not restarted")
    return job


def mapped_disturbed(place, options):
    """A checkpoint waits until the job has all of its memory; if the job or its agent is killed
    before, nothing goes on."""
    del options
    scenario = Scenario(place, ["/usr/bin/python3", "-c", BIG])
    job = scenario.launch()
    job.wait_for_lines(1)
    job.checkpoint()
    job.kill()
    job = mapped_restart(place)
    job.checkpoint()
    job.kill()
    mapped_restart(place).kill()
    job = mapped_restart(place)
    keeper = nodes.children_of(job.process.pid)[0]
    job.process.kill()
    job.process.wait()
    place.gate.touch()
    until(lambda: job.output() or not os.path.exists(f"/proc/{keeper}"),
          "the job neither goes on nor ends")
    must(job.output() in ("", "has True\n"), f"without its agent: {job.output()}")
    until(lambda: not os.path.exists(f"/proc/{keeper}"), "the job does not end")
    # The tiers are locked until whoever ended the job has ended, too.
    until(lambda: place.verb("restart", "job", "--mapped")[:2] == (0, "has True\n"),
          "it cannot be restarted")


def mapped_damaged(place, options):
    """Damage that is met while the job runs: memory comes from another copy, or the job ends, and
    that version is passed over."""
    del options
    if not may_fill_behind(place):
        return
    scenario = Scenario(place, ["/usr/bin/python3", "-c", BIG])
    job = scenario.launch()
    job.wait_for_lines(1)
    job.checkpoint("--level", "4")
    job.kill()
    damage_all(place.root / "memory")
    place.gate.touch()
    status, output, errors = place.verb("restart", "job", "--mapped")
    must(status == 0 and output == "has True\n" and "is damaged" in errors,
         f"{status} {output} {errors}")
    damage_all(place.root / "global")
    for number in range(2):
        status, output, errors = place.verb("restart", "job", "--mapped")
        is_told = "is damaged" in errors and ("the job was ended" in errors) == (number == 0)
        must(status == 125 and output == "" and is_told, f"{status} {output} {errors}")


ON_BOTH = """
"$DIAPAUSE_RUN_ON" node1 "TRANSPARENT_GATE=$TRANSPARENT_GATE /usr/bin/python3 {0}" & other=$!
/usr/bin/python3 {0}
wait $other
"""


def mapped_on_nodes(place, options):
    """Nodes fill their memory from their own images and from a partner's copy. Damage ends the job,
    and the next restart checks all images before."""
    del options
    on = nodes.OnNodes(place, 2)
    program = place.work / "big.py"
    program.write_text(BIG)

    def restart():
        return Job(place, "restart", "job", *on.words, "--mapped")

    def must_end_well(job, is_eager):
        place.gate.touch()
        status, errors = job.wait()
        output = job.output()  # of two programs, whose words may come in any order
        is_right = status == 0 and output.count("has") == output.count("True") == 2
        must(is_right, f"{status} {output} {errors}")
        must(("all memory is restored before the job runs" in errors) == is_eager, errors)

    job = on.launch(Job, ["/bin/sh", "-c", ON_BOTH.format(program)])
    job.wait_for_lines(2)
    job.checkpoint("--level", "2")
    on.lose(job, 1)
    on.end(job)
    job = restart()
    job.checkpoint("--level", "2")
    must_end_well(job, not may_fill_behind(place))
    if not may_fill_behind(place):
        return
    for directory in place.root.glob("memory/*/node1"):
        damage_all(directory)
    status, errors = restart().wait()
    must(status != 0 and "is damaged" in errors, f"{status} {errors}")
    must_end_well(restart(), is_eager=True)


TESTS = {"mapped": mapped, "mapped_disturbed": mapped_disturbed, "mapped_damaged": mapped_damaged,
         "mapped_on_nodes": mapped_on_nodes}
