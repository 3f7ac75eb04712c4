"""How long jobs that know nothing of checkpoints stand still for one, and what it costs them to be launched."""

import re
import signal
import subprocess
import time

WARM_UPS = 2


class Transparent:
    def __init__(self, bench, build, figure):
        self.bench = bench
        self.figure = figure
        self.diapause = build / "src" / "diapause"
        self.holder = build / "bench" / "bench_holder"

    def all(self):
        yield "transparent_stop", lambda: self.stop_over_memcpy("transparent_stop", "copy-on-write", 0.5)
        yield "transparent_direct", lambda: self.stop_over_memcpy("transparent_direct", "copy", 4)
        yield "transparent_small", self.small_stop
        yield "transparent_running", self.running

    def environment(self, name, **settings):
        directory = self.bench.disk / name
        directory.mkdir(exist_ok=True)
        return self.bench.environment(name, DIAPAUSE_ENERGY_METERS="off", **settings)

    def stops(self, name, mib, strategy, between):
        """Seconds that a process of so many MiB stands still for checkpoints of level 1 in memory; `between` runs after each."""
        environment = self.environment(name, DIAPAUSE_CAPTURE_STRATEGY=strategy)
        job = subprocess.Popen([self.diapause, "launch", "--name", name, "--", self.holder, "hold", str(mib)], text=True,
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            job.stdout.readline()
            seconds = []
            for run in range(WARM_UPS + self.bench.options.runs):
                said = subprocess.run([self.diapause, "checkpoint", name], env=environment, check=True, capture_output=True,
                                      text=True).stdout
                if run >= WARM_UPS:
                    seconds.append(float(re.search(r"stood still for ([0-9.]+) ms", said)[1]) / 1e3)
                    between()
            return seconds
        finally:
            job.send_signal(signal.SIGTERM)
            job.wait()

    def stop_over_memcpy(self, name, strategy, limit):
        mib = self.bench.options.mib
        copier = subprocess.Popen([self.holder, "copy", str(mib)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        raw = []

        def copy():
            copier.stdin.write("\n")
            copier.stdin.flush()
            raw.append(float(copier.stdout.readline()))

        copier.stdout.readline()
        copy()
        raw.clear()
        ours = self.stops(name, mib, strategy, copy)
        copier.stdin.close()
        copier.wait()
        note = f"a process of {mib} MiB under launch, level 1 in memory, strategy {strategy}; raw: memcpy into warm memory"
        return self.figure(f"{name}_over_memcpy", ours, raw, limit, note=note)

    def small_stop(self):
        ours = self.stops("transparent_small", 16, "auto", lambda: None)
        note = "a process of 16 MiB with one thread, stopped until it runs again; raw: a millisecond"
        return self.figure("transparent_small_stop_ms", ours, [1e-3] * len(ours), 10, note=note)

    def running(self):
        """A shell that starts programs, under launch and without."""
        environment = self.environment("transparent_running")
        shell = ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done"]
        commands = [[self.diapause, "launch", "--name", "shell", "--", *shell], shell]
        seconds = [[], []]
        for pair in range(self.bench.options.runs):
            for which in (0, 1) if pair % 2 else (1, 0):
                begin_s = time.monotonic()
                subprocess.run([str(word) for word in commands[which]], env=environment, check=True)
                seconds[which].append(time.monotonic() - begin_s)
        note = "a shell that starts 1000 programs, under launch; raw: started plainly"
        return self.figure("transparent_running_overhead", *seconds, 1.02, note=note)
