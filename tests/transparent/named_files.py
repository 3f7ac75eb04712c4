"""Files that belong to a job by their names: programs open and close them at each step."""

import shutil

import nodes
from support import Job, must, until

# Both programs take 30 steps. They hold at steps 10 and 20 until the test lets them go on.
SHELL = r"""
hold() { echo "$step"; while [ ! -e "$TRANSPARENT_GATE.$step" ]; do sleep 0.01; done; }
mkdir -p out/deep
step=0
while [ "$step" -lt 30 ]; do
  step=$((step + 1))
  echo "step $step" >> energies.log
  echo "step $step" >> out/deep/trace
  if [ "$step" = 10 ] || [ "$step" = 20 ]; then hold; fi
done
"""

PYTHON = """
import os, time

def append(name, step):
    with open(name, "a") as file:
        file.write(f"step {step}\\n")

os.umask(0o027)
with open("large", "w") as large:
    large.truncate(65 << 20)
append("early", 0)
append("input", 0)
os.chmod("early", 0o640)
os.utime("early", ns=(5, 1_000_000_000_123_456_789))
kept_open = open("kept_open", "a")
held_to_read = open("input")
for step in range(1, 31):
    append("energies.log", step)
    append("large", step)
    print("kept", step, file=kept_open, flush=True)
    with open("state", "w") as state:
        state.write("x" * (100 - step))
    if step > 10:
        append("late", step)
    if step == 15:
        os.remove("early")
        os.remove("input")
        os.makedirs("new", exist_ok=True)
        append("new/late", step)
    if step in (10, 20):
        print(step, flush=True)
        while not os.path.exists(f"{os.environ['TRANSPARENT_GATE']}.{step}"):
            time.sleep(0.01)
print(held_to_read.read(), flush=True)
"""


def tell(path):
    """What a file is: of a large one, its length and its end."""
    content = path.read_bytes()
    return len(content), content[-300:], path.stat().st_mode & 0o7777


class Steps:
    """A command, and the files that it leaves in its directory undisturbed."""

    def __init__(self, place, command):
        self.place = place
        self.command = command
        self.open_gates(10, 20)
        status, output, errors = place.run(command)
        must(status == 0, f"undisturbed, it ended with {status}: {output}{errors}")
        self.reference = self.files()
        self.begin_anew()

    def gate(self, step):
        return self.place.gate.with_name(f"{self.place.gate.name}.{step}")

    def open_gates(self, *steps):
        for step in steps:
            self.gate(step).touch()

    def begin_anew(self):
        for step in (10, 20):
            self.gate(step).unlink(missing_ok=True)
        for path in self.place.work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for tier in ("memory", "global"):
            shutil.rmtree(self.place.root / tier, ignore_errors=True)

    def files(self):
        work = self.place.work
        return {str(path.relative_to(work)): tell(path) for path in work.rglob("*")
                if path.is_file() and "diapause" not in path.relative_to(work).parts}

    def launch(self, *options, under=()):
        job = Job(self.place, "launch", "--name", "job", *options, "--", *self.command, under=under)
        job.wait_for_lines(1)
        return job

    def is_killed(self, job):
        """At step 20, after a checkpoint at step 10."""
        printed = job.output()
        job.checkpoint("--level", "4")
        self.goes_on_and_is_killed(job, printed.count("\n") + 1)

    def goes_on_and_is_killed(self, job, lines):
        self.open_gates(10)
        job.wait_for_lines(lines)
        job.kill()

    def restart(self, *words, under=()):
        return Job(self.place, "restart", "job", *words, under=under)

    def ends_well(self, job, but=()):
        """Returns what it told, and the files that were not there undisturbed."""
        self.open_gates(10, 20)
        status, errors = job.wait()
        must(status == 0, f"ended with {status}: {job.output()}{errors}")
        files = self.files()
        for name, told in self.reference.items():
            must(name in but or files.get(name) == told,
                 f"{name} is {files.get(name)} instead of {told}: {errors}")
        return errors, sorted(set(files) - set(self.reference))


def appended(place, options):
    """A shell script appends to files; it is killed and restarted twice, from one version."""
    del options
    for capture in ("copy", "copy-on-write", "incremental"):
        place.capture = capture
        steps = Steps(place, ["sh", "-c", SHELL])
        job = steps.launch("--files", "energies.log", "--files", "out")
        steps.is_killed(job)
        job = steps.restart()
        steps.goes_on_and_is_killed(job, 1)
        errors, more = steps.ends_well(steps.restart())
        must(not more, f"there are {more} as well")
        must("energies.log" not in errors and "not part of it" not in errors,
             f"it warns of files that it holds: {errors}")
        steps.begin_anew()


def named_files(place, options):
    """Files that are written, removed and made after a checkpoint, and a larger one, in a directory
    that has a tier of Diapause, too. The restarted job goes on recording them."""
    del options
    place.settings = {"DIAPAUSE_GLOBAL_PATH": str(place.work / "diapause")}
    steps = Steps(place, ["python3", "-c", PYTHON])
    job = steps.launch("--files", ".")
    steps.is_killed(job)
    early = place.work / "early"
    must(not early.exists(), "the program has not removed a file")
    job = steps.restart()
    steps.goes_on_and_is_killed(job, 1)
    aside = (place.work / "late.undone").read_text()
    must(aside.count("\n") == 10, f"what was put aside is {aside}")
    steps.gate(10).unlink()
    job = steps.restart()
    answer = job.checkpoint("--level", "4")
    must("version 2" in answer, answer)
    must(early.stat().st_mtime_ns == 1_000_000_000_123_456_789, "a file has another time")
    must(early.stat().st_mode & 0o7777 == 0o640, "a file has another mode")
    steps.goes_on_and_is_killed(job, 1)
    errors, more = steps.ends_well(steps.restart())
    must(more == ["late.undone", "late.undone.2", "late.undone.3", "new/late.undone",
                  "new/late.undone.2", "new/late.undone.3"], f"there are {more} as well")
    must("renamed by adding .undone: " in errors and str(place.work / "late") in errors,
         f"it does not tell what was renamed: {errors}")
    must(not list((place.work / "diapause").rglob("*.undone")), "a tier lost files")


def unfit_files(place, options):
    """A file that cannot be what it was: the restart is refused, and nothing is touched."""
    del options
    steps = Steps(place, ["python3", "-c", PYTHON])
    job = steps.launch("--files", "*")
    steps.is_killed(job)
    large, state = place.work / "large", place.work / "state"
    before = state.read_bytes()

    def must_refuse(*why):
        status, _, errors = place.verb("restart", "job")
        must(status == 125 and all(text in errors for text in why), f"{status} {errors}")
        must(state.read_bytes() == before, "a refused restart has written to a file")

    large.rename(place.work / "kept")
    must_refuse(str(large), "is gone", "length alone")
    large.write_bytes(b"short")
    must_refuse(str(large), "and has 5 now")
    (place.work / "kept").rename(large)
    (place.work / "energies.log").rename(place.work / "other")
    (place.work / "energies.log").mkdir()
    must_refuse("energies.log", "is a directory")
    (place.work / "energies.log").rmdir()
    steps.ends_well(steps.restart())


def unnamed_files(place, options):
    """Files that do not belong to a job: one line names those that have changed, and no others."""
    del options
    place.settings = {"DIAPAUSE_GLOBAL_PATH": str(place.work / "diapause")}
    steps = Steps(place, ["python3", "-c", PYTHON])
    job = steps.launch()
    (place.work / "unchanged").touch()
    steps.is_killed(job)
    for name in ("input", "early"):
        (place.work / name).write_text("step 0\n")
    shutil.rmtree(place.work / "new")
    errors, _ = steps.ends_well(steps.restart(), but=("energies.log", "late", "large"))
    told = [line for line in errors.splitlines() if "not part of it" in line]
    work = place.work
    names = ", ".join(str(work / name) for name in ("early", "energies.log", "input"))
    must(len(told) == 1 and f"not part of it: {names} and 3 more; " in told[0],
         f"it does not tell what has changed: {errors}")


def told_to_files(place, options):
    """What `launch` and `restart` tell goes to files that match. It stays as it is."""
    del options

    def into(name):
        return "sh", "-c", f'exec "$@" 2> {name}', "sh"

    steps = Steps(place, ["sh", "-c", SHELL])
    job = steps.launch("--files", ".", under=into("launched"))
    (place.work / "launched").write_text("told before\n")
    job.checkpoint()
    with open(place.work / "launched", "a") as launched:
        launched.write("told later\n")
    steps.goes_on_and_is_killed(job, 2)
    _, more = steps.ends_well(steps.restart(under=into("restarted")))
    must(more == ["launched", "restarted"], f"there are {more} as well")
    told = {name: (place.work / name).read_text() for name in more}
    must(told == {"launched": "told before\ntold later\n", "restarted": ""}, f"they hold {told}")


# On the second node, a program keeps one file open, and appends to another at each step.
OTHER = r"""
exec 9>> kept
hold() { while [ ! -e "$TRANSPARENT_GATE.$step" ]; do sleep 0.01; done; }
step=0
while [ "$step" -lt 30 ]; do
  step=$((step + 1))
  echo "step $step" >&9
  echo "step $step" >> other.log
  if [ "$step" = 10 ] || [ "$step" = 20 ]; then touch other.$step; hold; fi
done
"""

def files_on_nodes(place, options):
    """Two nodes that see the same files, of which the second has one open."""
    del options
    work = place.work
    script = (f"test -n \"$DIAPAUSE_RUN_ON\" || DIAPAUSE_RUN_ON='sh {place.root}/here';"
              f"$DIAPAUSE_RUN_ON node1 \"cd {work}; TRANSPARENT_GATE=$TRANSPARENT_GATE;"
              f" . {place.root}/other\" & {SHELL} wait")
    (place.root / "here").write_text("sh -c \"$2\"\n")
    (place.root / "other").write_text(OTHER)
    steps = Steps(place, ["sh", "-c", script])
    on = ("--emulated-nodes", "2")
    job = steps.launch(*on, "--files", ".")

    def wait_for(name):
        until((work / name).exists, f"there is no {name}")

    def is_killed(job):
        wait_for("other.10")
        job.checkpoint("--level", "4")
        steps.open_gates(10)
        job.wait_for_lines(2)
        wait_for("other.20")
        nodes.OnNodes(place, 2).kill(job)

    is_killed(job)
    errors, more = steps.ends_well(steps.restart(*on))
    must(more == ["other.20.undone"], f"there are {more} as well: {errors}")
    steps.begin_anew()
    is_killed(steps.launch(*on))
    errors, _ = steps.ends_well(steps.restart(*on), but=("energies.log", "other.log",
                                                         "out/deep/trace"))
    must(f"{work}/other.log" in errors and f"{work}/kept" not in errors and
         errors.count("not part of it") == 1, f"it does not tell what has changed: {errors}")


TESTS = {
    "appended": appended, "named_files": named_files, "unfit_files": unfit_files,
    "unnamed_files": unnamed_files, "told_to_files": told_to_files,
    "files_on_nodes": files_on_nodes,
}
