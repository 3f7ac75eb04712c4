"""Measures how long jobs that know nothing of checkpoints stand still for one, and what it
costs them to be launched."""

import mmap
import os
import pathlib
import re
import signal
import statistics
import subprocess
import time

# What a launched program takes differs from a plain one by less than two of the same differ from
# each other, so there are many.
PAIRS = 6
WARM_UPS = 2
BLOCK = 16 << 20


def read_raw(path):
    """Seconds in which the file is read."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    block = mmap.mmap(-1, BLOCK)
    begin_s = time.monotonic()
    while os.readv(file, [block]) == BLOCK:
        pass
    seconds = time.monotonic() - begin_s
    os.close(file)
    return seconds


def write_raw(path, mib):
    """Seconds in which so many MiB are written to a new file and synced."""
    block = mmap.mmap(-1, BLOCK)
    block.write(os.urandom(BLOCK))
    begin_s = time.monotonic()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT | os.O_EXCL, 0o600)
    os.posix_fallocate(file, 0, mib << 20)
    for _ in range(max(mib * (1 << 20) // BLOCK, 1)):
        os.writev(file, [block])
    os.fsync(file)
    seconds = time.monotonic() - begin_s
    os.close(file)
    path.unlink()
    return seconds


def drop_from_memory(directory):
    """Lets the kernel forget the files there, so that they are read from the disk."""
    for path in directory.rglob("*"):
        if not path.is_file():
            continue
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def kill(job):
    """Kills the job by the default action of SIGTERM. It has not come to its end then,
    and can be restarted."""
    job.send_signal(signal.SIGTERM)
    job.wait()


class Transparent:
    def __init__(self, bench, build, figure):
        self.bench = bench
        self.figure = figure
        self.diapause = build / "src" / "diapause"
        self.heat = build / "apps" / "heat" / "heat_plain"
        self.holder = build / "bench" / "bench_holder"
        self.coordination = build / "bench" / "bench_coordination"

    def all(self):
        yield ("transparent_stop",
               lambda: self.stop_over_memcpy("transparent_stop", "copy-on-write", 0.5))
        yield "transparent_direct", lambda: self.stop_over_memcpy("transparent_direct", "copy", 4)
        yield "transparent_incremental", self.incremental_stop
        yield "transparent_small", self.small_stop
        yield "transparent_restart", self.eager_restart
        yield "transparent_mapped", self.mapped_restart
        yield "transparent_flush", self.flush
        yield "transparent_running", self.running
        yield "transparent_computing", self.computing
        yield "transparent_launch", self.launch
        yield "transparent_agents", self.agents
        yield "transparent_barrier", self.barrier

    def environment(self, name, **settings):
        directory = self.bench.disk / name
        directory.mkdir(exist_ok=True)
        return self.bench.environment(name, DIAPAUSE_ENERGY_METERS="off", **settings)

    def stops(self, name, mib, strategy, between, holds="hold"):
        """Seconds that a process of so many MiB stands still for checkpoints of level 1 in memory;
        `between` runs after each."""
        environment = self.environment(name, DIAPAUSE_CAPTURE_STRATEGY=strategy)
        job = subprocess.Popen([self.diapause, "launch", "--name", name, "--", self.holder, holds,
                                str(mib)], text=True, env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
        try:
            job.stdout.readline()
            seconds = []
            for run in range(WARM_UPS + self.bench.options.runs):
                if holds == "change":
                    job.stdin.write("\n")
                    job.stdin.flush()
                    job.stdout.readline()
                stopped = self.checkpoint(name, environment)
                if run >= WARM_UPS:
                    seconds.append(stopped)
                    between()
            return seconds
        finally:
            kill(job)

    def checkpoint(self, name, environment, level=1):
        """Returns for how many seconds the job stood still."""
        said = subprocess.run([self.diapause, "checkpoint", name, "--level", str(level)],
                              env=environment, check=True, capture_output=True, text=True).stdout
        return float(re.search(r"stood still for ([0-9.]+) ms", said)[1]) / 1e3

    def incremental_stop(self):
        figure = self.stop_over_memcpy("transparent_incremental", "incremental", 0.3, "change")
        figure.name = "transparent_incremental_stop"
        figure.note += "; each tenth MiB was written to since the last one"
        return figure

    def launched(self, name, environment):
        job = subprocess.Popen([self.diapause, "launch", "--name", name, "--", self.holder, "hold",
                                str(self.bench.options.mib)],
                               text=True, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
        job.stdout.readline()
        return job

    def restarted(self, name, environment, *options):
        return subprocess.Popen([self.diapause, "restart", name, *options], env=environment,
                                stdin=subprocess.DEVNULL)

    def eager_restart(self):
        name = "transparent_restart"
        environment = self.environment(name, DIAPAUSE_LEVEL1_TIER="local")
        job = self.launched(name, environment)
        self.checkpoint(name, environment)
        ours, raw = [], []
        for _ in range(self.bench.options.runs):
            kill(job)
            image = next((self.bench.disk / name / "local").glob("**/*.img"))
            raw.append(read_raw(image))
            drop_from_memory(self.bench.disk / name)
            job = self.restarted(name, environment)
            ours.append(self.restart_s(name, environment, len(ours) + 1))
        kill(job)
        note = (f"a process of {self.bench.options.mib} MiB from disk, until it runs; raw: "
                "O_DIRECT in blocks of 16 MiB")
        return self.figure("transparent_eager_restart_over_read", ours, raw, 0.7, rate=True,
                           note=note)

    def mapped_restart(self):
        name = "transparent_mapped"
        environment = self.environment(name, DIAPAUSE_LEVEL1_TIER="local")
        job = self.launched(name, environment)
        self.checkpoint(name, environment)
        ours, raw = [], []
        for pair in range(self.bench.options.runs):
            for options, seconds in (([], raw), (["--mapped"], ours))[::-1 if pair % 2 else 1]:
                kill(job)
                drop_from_memory(self.bench.disk / name)
                job = self.restarted(name, environment, *options)
                seconds.append(self.restart_s(name, environment, len(ours) + len(raw) + 1))
        kill(job)
        note = (f"a process of {self.bench.options.mib} MiB from disk, until it runs before its "
                "memory is read; raw: after it")
        return self.figure("transparent_mapped_restart_over_eager", ours, raw, 0.1, note=note)

    def restart_s(self, name, environment, count):
        """Waits until the job has been restarted that often, and returns
        what the last time took."""
        while True:
            said = subprocess.run([self.diapause, "history", name], env=environment,
                                  capture_output=True, text=True).stdout
            times = re.findall(r"went on from version \d+ in ([0-9.]+) (ms|s)\b", said)
            if len(times) == count:
                return float(times[-1][0]) * (1e-3 if times[-1][1] == "ms" else 1)
            time.sleep(0.1)

    def flush(self):
        name = "transparent_flush"
        environment = self.environment(name)
        job = self.launched(name, environment)
        ours, raw = [], []
        for run in range(1 + self.bench.options.runs):
            self.checkpoint(name, environment, 4)
            if run > 0:
                phases = self.bench.ledger(name)[-1]["phases"]
                ours.append(sum(phases.values()) - phases["capture"])
                raw.append(write_raw(self.bench.disk / name / "raw", self.bench.options.mib))
        kill(job)
        note = (f"a process of {self.bench.options.mib} MiB, from when it runs on until level 4 "
                "holds; raw: O_DIRECT in blocks of 16 MiB and fsync into a new file, whose room is "
                "reserved, as ours")
        return self.figure("transparent_flush_over_raw", ours, raw, 0.8, rate=True, note=note)

    def stop_over_memcpy(self, name, strategy, limit, holds="hold"):
        mib = self.bench.options.mib
        copier = subprocess.Popen([self.holder, "copy", str(mib)], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        raw = []

        def copy():
            copier.stdin.write("\n")
            copier.stdin.flush()
            raw.append(float(copier.stdout.readline()))

        copier.stdout.readline()
        copy()
        raw.clear()
        ours = self.stops(name, mib, strategy, copy, holds)
        copier.stdin.close()
        copier.wait()
        note = (f"a process of {mib} MiB under launch, level 1 in memory, strategy {strategy}; "
                "raw: memcpy into warm memory")
        return self.figure(f"{name}_over_memcpy", ours, raw, limit, note=note)

    def small_stop(self):
        ours = self.stops("transparent_small", 16, "auto", lambda: None)
        note = (
            "a process of 16 MiB with one thread, stopped until it runs again; raw: a millisecond")
        return self.figure("transparent_small_stop_ms", ours, [1e-3] * len(ours), 10, note=note)

    def running(self):
        """A shell that starts programs, under launch and without."""
        shell = ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done"]
        note = "a shell that starts 1000 programs, under launch; raw: started plainly"
        seconds = self.launched_and_plain("transparent_running", shell,
                                          PAIRS * self.bench.options.runs)
        return self.figure("transparent_running_overhead", *seconds, 1.02, note=note)

    def computing(self):
        """A program that computes, under launch and without."""
        command = [self.heat, "--size", "1024", "--iterations", "1000"]
        note = "heat, one rank, 1000 iterations of 1024 x 1024, under launch; raw: started plainly"
        seconds = self.launched_and_plain("transparent_computing", command,
                                          PAIRS * self.bench.options.runs)
        return self.figure("transparent_computing_overhead", *seconds, 1.005, note=note)

    def launched_and_plain(self, name, command, pairs):
        """Seconds that a command takes under launch, and without, so many times."""
        environment = self.environment(name)
        commands = [[self.diapause, "launch", "--name", name, "--", *command], command]
        seconds = [[], []]
        for pair in range(pairs):
            for which in (0, 1) if pair % 2 else (1, 0):
                begin_s = time.monotonic()
                subprocess.run([str(word) for word in commands[which]], env=environment, check=True)
                seconds[which].append(time.monotonic() - begin_s)
        return seconds

    def launch(self):
        """What it takes to launch a command that does nothing, beyond the command itself."""
        launched, plain = self.launched_and_plain("transparent_launch", ["/bin/true"],
                                                  WARM_UPS + self.bench.options.runs)
        ours = [one - other for one, other in zip(launched, plain)][WARM_UPS:]
        note = "/bin/true under launch, less /bin/true started plainly; raw: a millisecond"
        return self.figure("transparent_launch_ms", ours, [1e-3] * len(ours), 10, note=note)

    def agents(self):
        """What the first agent spends on the start of an agent on each of many nodes."""
        many = 64
        starts = {count: [self.start_on_nodes(count) for _ in range(self.bench.options.runs)]
                  for count in (1, many)}
        ours = [(of_many[1] - of_one[1]) / (many - 1)
                for of_one, of_many in zip(starts[1], starts[many])]
        told = [f"{count}: {1e3 * statistics.median(all_s):.0f} ms until the program runs, "
                f"{statistics.median(own_s) * 1e3:.0f} ms of it of its processor, "
                f"{statistics.median(kib) / 1024:.1f} MiB"
                for count, starts_of in starts.items() for all_s, own_s, kib in [zip(*starts_of)]]
        note = ("processor time of the first agent for each other node, all of them emulated on "
                f"this machine; raw: a millisecond; nodes {'; '.join(told)}")
        return self.figure("transparent_agent_start_ms", ours, [1e-3] * len(ours), None, note=note)

    def start_on_nodes(self, count):
        """Seconds until a program runs on so many emulated nodes, seconds of the first agent's
        processor until then, and the most KiB that it had."""
        name = "transparent_agents"
        environment = self.environment(name)
        nodes = ["--emulated-nodes", str(count)] if count > 1 else []
        begin_s = time.monotonic()
        job = subprocess.Popen([self.diapause, "launch", "--name", name, *nodes, "--", "sh", "-c",
                                "echo runs; read end"], text=True, env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        job.stdout.readline()
        seconds = time.monotonic() - begin_s
        place = pathlib.Path(f"/proc/{job.pid}")
        own_ns = sum(int((task / "schedstat").read_text().split()[0])
                     for task in (place / "task").iterdir())
        most_kib = int(re.search(r"VmHWM:\s+(\d+)", (place / "status").read_text()).group(1))
        job.communicate("\n")
        return seconds, 1e-9 * own_ns, most_kib

    def barrier(self):
        """A step of coordination of as many agents as no machine here has: computed from
        what their messages cost."""
        ours, flat = [], []
        for _ in range(self.bench.options.runs):
            [tree_s], [flat_s] = self.bench.pairs("transparent_barrier",
                                                  [self.coordination, "16", "10000"])
            ours.append(1e6 * tree_s)
            flat.append(1e6 * flat_s)
        note = ("microseconds of a step of 10,000 agents in a tree of 16, in virtual time from "
                f"measured costs of messages; flat: {statistics.median(flat):.0f}")
        return self.figure("transparent_barrier_us", ours, [1.0] * len(ours), None, timed=False,
                           note=note)
