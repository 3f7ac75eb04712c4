"""A version as one file of HDF5: arrays of the whole job, or a group with those of each rank.
Needs NumPy and h5py."""

from __future__ import annotations

import h5py
import numpy

from diapause import exported
from diapause.files import Trouble


def _write_files(group, directory):
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        group.create_dataset(path.relative_to(directory).as_posix(),
                             data=numpy.fromfile(path, dtype="u1"))


def write(folder, path):
    """Each region is a dataset of its name, or a group with r0, r1, ... where the ranks' parts make
    up no array; files of the program are datasets of bytes in files/r0, files/r1, ... Attributes
    say which version of which job it is, and what energy its checkpoint took, in joules, if the
    ledger of the job tells."""
    about = exported.about(folder)
    with h5py.File(path, "w") as out:
        out.attrs.update({"job": about["job"],
                          "version": about["version"],
                          "ranks": len(about["ranks"]),
                          "created_unix_ns": about["created_unix_ns"]})
        energy = about.get("energy", {})
        energy = energy | energy.get("uncertainty", {})
        for name, key in (("energy_j", "joules"), ("energy_uncertainty_j", "uncertainty_j"),
                          ("energy_sampling_j", "sampling_j"), ("energy_sensor_j", "sensor_j"),
                          ("energy_attribution_j", "attribution_j"), ("energy_kind", "kind")):
            if energy.get(key) is not None:
                out.attrs[name] = energy[key]
        try:
            for name, rank, array in exported.arrays(folder):
                what = f"region '{name}'"
                out.create_dataset(name if rank is None else f"{name}/r{rank}", data=array)
            for rank, directory in exported.files(folder).items():
                what = f"files of rank {rank}"
                _write_files(out.create_group(f"files/r{rank}"), directory)
        except ValueError as error:
            # A name is that of a dataset and of a group, or HDF5 does not allow it.
            raise Trouble(f"{what}: {error}: export into a directory instead") from None
