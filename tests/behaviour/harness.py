"""Jobs of the tests: their directories, how they are started, killed and looked at afterwards."""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

FOREVER = 1_000_000_000
LIMIT_S = 120  # for one run; a healthy one takes a second or two

# Open MPI refuses to run as root, as containers do, and with more ranks than cores, unless told;
# and it binds ranks to cores, which makes those of jobs that run side by side wait for each other.
# Both MPIs look for messages without end: on a busy machine each look of a rank that waits would
# cost the others a time slice.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none",
                   "OMPI_MCA_mpi_yield_when_idle": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
# MPICH's launcher prints this when a rank was killed.
LAUNCHER_REPORT = b"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"


class Failure(Exception):
    """Says what is not as it should be."""


class Skip(Exception):
    """Says why a test cannot be run here."""


SKIPPED = 77  # exit status of a test that cannot be made here


def newest_version(place, job):
    versions = [event["version"] for event in place.events(job, "checkpoint")]
    return max(versions, default=0)


def killed_and_continued(site, command, environment={}, ranks=3, **config):
    """A solver that is to compute for ever is killed, goes on, and ends with the bytes of
    one that was left alone.

    `command(name, iterations, result)` gives the words that start it."""
    with Place(site, ranks=ranks, level1={"every_calls": 40}, **config) as place:
        kill_twice_and_compare(place, command, environment, more_steps=417)


def kill_twice_and_compare(place, command, environment, more_steps):
    """Kills "killed" twice, and compares what it ends with, `more_steps` later, with what "alone"
    does. Returns at which step."""
    for _ in range(2):
        before = newest_version(place, "killed")
        run = place.start(*command("killed", FOREVER, "never"), environment=environment)
        run.wait_for(lambda: newest_version(place, "killed") > before + 100,
                     "versions of a running job")
        run.kill("killed", rank=place.ranks - 1)
        run.be_killed()
    steps = newest_version(place, "killed") + more_steps  # what was in flight may be restored too
    place.run(*command("killed", steps, "killed.raw"), environment=environment)
    place.run(*command("alone", steps, "alone.raw"), environment=environment)
    restarts = [event["version"] for event in place.events("killed", "restart")]
    expect(len(restarts) == 2 and min(restarts) > 100, f"restarted from {restarts}")
    killed, alone = ((place.path / f"{name}.raw").read_bytes() for name in ("killed", "alone"))
    expect(len(alone) > 0 and killed == alone, "the killed job ended with another result")
    return steps


def parser_of(about, tests):
    """Returns the parser of a script's command line: a test, where its programs and its work lie,
    and how ranks are started."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=tests, metavar="test")
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--mpiexec")
    return parser


def exit_status_of(test, site):
    """Returns the exit status of a script of tests, and says the reason: 0 if all is as it should
    be, 1 if it is not, and SKIPPED if it cannot be tested here."""
    site.work.mkdir(parents=True, exist_ok=True)
    site.work, site.programs = site.work.resolve(), site.programs.resolve()
    try:
        test(site)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except Failure as failure:
        print(failure)
        return 1
    return 0


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what}:\n  found  {found!r}\n  wanted {wanted!r}")


def wait_until(condition, what, limit_s=LIMIT_S):
    """Returns the result of `condition` once it is true; it is asked every few milliseconds."""
    end_s = time.monotonic() + limit_s
    while True:
        result = condition()
        if result:
            return result
        expect(time.monotonic() < end_s, f"waited {limit_s} s for {what}")
        time.sleep(0.003)


class Run:
    """A started job."""

    def __init__(self, place, command, ranks, extra_environment):
        """Without a launcher if `ranks` is 0."""
        self.place = place
        self.program = pathlib.Path(command[0]).name
        number = next(place.run_numbers)
        self.stdout, self.stderr = (place.path / f"run{number}.{name}"
                                    for name in ("stdout", "stderr"))
        environment = {key: value
                       for key, value in os.environ.items() if not key.startswith("DIAPAUSE_")}
        environment |= MPI_ENVIRONMENT | {"DIAPAUSE_CONFIG": str(place.config)} | extra_environment
        environment = {key: value for key, value in environment.items() if value is not None}
        with open(self.stdout, "wb") as out, open(self.stderr, "wb") as err:
            launcher = [*place.launcher, "-n", str(ranks)] if ranks else []
            self.process = subprocess.Popen([*launcher, *map(str, command)], cwd=place.path,
                                            env=environment,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            start_new_session=True)

    def complaint(self, text):
        return Failure(f"{self.program}: {text}\n{self.stderr.read_text(errors='replace').strip()}")

    def wait(self):
        """Returns the exit status. In any case nothing may be on standard output."""
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise self.complaint(f"did not end within {LIMIT_S} s") from None
        printed = self.stdout.read_bytes()
        if printed and not (status != 0 and LAUNCHER_REPORT in printed):
            raise self.complaint(f"printed {printed[:200]!r}")
        return status

    def succeed(self, messages=()):
        """Ends with 0, and every line on standard error matches one of `messages`."""
        status = self.wait()
        if status != 0:
            raise self.complaint(f"ended with {status}")
        for line in self.stderr.read_text(errors="replace").splitlines():
            if not any(re.search(message, line) for message in messages):
                raise self.complaint("said something unexpected:")

    def be_killed(self):
        if self.wait() == 0:
            raise self.complaint("ended well, but should have been killed")

    def wait_for(self, condition, what):
        def ended_or_condition():
            if self.process.poll() is not None and not condition():
                raise self.complaint(f"ended with {self.process.returncode} before {what}")
            return condition()
        return wait_until(ended_or_condition, what)

    def ranks_of(self, job, node=None):
        """(rank, process id) of all ranks or those of one node."""
        found = []
        for file in self.place.memory.glob(f"{job}-*/{node or '*'}/ranks"):
            found += [tuple(map(int, line.split())) for line in file.read_text().splitlines()]
        return found

    def kill(self, job, node=None, rank=None):
        """SIGKILL for all ranks of a node, or for one rank."""
        self.kill_processes([pid
                             for number, pid in self.ranks_of(job, node) if rank in (None, number)])

    def kill_other_than_ranks(self, job):
        """SIGKILL for a process of the program that is no rank of the job:
        one that is dedicated."""
        ranks = {pid for _, pid in self.ranks_of(job)}
        pids = {int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")}
        self.kill_processes([pid for pid in pids - ranks if self.is_mine(pid)][:1])

    def is_mine(self, pid):
        try:
            of = pathlib.Path(f"/proc/{pid}")
            variables = (of / "environ").read_bytes().split(b"\0")
            is_here = f"DIAPAUSE_CONFIG={self.place.config}".encode() in variables
            return is_here and (of / "comm").read_text().strip() == self.program[:15]
        except OSError:  # it has ended, or is somebody else's
            return False

    def kill_processes(self, victims):
        expect(victims, f"{self.program}: no ranks to kill")
        for number, pid in enumerate(victims):
            if self.is_mine(pid):
                os.kill(pid, signal.SIGKILL)
            elif number == 0 or not has_ended(pid):
                # A launcher ends the others when it sees the first one killed.
                raise self.complaint(f"process {pid} is none of its ranks")

    def end(self):
        """Leaves nothing behind: launchers end their ranks when they are told to end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def has_ended(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


class Place:
    """The directories and settings of one or more jobs. Everything is gone when it is left.

    Unless `config` says otherwise, checkpoints are done when their calls return: what a program
    finds then is certain."""

    def __init__(self, site, ranks=4, ranks_per_node=1, tier="memory", **config):
        self.site = site
        self.launcher = [site.mpiexec]
        self.ranks = ranks
        self.run_numbers = itertools.count(1)
        self.runs = []
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="place-", dir=site.work))
        self.memory = pathlib.Path(tempfile.mkdtemp(prefix="diapause-behaviour-", dir="/dev/shm"))
        self.local, self.global_ = self.path / "local", self.path / "global"
        self.config = self.path / "config.toml"
        self.trace = self.path / "trace"
        levels = {f"level{level}": {"tier": tier} for level in (1, 2, 3)}
        self.configure({"node": {"ranks_per_node": ranks_per_node},
                        "memory": {"path": str(self.memory)},
                        "local": {"path": str(self.local)}, "global": {"path": str(self.global_)},
                        "async": {"mode": "off"}}, levels, config)

    def configure(self, *tables):
        """Writes the configuration anew, of tables {section: {key: value}}; later ones
        count. "" is no section."""
        merged = {"": {}}
        for table in tables:
            for section, entries in table.items():
                merged.setdefault(section, {}).update(entries)
        self.settings = merged
        lines = []
        for section, entries in merged.items():
            lines += [f"[{section}]"] if section else []
            lines += [f"{key} = {json.dumps(value)}" for key, value in entries.items()]
        self.config.write_text("\n".join(lines) + "\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for run in self.runs:
            run.end()
        for path in (self.path, self.memory):
            shutil.rmtree(path, ignore_errors=True)

    def start(self, program, *options, ranks=None, environment={}):
        ranks = self.ranks if ranks is None else ranks
        run = Run(self, [self.site.programs / program, *options], ranks, environment)
        self.runs.append(run)
        return run

    def run(self, program, *options, ranks=None, messages=(), environment={}):
        self.start(program, *options, ranks=ranks, environment=environment).succeed(messages)

    def compute(self, program, *options, messages=(), environment={}):
        """Runs a stepping program to its end; what it computed."""
        result = self.path / "result"
        result.unlink(missing_ok=True)
        self.run(program, "--result", result, "--trace", self.trace, *options, messages=messages,
                 environment=environment)
        return result.read_text()

    def events(self, job, kind):
        """Returns the events of the job's ledger, without a line that is being written or
        that a kill cut short."""
        found = []
        for ledger in self.global_.glob(f"{job}-*/ledger.jsonl"):
            for line in ledger.read_text(errors="replace").splitlines():
                try:
                    event = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if event["event"] == kind:
                    found.append(event)
        return found

    def traces(self):
        """For each rank, its lines as (event, version, level, flag); forgets them."""
        found = {}
        for path in sorted(self.path.glob("trace.*")):
            lines = [line.split() for line in path.read_text().splitlines()]
            found[int(path.suffix[1:])] = [(line[0], *map(int, line[1:])) for line in lines]
            path.unlink()
        return found

    def agreed_trace(self):
        """Returns what all ranks have traced; it must be the same on all of them."""
        traces = self.traces()
        expect(len(traces) == self.ranks, f"{len(traces)} ranks left a trace")
        for rank, trace in traces.items():
            expect_equal(trace, traces[0], f"trace of rank {rank} and of rank 0")
        return traces[0]

    def root(self, tier):
        return {"memory": self.memory, "local": self.local, "global": self.global_}[tier]

    def files(self, tier, name, version=None, node=None):
        """The files of that name of a version (None: of all) on a node, or in the global tier."""
        parts = ["*-*"] + ([] if tier == "global" else [node or "*"]) + [
            f"v{version}-*" if version else "v*", name]
        return sorted(self.root(tier).glob("/".join(parts)))


def flip_byte(path, offset=None):
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        offset = size // 2 if offset is None else offset
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))
