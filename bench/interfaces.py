"""Measures what the other interfaces cost over that for C: Python, FTI's, files of the
program's own, and exports."""

import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FROM_PYTHON = ROOT / "bench" / "from_python.py"
PYTHON = "/usr/bin/python3"  # packages of the system are for its own Python
FTI_CONFIGURATION = """\
[Basic]
ckpt_dir = {place}/local
glbl_dir = {place}/global
meta_dir = {place}/meta
node_size = 1
group_size = 4
ckpt_io = 1
head = 0
verbosity = 3
[Restart]
failure = 0
exec_id = NULL
[Advanced]
local_test = 1
"""


class Interfaces:
    def __init__(self, bench, build, figure):
        self.bench = bench
        self.build = build
        self.figure = figure

    def all(self):
        yield "python", self.python_blocked
        yield "fti_style", self.fti_style
        yield "files", self.files_durable
        yield "export", self.export

    def environment(self, name, **settings):
        (self.bench.disk / name).mkdir(exist_ok=True)
        python = {"PYTHONPATH": ROOT / "python", "DIAPAUSE_LIBRARY_PATH": self.build / "src",
                  "DIAPAUSE_LOG_LEVEL": "error"}
        return self.bench.environment(name, **python, **settings)

    def output_of(self, command, environment):
        return subprocess.run(list(map(str, command)), env=environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def python_blocked(self):
        """Each pair is two processes of their own, whose last checkpoint counts."""
        mib, ours, raw = self.bench.options.mib, [], []
        for _ in range(self.bench.options.runs):
            environment = self.environment("python")
            ours.append(
                float(self.output_of([PYTHON, FROM_PYTHON, "checkpoint", mib], environment)))
            self.bench.forget("python")
            of_c, _ = self.bench.one_process("memory", "python", runs=1)
            raw += of_c
            self.bench.forget("python")
        note = f"{mib} MiB, level 1 in memory, an array of NumPy; raw: the same from C"
        return self.figure("python_blocked_over_c", ours, raw, 1.05, note=note)

    def as_fti_keeps(self, name):
        """Levels 1 to 3 as FTI has them, in a directory of the node, which lies in memory, so
        that no disk is measured."""
        levels = {f"DIAPAUSE_LEVEL{level}_TIER": "local" for level in (1, 2, 3)}
        # Parity takes half of the group, as in FTI.
        group = {"DIAPAUSE_LEVEL3_GROUP_NODES": 4, "DIAPAUSE_LEVEL3_PARITY": 2}
        return levels | group | {"DIAPAUSE_LOCAL_PATH": self.bench.memory / name / "local",
                                 "DIAPAUSE_NODE_RANKS_PER_NODE": 1}

    def fti_style(self):
        """The figure is of the level where it does worst."""
        mib, found = self.bench.options.mib // 8, {}
        for level in (1, 2, 3, 4):
            name = f"fti_style{level}"
            configuration = self.bench.disk / name / "configuration"
            configuration.parent.mkdir()
            configuration.write_text(FTI_CONFIGURATION.format(place=self.bench.disk / name))
            program = self.build / "bench" / "bench_fti_style"
            command = ["mpiexec.openmpi", "--oversubscribe", "-n", "4", program, level,
                       self.bench.options.runs, mib, configuration]
            found[level] = self.bench.pairs(name, command, **self.as_fti_keeps(name))
            self.bench.forget(name)
        figures = {level: self.figure("", *pairs, None) for level, pairs in found.items()}
        worst = max(figures.values(), key=lambda figure: figure.value)
        note = (
            f"4 ranks of {mib} MiB, each a node, all work in the call; raw: diapause_checkpoint; ")
        note += ", ".join(f"level {level}: {figure.value:.3f}" for level, figure in figures.items())
        return self.figure("fti_style_blocked_over_own", worst.ours, worst.raw, 1.05, note=note)

    def files_durable(self):
        ours, raw = self.bench.one_process("files", "files", DIAPAUSE_ASYNC_MODE="thread")
        mib = self.bench.options.mib // 4
        note = (f"4 files of {mib} MiB until level 4 holds; raw: written and synced there, one "
                "after the other")
        return self.figure("files_durable_over_raw", ours, raw, 1.3, note=note)

    def export(self):
        """All in memory, so that no disk is measured."""
        mib, place = self.bench.options.mib, self.bench.memory
        environment = self.environment("export")
        array, copied, exported = place / "array.npy", place / "copied.h5", place / "exported.h5"
        self.output_of([PYTHON, FROM_PYTHON, "keep", "exported", mib], environment)
        self.output_of([PYTHON, FROM_PYTHON, "write", array, mib], environment)
        ours, raw = [], []
        for _ in range(self.bench.options.runs):
            for seconds, command, result in (
                (raw, [PYTHON, FROM_PYTHON, "copy", array, copied], copied),
                (ours, [self.build / "src" / "diapause", "export", "exported", "--to", exported],
                 exported),
            ):
                start_s = time.monotonic()
                self.output_of(command, environment | {"TMPDIR": str(place)})
                seconds.append(time.monotonic() - start_s)
                os.unlink(result)
        os.unlink(array)
        note = (f"an array of {mib} MiB, checked, into a file of HDF5; raw: h5py writes what NumPy "
                "reads; both with the start of Python")
        return self.figure("export_over_read", ours, raw, 1.5, note=note)
