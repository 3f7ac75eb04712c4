"""What is compressed: files with a type and a shape, and a built-in set of real fields that Debian packages carry.

Nothing of the set is in the source: packages are fetched by name, version and checksum, and kept beside the results.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import pathlib
import subprocess
import tarfile

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
    """A grid of the geoid: a head of 40 bytes that ends with its rows and columns, and numbers; all big-endian."""
    rows, columns = np.frombuffer(data, ">i4", 2, 32)
    return np.frombuffer(data, ">f4", rows * columns, 40).reshape(rows, columns)


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str


NCARG = Package("libncarg-data", "6.6.2.dfsg.1-1", "52b4f825c6ab75d8f324185b96defab7a2b746ab15850a047198ee3f6da3bb3d")
FERRET = Package("ferret-datasets", "7.6.0-5", "e5770222647ebfe2ab77b845e07a7e05cb6fed7b12dec9ae287a1f8046031744")
PROJ = Package("proj-data", "9.1.1-1", "efa6a74fba305e664ba27b81c2a5708aa59554ba41659af0e8c325e477f3d955")

# name, package, file, how it is read, what it is
BUILT_IN = (
    ("cam_t", NCARG, "usr/share/ncarg/data/cdf/vinth2p.nc", _netcdf("T"), "temperature, climate model CAM"),
    ("echam_t", NCARG, "usr/share/ncarg/data/nug/rectilinear_grid_3D.nc", _netcdf("t"), "temperature, climate model ECHAM"),
    ("navy_wind", FERRET, "usr/share/ferret-vis/data/monthly_navy_winds.cdf", _netcdf("UWND"), "monthly winds, analysis"),
    ("ocean_t", FERRET, "usr/share/ferret-vis/data/ocean_atlas_subset.nc", _netcdf("TEMP"),
     "temperature of the ocean, with fill values on land"),
    ("geoid", PROJ, "usr/share/proj/egm96_15.gtx", _gtx, "height of the geoid EGM96"),
)


def _native(values):
    """As C doubles or floats in a row, the slowest dimension first; single dimensions are none."""
    values = np.asarray(values)
    if values.dtype.kind != "f" or values.dtype.itemsize not in (4, 8) or values.size == 0:
        raise ValueError("floating-point values of 4 or 8 bytes are wanted")
    return np.ascontiguousarray(np.squeeze(values), values.dtype.newbyteorder("="))


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
        return Field(pathlib.Path(path).stem, _native(values), path)
    except (OSError, ValueError) as error:
        raise FieldError(f"{text}: {error}; a field is FILE:TYPE:SHAPE, as u.raw:float64:64x64x64, or FILE.npy") from error


def _fetched(package, folder):
    """The package file, from the folder or else from Debian."""
    file = folder / f"{package.name}_{package.version}_all.deb"
    if not file.exists():
        subprocess.run(["apt-get", "download", "-q", f"{package.name}={package.version}"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if hashlib.sha256(file.read_bytes()).hexdigest() != package.sha256:
        raise FieldError(f"{file}: is not the package that is wanted (its SHA-256 is another one)")
    return file


def _member(file, path):
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.extractfile(f"./{path}").read()


def built_in(folder, heat):
    """The set. `folder` keeps the packages; `heat`: the program, for a state of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, package, path, read, what in BUILT_IN:
        try:
            yield Field(name, _native(read(_member(_fetched(package, folder), path))),
                        f"{what}; Debian {package.name} {package.version}")
        except (OSError, subprocess.CalledProcessError) as error:
            raise FieldError(f"{name}: Debian's {package.name} {package.version} cannot be fetched ({error}); put its .deb "
                             f"into {folder}, or name fields of your own") from error
    if heat.exists():
        yield _heat(heat, folder)


def _heat(program, folder):
    """A state of the project's own heat program; without MPI's launcher it is one rank."""
    size, file = 1024, folder / "heat.raw"
    subprocess.run([program.resolve(), "--size", str(size), "--iterations", "500", "--output", file.name], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL)
    return Field("heat_t", np.fromfile(file, "float64").reshape(size, size), "state of the heat program")
