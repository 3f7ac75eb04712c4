"""Every stepping program must end with the same numbers, however it is run
and whatever kills it."""

import random
import shutil
from dataclasses import dataclass

from harness import Place, expect, expect_equal


@dataclass
class Program:
    what: str
    jobs: tuple = ()        # names of its instances; () stands for its own name
    survives_nodes: bool = True
    ranks_per_node: int = 2
    options: tuple = ()
    config: tuple = ()      # as Place takes it


PROGRAMS = {
    "ring": Program("messages_around_checkpoints"),
    "resize": Program("regions_that_grow_and_shrink"),
    "moved": Program("regions_protected_again_at_a_new_address"),
    "late": Program("a_region_protected_after_the_first_checkpoint"),
    "dropped": Program("regions_that_come_and_go"),
    "many": Program("hundreds_of_regions_and_empty_ones"),
    "uneven": Program("ranks_of_very_different_sizes_and_without_data"),
    "split": Program("two_instances_on_different_communicators",
                     ("split-even", "split-odd", "split-whole"), False, 1),
    "single": Program("instances_without_mpi", tuple(f"single-{rank}" for rank in range(4)), False),
    "rhythm": Program("snapshots_of_ranks_of_different_speed", options=("--snapshot",),
                      config=(("level1", {"every_calls": 2}), ("level2", {"every_calls": 3}),
                              ("level3", {"every_calls": 4}))),
}


IN_BACKGROUND = {"async": {"mode": "thread"}}
SET_ASIDE = {"async": {"mode": "rank"}}
STRATEGIES = ("copy", "copy-on-write", "incremental")


class Modes:
    def __init__(self, site, name, options=(), messages=(), steps=12, **config):
        self.site, self.name, self.program, self.config, self.messages = (
            site, name, PROGRAMS[name], config, messages)
        self.jobs = self.program.jobs or (name,)
        self.every, self.last = steps // 4, steps - steps // 12
        self.options = ("--steps", str(steps), "--every", str(self.every), *self.program.options,
                        *options)
        with Place(site, **dict(self.program.config)) as place:
            self.right = place.compute(name, "--plain", *self.options[:4])
            expect(not any(place.global_.glob("*")), "a plain run used Diapause")

    def place(self, ranks_per_node=1, **shape):
        """Makes a place for 4 ranks that compute, and for one more on each node
        if ranks are dedicated."""
        ranks = 4
        if self.config.get("async") == SET_ASIDE["async"]:
            ranks += ranks // ranks_per_node
            ranks_per_node += 1
        return Place(self.site, ranks, ranks_per_node, **shape, **dict(self.program.config),
                     **self.config)

    def check(self, place, what, *options):
        result = place.compute(self.name, *self.options, *options, messages=self.messages)
        expect_equal(result, self.right, f"{self.name}, {what}: result")

    def check_restarted(self, place, what, *options):
        """Nothing keeps the instances in step, so some of them may have been killed before
        their first checkpoint."""
        stored = [job for job in self.jobs if place.events(job, "checkpoint")]
        expect(stored, f"{self.name}, {what}: no checkpoint before")
        self.check(place, what, *options)
        for job in stored:
            expect(place.events(job, "restart"), f"{self.name}, {what}: '{job}' was not restarted")

    def checkpointed(self):
        with self.place() as place:
            self.check(place, "with checkpoints", "--levels", "1234")
            for job in self.jobs:
                expect(place.events(job, "checkpoint"), f"{self.name}: no checkpoints of '{job}'")
                expect(not place.events(job, "restart"), f"{self.name}: restarted from nothing")

    def kills_itself(self):
        with self.place(ranks_per_node=self.program.ranks_per_node) as place:
            place.start(self.name, *self.options, "--levels", "14", "--die-at", "7", "--die-rank",
                        "2").be_killed()
            self.check_restarted(place, "after a rank killed itself", "--levels", "14")

    def start_and_wait(self, place, levels):
        """Is killed at any moment after a checkpoint; never comes to its end."""
        run = place.start(self.name, *self.options, "--levels", levels, "--pace-ms", "8",
                          "--hold-at", str(self.last))
        newest = lambda job: max((e["version"] for e in place.events(job, "checkpoint")), default=0)
        run.wait_for(lambda: all(newest(job) > self.every for job in self.jobs),
                     "the second version")
        return run

    def rank_killed(self):
        with self.place() as place:
            run = self.start_and_wait(place, "2431")
            run.kill(self.jobs[0], rank=0)
            run.be_killed()
            self.check_restarted(place, "after a kill", "--levels", "2431")

    def dedicated_rank_killed(self):
        with self.place(ranks_per_node=2) as place:
            run = self.start_and_wait(place, "2431")
            run.kill_other_than_ranks(self.jobs[0])
            run.be_killed()
            self.check_restarted(place, "after the end of a dedicated rank", "--levels", "2431")

    def mode_changed(self):
        """A version that was written with dedicated ranks is restored without any, by as
        many ranks that compute."""
        with self.place(ranks_per_node=2) as place:
            run = self.start_and_wait(place, "2431")
            run.kill(self.jobs[0], rank=1)
            run.be_killed()
            place.ranks = 4
            place.configure(place.settings,
                            {"node": {"ranks_per_node": 2}, "async": {"mode": "off"}})
            self.check_restarted(place, "after a change of the mode", "--levels", "2431")

    def node_lost(self, levels, ranks_per_node, tier):
        with self.place(ranks_per_node=ranks_per_node, tier=tier) as place:
            run = self.start_and_wait(place, levels)
            run.kill(self.jobs[0], node="node1")
            run.be_killed()
            for path in (*place.memory.glob("*/node1"), *place.local.glob("*/node1")):
                shutil.rmtree(path)
            self.check_restarted(place, f"after node1 was lost at level {levels}", "--levels",
                                 levels)


def run_all_modes(site, name):
    modes = Modes(site, name)
    modes.checkpointed()
    modes.kills_itself()
    modes.rank_killed()
    if modes.program.survives_nodes and name != "rhythm":
        modes.node_lost("2", 2, "local")
        modes.node_lost("3", 1, "memory")


def run_in_background(site, name):
    modes = Modes(site, name, **IN_BACKGROUND)
    modes.checkpointed()
    modes.rank_killed()
    if modes.program.survives_nodes and name != "rhythm":
        modes.node_lost("3", 1, "memory")


def run_captured(site, name, strategy):
    """In the background, with all memory captured in that way."""
    modes = Modes(site, name, **IN_BACKGROUND, capture={"strategy": strategy})
    modes.checkpointed()
    modes.rank_killed()


def run_all_captures(site, name):
    """Each way to capture, with what follows in the calls, in the background and, for jobs that may
    lose a node, in dedicated ranks."""
    for mode in ({"async": {"mode": "off"}}, IN_BACKGROUND,
                 *([SET_ASIDE] if PROGRAMS[name].survives_nodes else [])):
        for strategy in STRATEGIES:
            modes = Modes(site, name, **mode, capture={"strategy": strategy})
            modes.checkpointed()
            modes.rank_killed()


def run_without_threads_that_communicate(site, name):
    modes = Modes(site, name, ("--funneled",), ("not initialised with MPI_THREAD_MULTIPLE",), 120,
                  **IN_BACKGROUND)
    modes.checkpointed()
    modes.rank_killed()
    modes.node_lost("3", 1, "memory")


def run_with_dedicated_ranks(site, name):
    modes = Modes(site, name, **SET_ASIDE)
    modes.checkpointed()
    modes.rank_killed()
    modes.dedicated_rank_killed()
    modes.node_lost("3", 1, "memory")
    modes.mode_changed()


def killed_again_and_again(site, name="ring", kills=6, seed=20240229, **config):
    """A job that takes a checkpoint in every step and is killed at moments
    that mean nothing to it."""
    chance = random.Random(seed)
    # More steps than it can make in all its lives: between a look at it and the kill it goes on.
    options = ["--steps", str(60 * kills), "--levels", "1213141"]
    with Place(site, ranks_per_node=2, **config) as place:
        right = place.compute(name, "--plain", *options)
        reached = 0
        for _ in range(kills):
            run = place.start(name, *options, "--every", "1", "--pace-ms", "5")
            target = reached + chance.randint(2, 5)
            newest = lambda: max((e["version"] for e in place.events(name, "checkpoint")),
                                 default=0)
            run.wait_for(lambda: newest() >= target, f"version {target}")
            run.kill(name, rank=chance.randrange(4))
            run.be_killed()
            reached = newest()
        expect_equal(place.compute(name, *options, "--every", "50"), right,
                     "result after many kills")
        restarts = [event["version"] for event in place.events(name, "restart")]
        expect(len(restarts) == kills, f"{len(restarts)} restarts after {kills} kills")
        expect(restarts == sorted(restarts) and restarts[0] >= 2,
               f"restarts from {restarts}: work was lost")
