"""Shared by all tests of launched jobs: places, jobs and scenarios."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import nodes

SKIPPED = 77
LIMIT_S = 120
BEFORE_GATE = 46  # lines that step() of programs/step.h prints before it waits for the gate
NOBODY = 65534


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def must(condition, text):
    if not condition:
        raise Failed(text)


def be_patient():
    """For programs that compute, and may have to do so beside others."""
    global LIMIT_S
    LIMIT_S = 600


def until(condition, text):
    end = time.monotonic() + LIMIT_S
    while not condition():
        must(time.monotonic() < end, text)
        time.sleep(0.02)


class Place:
    """A directory of its own for tiers and for what the job writes, owned by the
    user that it runs as."""

    def __init__(self, diapause, user):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="diapause-transparent-"))
        self.diapause = diapause
        self.user = user
        self.started = []
        self.capture = "auto"
        self.settings = {}
        self.input = os.devnull  # what is started next has it as standard input
        self.work = self.root / "work"
        self.gate = self.root / "gate"
        self.work.mkdir()
        for path in (self.root, self.work):
            os.chown(path, user, -1)
        # Another user may not be allowed to read the build.
        self.command = self.root / "diapause"
        shutil.copy(diapause, self.command)
        self.command.chmod(0o755)

    def own_copy(self, program):
        path = self.root / "programs" / pathlib.Path(program).name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(program, path)
        path.chmod(0o755)
        return str(path)

    def environment(self):
        plain = {key: value for key, value in os.environ.items() if not key.startswith("DIAPAUSE_")}
        return (plain | {"TRANSPARENT_GATE": str(self.gate),
                         "TMPDIR": str(self.work),
                         "HOME": str(self.work),
                         "OMPI_ALLOW_RUN_AS_ROOT": "1",
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                         "DIAPAUSE_MEMORY_PATH": str(self.root / "memory"),
                         "DIAPAUSE_GLOBAL_PATH": str(self.root / "global"),
                         "DIAPAUSE_ENERGY_METERS": "off",
                         "DIAPAUSE_LOCK_WAIT_S": "0",
                         "DIAPAUSE_CAPTURE_STRATEGY": self.capture} | self.settings)

    def image_bytes(self):
        """Returns the size of the files in the memory tier together."""
        def sizes():
            for path in self.root.glob("memory/**/*"):
                with contextlib.suppress(FileNotFoundError):
                    yield path.stat().st_size
        return sum(sizes())

    def start(self, words, output):
        credentials = ({"user": self.user, "group": self.user, "extra_groups": []} if self.user
                       else {})
        with open(self.input) as given:
            process = subprocess.Popen([str(word) for word in words], stdin=given, stdout=output,
                                       stderr=subprocess.PIPE, cwd=self.work,
                                       env=self.environment(), text=True, **credentials)
        self.started.append(process)
        return process

    def run(self, words):
        """(status, output, errors)"""
        path = self.root / "output"
        with open(path, "w") as output:
            started = self.start(words, output)
            _, errors = started.communicate(timeout=LIMIT_S)
        return started.returncode, path.read_text(), errors

    def verb(self, *words):
        return self.run([self.command, *words])

    def remove(self):
        """With what a test that failed has left running: the first process of a job is
        the child of its agent."""
        for process in self.started:
            if process.poll() is not None:
                continue
            # The process may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                ours = [*nodes.children_of(process.pid), process.pid]
                ours += [pid for child in ours[:-1] if nodes.is_agent(child)
                         for pid in nodes.children_of(child)]
                for pid in ours:
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.root, ignore_errors=True)


class Job:
    """One that was started by `launch` or `restart`, and goes on until it is waited for."""

    def __init__(self, place, *words, under=()):
        self.place = place
        self.path = place.root / f"output-{time.monotonic_ns()}"
        with open(self.path, "w") as output:
            self.process = place.start([*under, place.command, *words], output)

    def output(self):
        return self.path.read_text()

    def wait_for_lines(self, count):
        end = time.monotonic() + LIMIT_S
        while self.output().count("\n") < count:
            if self.process.poll() is not None:
                raise Failed(f"ended early: {self.output()}{self.process.stderr.read()}")
            must(time.monotonic() < end, "prints nothing")
            time.sleep(0.01)

    def checkpoint(self, *options):
        end = time.monotonic() + LIMIT_S
        status, output, errors = self.place.verb("checkpoint", "job", *options)
        # One that is being restarted is not there yet.
        while "no job 'job'" in errors and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
            status, output, errors = self.place.verb("checkpoint", "job", *options)
        if status != 0 and self.process.poll() is not None:
            errors += f"it has ended: {self.process.stderr.read()}"
        must(status == 0, f"no checkpoint: {errors} {self.output()}")
        return output

    def kill(self):
        """Its first process, and so all of it at once. Returns what was said of errors."""
        children = nodes.children_of(self.process.pid)
        must(len(children) == 1, f"the agent has {len(children)} children: {self.output()}")
        os.kill(children[0], signal.SIGKILL)
        status, errors = self.wait()
        must(status == 128 + signal.SIGKILL, f"killed, it ended with {status}")
        return errors

    def wait(self):
        _, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, errors


def first_difference(text, reference):
    for number, (one, other) in enumerate(zip(text.splitlines(), reference.splitlines())):
        if one != other:
            return f"line {number}: {one!r} instead of {other!r}"
    return f"{text.count(chr(10))} lines instead of {reference.count(chr(10))}"


class Scenario:
    """A command, and what it does undisturbed."""

    def __init__(self, place, command, lines=8):
        self.place = place
        self.command = command
        self.lines = lines
        self.reached = 0  # lines that a job had printed when it was killed
        self.place.gate.touch()
        self.status, self.reference, errors = place.run(command)
        must(self.status in (0, 7),
             f"undisturbed, it ended with {self.status}: {self.reference}{errors}")

    def launch(self):
        """A job that does not end before ends_well()."""
        self.place.gate.unlink(missing_ok=True)
        return Job(self.place, "launch", "--name", "job", "--", *self.command)

    def wait_for_more(self, job, killed):
        """Waits for the next lines of a job that goes on where the killed one was checkpointed. On
        a busy machine that one may have come near the gate before, or to it: then there are fewer
        lines to wait for, or none."""
        whole = self.reference.splitlines()
        printed = killed.output().rpartition("\n")[0].splitlines()
        # When a job is killed, calls of its last processes may fail, and they say so.
        printed = [line for line in printed if line in whole]
        if printed:
            self.reached = whole.index(printed[-1]) + 1
        job.wait_for_lines(max(0, min(self.lines, BEFORE_GATE - self.reached)))

    def ends_well(self, job, printed, begins_anywhere=False):
        self.place.gate.touch()
        status, errors = job.wait()
        is_same = (self.reference.endswith(printed()) if begins_anywhere
                   else printed() == self.reference)
        must(is_same, first_difference(printed(), self.reference) + errors)
        must(status == self.status, f"ended with {status} instead of {self.status}: {errors}")

    def goes_on(self):
        job = self.launch()
        job.wait_for_lines(self.lines)
        job.checkpoint()
        job.checkpoint()
        self.ends_well(job, job.output)

    def is_restarted(self, times):
        job = self.launch()
        job.wait_for_lines(self.lines)
        for _ in range(times):
            job.checkpoint("--level", "4")
            job.kill()
            must(self.reference.startswith(job.output()) or self.reference.find(job.output()) >= 0,
                 f"before it was killed: {job.output()}")
            job = Job(self.place, "restart", "job")
        self.ends_well(job, job.output, begins_anywhere=True)

    def all(self):
        self.goes_on()
        self.is_restarted(2)


BIG = """
import os, time
memory = bytearray(os.urandom(1 << 20) * 192)
print("ready", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
print("has", sum(memory[::4096]) == 192 * sum(memory[:1 << 20:4096]), flush=True)
"""


def is_open_mpi(mpirun):
    return "Open" in subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout


def one_on_each_node(mpirun):
    """The options of an MPI's launcher that give each rank the next node."""
    return ["--map-by", "node"] if is_open_mpi(mpirun) else ["-ppn", "1"]


def damage(image):
    """Changes one byte in the middle of a file, which is in memory of the job."""
    with open(image, "r+b") as file:
        file.seek(image.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 4]))


def damage_all(directory):
    """All images in a tier."""
    images = [path for path in directory.rglob("*") if path.is_file()
              and path.stat().st_size > 1 << 20]
    must(images, f"{directory} has no images")
    for image in images:
        damage(image)
