"""A version as one file of HDF5: arrays of the whole job, or a group with those of each rank.
Needs NumPy and h5py."""

from __future__ import annotations

import h5py

from diapause import exported
from diapause.files import Trouble


def _room(group, name, shape, dtype):
    """Makes a dataset in one piece whose content somebody else will write into the file, and
    returns where in the file it begins: None if it is empty."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return group.create_dataset(name, shape=shape, dtype=dtype, dcpl=properties).id.get_offset()


def _make_room_for_files(group, directory):
    """(path, where it begins) of each file of a rank."""
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        yield path, _room(group, path.relative_to(directory).as_posix(), (path.stat().st_size,),
                          "u1")


def make_room(folder, path):
    """Makes a file with room for what lies in the folder, and returns {path in the folder: where in
    the file the content begins}.

    Each region is a dataset of its name, or a group with r0, r1, ... where the ranks' parts make
    up no array; files of the program are datasets of bytes in files/r0, files/r1, ... Attributes
    say which version of which job it is, and what energy its checkpoint took, in joules, if the
    ledger of the job tells."""
    about, places = exported.about(folder), {}
    with h5py.File(path, "w") as out:
        out.attrs.update({"job": about["job"],
                          "version": about["version"],
                          "ranks": len(about["ranks"]),
                          "created_unix_ns": about["created_unix_ns"]})
        energy = about.get("energy", {})
        energy = energy | energy.get("uncertainty", {})
        for name, key in (("energy_j", "joules"), ("energy_uncertainty_j", "uncertainty_j"),
                          ("energy_sampling_j", "sampling_j"), ("energy_sensor_j", "sensor_j"),
                          ("energy_attribution_j", "attribution_j"), ("energy_kind", "kind"),
                          ("energy_domain", "domain"), ("energy_source", "source")):
            if energy.get(key) is not None:
                out.attrs[name] = energy[key]
        if energy.get("joules") is not None:
            is_bounded = energy.get("uncertainty_j") is not None
            out.attrs["energy_bound"] = "bound" if is_bounded else "no bound"
        try:
            for of, name, rank, array in exported.arrays(folder):
                what = f"region '{name}'"
                places[of] = _room(out, name if rank is None else f"{name}/r{rank}",
                                         array.shape, array.dtype)
            for rank, directory in exported.files(folder).items():
                what = f"files of rank {rank}"
                group = out.create_group(f"files/r{rank}")
                places.update(_make_room_for_files(group, directory))
        except ValueError as error:
            # A name is that of a dataset and of a group, or HDF5 does not allow it.
            raise Trouble(f"{what}: {error}: export into a directory instead") from None
    return {of.relative_to(folder).as_posix(): place for of, place in places.items()
            if place is not None}
