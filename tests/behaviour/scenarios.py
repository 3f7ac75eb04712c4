"""Use of the library, right and wrong: one or two runs of a program that checks for itself."""

import hashlib
import os
import pathlib
import random
import shutil
import signal

from harness import FOREVER, Place, Skip, expect, expect_equal, flip_byte, wait_until


def asks_for_sizes_and_restores_some_regions(site):
    with Place(site) as place:
        place.run("select", "write")
        place.run("select", "read")


def restarts_from_a_given_older_version(site):
    with Place(site, ranks=2, level1={"keep": 10}) as place:
        for part in ("write", "back", "newest"):
            place.run("older", part)


def stores_flipped_bits_as_they_are(site):
    with Place(site) as place:
        place.run("flip", "one")


def flips_bits_as_configured(site):
    flips = {"bit": 5, "every_s": 0.001, "count": 2, "limit": 7, "region": "words", "seed": 3}
    with Place(site, ranks=2, flips=flips) as place:
        place.run("flip", "schedule")


def keeps_nothing_of_a_longer_version_of_the_same_number(site):
    for level in "1234":
        with Place(site, ranks=3) as place:
            place.run("again", "write", level)
            place.run("again", "read", level)


def closes_at_the_end_of_mpi_what_is_open(site):
    for mode, messages in {"off": [], "thread": ["MPI_THREAD_MULTIPLE"]}.items():
        for part in ("leaves", "closes"):
            with Place(site, ranks=3, **{"async": {"mode": mode}}) as place:
                place.run("finalizes", part, messages=messages)
                place.run("finalizes", "reads", messages=messages)


def keeps_the_edges_of_its_interface(site):
    with Place(site, ranks=2, ranks_per_node=2, **{"async": {"mode": "off"}}) as place:
        # The program's own text takes the place of the file: the tiers come from the environment.
        place.run("interface", environment={"DIAPAUSE_ROOT": "/opt/diapause",
                                            "DIAPAUSE_MEMORY_PATH": str(place.memory),
                                            "DIAPAUSE_GLOBAL_PATH": str(place.global_)})


def survives_wrong_calls(site):
    with Place(site, ranks=2) as place:
        place.run("misuse")


def dedicates_the_last_rank_of_each_node(site):
    with Place(site, ranks=5, ranks_per_node=3, **{"async": {"mode": "rank"}}) as place:
        place.run("dedicated", "3", "3")
    # Without MPI_THREAD_MULTIPLE. The second number is that of the worker.
    for mode, told in {"off": ("2", "0"), "thread": ("2", "2"), "rank": ("1", "3")}.items():
        with Place(site, ranks=2, ranks_per_node=2, **{"async": {"mode": mode}}) as place:
            place.run("dedicated", *told)  # one node has nobody to communicate with


def leaves_the_processor_to_others_while_a_rank_waits(site):
    for mode in ("off", "thread"):
        with Place(site, ranks=3, ranks_per_node=1, **{"async": {"mode": mode}}) as place:
            place.run("idles", messages=["MPI_THREAD_MULTIPLE"] if mode == "thread" else [])


def lets_a_job_that_is_killed_leave_no_slowed_core(site):
    """With a clock that is emulated by control groups."""
    def groups_of(process):
        return [group for _, groups, _ in os.walk("/sys/fs/cgroup") for group in groups
                if group.startswith(f"diapause-{process}-")]

    def slowed(place):
        return {phase["phase"]: phase["slowed"] for line in place.events("slowed", "energy")
                for phase in line["phases"] if "slowed" in phase}

    governor = {"policy": "fixed", "actuator": "emulated", "watchdog": str(site.diapause)}
    with Place(site, ranks=0, tier="local", governor=governor) as place:
        place.configure(place.settings,
                        {"governor": governor | {"state_path": str(place.path / "governor")}})
        run = place.start("slowed", "256")
        gave_up = lambda: "no phase is slowed" in run.stderr.read_text(errors="replace")
        run.wait_for(lambda: "capture" in slowed(place) or gave_up(), "a capture that is slowed")
        if gave_up():
            raise Skip(run.stderr.read_text(errors="replace").strip())
        for phase, how in slowed(place).items():
            expect_equal(how, {"actuator": "emulated", "asked": 0.85, "obtained": 0.85}, phase)
        run.wait_for(lambda: groups_of(run.process.pid), "a control group")
        run.process.kill()
        run.be_killed()
        wait_until(lambda: not groups_of(run.process.pid), "the control groups to go", 20)


def leaves_no_rank_waiting_when_ranks_disagree(site):
    with Place(site, ranks=3) as place:
        place.run("disagree")


def refuses_another_number_of_ranks(site):
    with Place(site) as place:
        place.run("rank_count", "write")
        for ranks in (3, 5):
            place.run("rank_count", "refused", ranks=ranks)
        place.run("rank_count", "read")


def tells_the_second_of_two_jobs_who_the_first_is(site):
    with Place(site, ranks=2) as place:
        place.configure(place.settings, {"": {"lock_wait_s": 1.2}})
        first = place.start("busy", "first")
        first.wait_for((place.path / "first-is-there").exists, "the first job is there")
        pid = dict(first.ranks_of("busy"))[0]
        second = place.start("busy", "second", f"process {pid} on node0")
        waits = f"is locked by: process {pid} on node0; waiting up to 1.2 s for its release"
        second.succeed([waits])
        expect(waits in second.stderr.read_text(), "the second job waited without a word")
        first.succeed([waits])


def leaves_no_trace_in_the_process(site):
    """With all work in its calls, and no meters. And what the program started does not keep its
    checkpoints locked after its death."""
    with Place(site, ranks=0, energy={"meters": ["off"]}) as place:
        place.start("guest", "first").be_killed()
        child = int((place.path / "child").read_text())
        try:
            name = pathlib.Path(f"/proc/{child}/comm")
            wait_until(lambda: name.read_text() == "sleep\n", "the child to become another program",
                       10)
            place.run("guest", "second")
        finally:
            os.kill(child, signal.SIGKILL)


def lives_in_every_kind_of_process(site):
    for part in ("child", "floats", "streams", "shortened", "cut"):
        with Place(site, ranks=0, **{"async": {"mode": "thread"}}) as place:
            place.run("surroundings", part, environment={"MEMORY": str(place.memory)})


def decides_by_calls_alike_on_all_ranks(site):
    intervals = {1: 3, 2: 7, 3: 0, 4: 20}
    due, since, steps = [], dict.fromkeys(intervals, 0), 45
    for call in range(1, steps + 1):
        levels = [level
                  for level, every in intervals.items() if every and call - since[level] >= every]
        if levels:
            due.append(("checkpoint", call, max(levels), max(levels)))
            since.update({level: call for level in intervals if level <= max(levels)})
    config = {f"level{level}": {"every_calls": every} for level, every in intervals.items()}
    with Place(site, **config) as place:
        place.compute("rhythm", "--snapshot", "--steps", str(steps))
        expect_equal(place.agreed_trace(), due, "checkpoints")


def decides_by_time_alike_on_all_ranks(site):
    with Place(site, level1={"every_s": 0.05}, level2={"every_s": 0.12}) as place:
        place.compute("rhythm", "--snapshot", "--steps", "400")
        trace = place.agreed_trace()
        expect({level for _event, _version, level, _reached in trace} == {1, 2},
               f"checkpoints: {trace}")
        expect(len(trace) >= 4, f"only {len(trace)} checkpoints")


def stops_on_all_ranks_with_a_checkpoint_when_one_is_signalled(site):
    """Ranks of different speed: they must find the same step to stop at. Then the
    job goes on from there."""
    steps = ["--snapshot", "--steps", "1500"]
    with Place(site, deadline={"signals": ["SIGUSR1"]}, level1={"every_calls": 50}) as place:
        right = place.compute("rhythm", "--plain", *steps)
        run = place.start("rhythm", *steps, "--trace", place.trace)
        run.wait_for(lambda: place.events("rhythm", "checkpoint"), "the first checkpoint")
        os.kill(dict(run.ranks_of("rhythm"))[2], signal.SIGUSR1)
        run.succeed()
        *_, last, stop = place.agreed_trace()
        expect_equal(stop, ("stop", last[1], int(signal.SIGUSR1), 2), "the stop")
        expect_equal(last, ("checkpoint", stop[1], 4, 4), "the last checkpoint")
        expect(50 <= stop[1] < 1500, f"stopped after step {stop[1]}")
        expect_equal(place.compute("rhythm", *steps), right, "result")
        expect_equal([event["version"] for event in place.events("rhythm", "restart")], [stop[1]],
                     "restarts")


def leaves_the_configuration_file_alone(site):
    """Two jobs of different names use one file and one set of directories at the same time."""
    with Place(site, ranks=2) as place:
        place.config.chmod(0o400)
        before = hashlib.sha256(place.config.read_bytes()).digest()
        options = ["--steps", "12", "--levels", "1234"]
        first, second = (place.start("moved", *options, "--name", name) for name in ("one", "two"))
        first.succeed()
        second.succeed()
        expect(hashlib.sha256(place.config.read_bytes()).digest() == before,
               "the configuration file was changed")
        expect({len(place.events(name, "checkpoint")) for name in ("one", "two")} == {4},
               "checkpoints are missing")


def obeys_the_configuration_of_this_run_and_not_of_the_one_before(site):
    with Place(site, ranks=2) as place:
        right = place.compute("moved", "--plain", "--steps", "9")
        place.compute("moved", "--steps", "3")
        expect(place.files("memory", "r0.img", 3) and not place.files("local", "r0.img"),
               "not in the memory tier")
        place.configure(place.settings, {"level1": {"tier": "local"}})
        place.compute("moved", "--steps", "6")
        expect(place.files("local", "r0.img", 6) and not place.files("memory", "r0.img", 6),
               "not in the local tier")
        expect_equal(place.compute("moved", "--steps", "9"), right, "result")
        versions = [event["version"] for event in place.events("moved", "restart")]
        expect_equal(versions, [3, 6], "restarts")


def works_without_any_configuration(site):
    """Runs as in the quick start: with the default tiers, no file, and no environment."""
    with Place(site, ranks=2) as place:
        name = f"defaults-{os.getpid()}"
        default_memory = pathlib.Path(f"/dev/shm/diapause-{os.getuid()}")
        try:
            right = place.compute("moved", "--plain", "--steps", "9")
            for steps in ("6", "9"):
                options = ["--name", name, "--steps", steps, "--levels", "14"]
                result = place.compute("moved", *options, environment={"DIAPAUSE_CONFIG": None})
            expect_equal(result, right, "result")
            expect(any(default_memory.glob(f"{name}-*")), "nothing in the default memory tier")
            expect(any((place.path / "diapause").glob(f"{name}-*/v6-*/r1.img")),
                   "nothing in the default global tier")
            expect_equal([trace[0] for trace in place.agreed_trace() if trace[0] == "restart"],
                         ["restart"], "restarts")
        finally:
            for left in default_memory.glob(f"{name}-*"):
                shutil.rmtree(left)


def goes_on_in_mapped_memory(site):
    """From the memory tier, the local disk, a rebuilt image, and shared
    files of the global tier."""
    ways = [("1", "memory", False), ("1", "local", False), ("3", "memory", True),
            ("4", "memory", True)]
    for part in ("first", "behind"):
        for level, tier, lose in ways:
            with Place(site, tier=tier) as place:
                place.configure(place.settings, {"global": {"files": 3}})
                place.run("mapped", "write", level)
                for path in place.memory.glob("*/node1") if lose else ():
                    shutil.rmtree(path)
                place.run("mapped", part, level)


def tells_of_damage_that_is_found_behind_its_back(site):
    with Place(site, ranks=2) as place:
        place.run("mapped", "write", "4")
        flip_byte(place.files("memory", "r1.img", 1)[0])
        place.run("mapped", "damaged",
                  messages=(r"^diapause: warning: .*r1\.img: block 1 of region 'data' is damaged",))


def writes_the_global_tier_as_configured(site):
    """Every way ends with the same numbers, restarted from the global tier alone."""
    ways = [("staged", 3, "a*.img", 3), ("staged", "auto", "a*.img", 2),
            ("direct", "rank", "r*.img", 4),
            ("direct", 2, "a*.img", 2), ("mpi-io", 3, "a*.img", 3), ("mpi-io", "auto", "a*.img", 2)]
    with Place(site) as place:
        right = place.compute("moved", "--plain", "--steps", "9")
    for mode, files, name, count in ways:
        with Place(site, ranks_per_node=2) as place:
            place.configure(place.settings, {"global": {"mode": mode, "files": files}})
            place.compute("moved", "--steps", "6", "--levels", "4")
            expect_equal(len(place.files("global", name, 6)), count,
                         f"files of mode {mode} with files {files}")
            expect_equal(len(place.files("memory", "r*.img", 6)), 4 if mode == "staged" else 0,
                         "images on nodes")
            shutil.rmtree(place.memory)
            expect_equal(place.compute("moved", "--steps", "9"), right,
                         f"result of mode {mode} with files {files}")
            expect_equal([event["version"] for event in place.events("moved", "restart")], [6],
                         "restarts")


def knows_the_size_of_a_region_of_more_than_2_gib(site):
    available_kib = next(int(line.split()[1]) for line in open("/proc/meminfo")
                         if line.startswith("MemAvailable"))
    if available_kib < 4 << 20 or shutil.disk_usage(site.work).free < 4 << 30:
        raise Skip("needs 4 GiB of memory and of disk")
    with Place(site, ranks=1, tier="local") as place:
        place.run("big", "write")
        place.run("big", "read")


class MemoryGroup:
    """A control group with a limit, for all that a place starts."""

    KINDS = {"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}

    def __init__(self, place, mib):
        self.place, self.path = place, None
        for mount, limit in self.KINDS.items():
            if not (pathlib.Path(mount) / "cgroup.procs").exists():
                continue
            path = pathlib.Path(mount) / f"diapause-test-{os.getpid()}-{mib}"
            try:
                path.mkdir()
                self.path = path
                (path / limit).write_text(str(mib << 20))
                return
            except OSError:
                self.__exit__()
        raise Skip("this machine lets nobody here make a control group with a limit of memory")

    def __enter__(self):
        enter = f'echo $$ > {self.path}/cgroup.procs && exec "$@"'
        self.place.launcher = ["sh", "-c", enter, "sh", *self.place.launcher]
        return self

    def __exit__(self, *_):
        if self.path is not None:
            for run in self.place.runs:
                run.end()
            wait_until(self.is_gone, f"{self.path} to be empty")

    def is_gone(self):
        try:
            self.path.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True


def keeps_a_program_alive_that_has_little_memory(site, mib=48):
    """The program and two versions of it fit, or hardly, or not."""
    for limit in (4, 5, 6):
        with Place(site, ranks=2, ranks_per_node=2, **{"async": {"mode": "thread"}}) as place:
            with MemoryGroup(place, limit * mib + 64):
                place.run("limited", "write", mib, 1, 6, messages=[""])


def keeps_a_program_alive_that_lost_a_node_and_has_little_memory(site, mib=32):
    """Its data come back; what was lost is put back if there is room."""
    for limit in (13, 16):
        with Place(site, ranks=4, **{"async": {"mode": "thread"}, "level1": {"keep": 1},
                                     "level3": {"keep": 1}}) as place:
            with MemoryGroup(place, limit * mib + 128):
                place.run("limited", "write", mib, 3, 6, messages=[""])
                lost = next(place.memory.glob("limited-*")) / "node1"
                shutil.rmtree(lost)
                place.run("limited", "read", mib, 3, 6, messages=[""])


def versions_that_hold(place):
    """Of the program `limited`: those that its ledger has without an error."""
    return [event["version"] for event in place.events("limited", "checkpoint")
            if event["error"] is None]


def keeps_a_program_alive_with_room_for_its_versions_and_no_more(site, mib=256, limit=1600):
    """Two versions fit beside the program; a third, captured before one goes, does not."""
    settings = {"async": {"mode": "thread"}, "local": {"path": ""}}
    with Place(site, ranks=2, ranks_per_node=2, **settings) as place:
        with MemoryGroup(place, limit):
            place.run("limited", "write", mib, 1, 6, messages=[""])
            expect(versions_that_hold(place), "no version found room")
            place.run("limited", "read", mib, 1, 6, messages=[""])


def takes_every_version_of_a_program_at_60_percent_of_its_limit(site, mib=192):
    """What memory has no room for goes to the local disk."""
    limit = round(2 * mib / 0.6)
    with Place(site, ranks=2, ranks_per_node=2, **{"async": {"mode": "thread"}}) as place:
        with MemoryGroup(place, limit):
            place.run("limited", "write", mib, 1, 6, messages=[""])
            expect_equal(versions_that_hold(place), [1, 2, 3, 4, 5, 6], "versions that hold")
            place.run("limited", "read", mib, 1, 6, messages=[""])


def keeps_a_program_of_2_times_2_3_gib_alive_that_lost_a_node(site, mib=2355):
    """With 2.2 times the data beside the program."""
    limit = round(3.2 * 2 * mib) + 128
    available_kib = next(int(line.split()[1]) for line in open("/proc/meminfo")
                         if line.startswith("MemAvailable"))
    if available_kib >> 10 < limit + 1024:
        raise Skip(f"needs {limit + 1024} MiB of memory")
    settings = {"async": {"mode": "thread"}, "local": {"path": ""}}
    with Place(site, ranks=2, **settings) as place:
        with MemoryGroup(place, limit):
            place.run("limited", "write", mib, 2, 1, messages=[""])
            shutil.rmtree(next(place.memory.glob("limited-*")) / "node1")
            place.run("limited", "read", mib, 2, 1, messages=[""])
            expect(not any(event["error"] for event in place.events("limited", "checkpoint")),
                   "the redundancy that was lost was not put back")


# A restart from an older version begins another history, which is told at the next one.
OF_ANY_ORDER = ("has two histories", "MPI_THREAD_MULTIPLE")
ANY_SETTINGS = ({}, {"async": {"mode": "thread"}},
                {"async": {"mode": "thread"}, "capture": {"strategy": "copy-on-write"}},
                {"async": {"mode": "thread"}, "capture": {"strategy": "incremental"}},
                {"async": {"mode": "thread"}, "codec": {"method": "lz4"}},
                {"async": {"mode": "thread"}, "global": {"mode": "direct"}})


def finds_what_it_stored_whatever_the_order_of_calls(site):
    for seed, settings in enumerate(ANY_SETTINGS):
        with Place(site, ranks=3, **settings) as place:
            place.run("any_order", seed, 80, place.path, messages=OF_ANY_ORDER)


def finds_what_it_stored_when_it_was_killed_in_any_call(site, kills=4):
    chance = random.Random(7)
    with Place(site, ranks=3, **ANY_SETTINGS[2]) as place:
        certain = place.path / "certain"
        newest = lambda: int(certain.read_text()) if certain.exists() else 0
        for seed in range(kills):
            before = newest()
            run = place.start("any_order", seed, FOREVER, place.path)
            run.wait_for(lambda: newest() > before + chance.randint(2, 20), "a version")
            run.kill("any_order", rank=chance.randrange(3))
            run.be_killed()
        place.run("any_order", kills, 20, place.path, messages=OF_ANY_ORDER)
