"""Arrays of a version as one file of VTK's image data (.vti), which ParaView and
VisIt open. Needs NumPy."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from diapause import exported
from diapause.files import Trouble

_TYPES = {"f4": "Float32", "f8": "Float64", "i1": "Int8", "u1": "UInt8", "i2": "Int16",
          "u2": "UInt16", "i4": "Int32", "u4": "UInt32", "i8": "Int64", "u8": "UInt64"}


def _arrays(folder):
    """{name: mapped array} of those that have one place in space for each element; the first one
    says which grid it is."""
    found = {name: array for _, name, rank, array in exported.arrays(folder)
             if rank is None and 2 <= array.ndim <= 3 and array.size > 0}
    shapes = {array.shape for array in found.values()}
    if not found:
        raise Trouble(
            "the program has told of no region that it is part of an array of two or three "
            "dimensions (protect_block): export into a directory instead")
    if len(shapes) > 1:
        raise Trouble(f"the regions are of different grids, {', '.join(map(str, sorted(shapes)))}: "
                      "export into a directory instead")
    return found


def _write(file, arrays):
    shape = next(iter(arrays.values())).shape
    points = (1,) * (3 - len(shape)) + shape
    extent = " ".join(f"0 {count - 1}" for count in reversed(points))  # the last dimension is x
    head = ('<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" '
            'byte_order="LittleEndian" header_type="UInt64">\n'
            f'<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="1 1 1">\n'
            f'<Piece Extent="{extent}">\n<PointData>\n')
    offset = 0
    for name, array in arrays.items():
        head += (f'<DataArray type="{_TYPES[array.dtype.str[1:]]}" Name={quoteattr(name)} '
                 f'format="appended" offset="{offset}"/>\n')
        offset += 8 + array.nbytes
    file.write(
        (head + '</PointData>\n</Piece>\n</ImageData>\n<AppendedData encoding="raw">\n_').encode())
    for array in arrays.values():
        file.write(array.nbytes.to_bytes(8, "little"))
        array.tofile(file)
    file.write(b"\n</AppendedData>\n</VTKFile>\n")


def write(folder, path):
    arrays = _arrays(folder)
    with open(path, "wb") as file:
        _write(file, arrays)
