"""The claims of the study of petascale checkpoints beside what was measured here.

Source of what is published: J. Cao et al., System-level Scalable Checkpoint-Restart for Petascale
Computing (2016), tables II to VIII; see published/README.md. Times are seconds, overheads percent
of the time without checkpoints.
"""

from __future__ import annotations

from diapause.study import petascale

# table: (file, program or the column that has it, {column: (quantity, name in the measurement of a
# program)})
TIMES = {"checkpoint_time_s": ("checkpoint, s", "checkpoint_s"),
         "restart_time_s": ("restart, s", "restart_s")}
TABLES = {"II": (petascale.TABLES["HPCG"], "HPCG", TIMES),
          "III": (petascale.TABLES["NAMD"], "NAMD", TIMES),
          "V": ("cao2016_table5_runtime_overhead_lu_e", "LU.E",
                {"overhead_pct": ("overhead while it runs, %", "overhead_pct")}),
          "VI": (petascale.TABLES["LU.E"], "LU.E", TIMES),
          "VII": ("cao2016_table7_mpi_implementations_lu_e_500", "LU.E", TIMES),
          "VIII": (petascale.TABLES["NAS"], "benchmark", TIMES)}
PROCESSES_OF_VII = 500


def benchmark_of(name):
    """The program without the class of its size: "LU" of "LU.E"."""
    return name.partition(".")[0].upper()


def rows(measured):
    """Returns a row for each published number. `measured` is {name of a program: its measurement
    here, a dictionary with `processes`, `mpi` and the numbers}. A number that was not measured here
    is None in `ours`, and `ours_of` says why; no published number ever stands there."""
    found = []
    for table, (file, program, quantities) in TABLES.items():
        for row in petascale.rows_of(file):
            name = row.get(program, program)
            mpi = row.get("mpi_implementation", "")
            for column, (quantity, key) in quantities.items():
                ours, of_what = _ours(measured, name, mpi, key)
                found.append({"table": table, "program": f"{name}, {mpi}" if mpi else name,
                              "processes": int(row.get("processes", PROCESSES_OF_VII)),
                              "quantity": quantity,
                              "published": float(row[column]), "ours": ours, "ours_of": of_what})
    return found


def _ours(measured, name, mpi, key):
    for ours, one in measured.items():
        if benchmark_of(ours) == benchmark_of(name) and (not mpi or mpi == one["mpi"]):
            return one[key], f"{ours}, {one['processes']} processes; not the same machine"
    return (None,
            f"not measured: {benchmark_of(name)}{f' with {mpi}' if mpi else ''} was not run here")
