#!/usr/bin/env python3
"""The package of Spack, as far as it can be asked without Spack."""

import pathlib
import re
import sys
import types
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "packaging/spack/spack_repo/diapause/packages/diapause/package.py"


class Recorder:
    """Stands in for the directives of Spack, and keeps what they are told."""

    def __init__(self):
        self.told = []

    def directive(self, name):
        return lambda *words, **_: self.told.append((name, *words))

    def words(self, name):
        return [told[1] for told in self.told if told[0] == name]


class Package:
    prefix = None

    def define(self, name, value):
        return f"-D{name}={value}"

    def define_from_variant(self, name, variant):
        return f"-D{name}=variant:{variant}"


def read_package():
    """The class, and what its directives were told."""
    recorder = Recorder()
    directives = types.ModuleType("spack.package")
    for name in ("license", "version", "variant", "depends_on", "requires"):
        setattr(directives, name, recorder.directive(name))
    systems = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    systems.CMakePackage = Package
    sys.modules["spack.package"], sys.modules["spack_repo.builtin.build_systems.cmake"] = (
        directives, systems)
    found = {}
    exec(compile(PACKAGE.read_text(), PACKAGE, "exec"), found)  # noqa: S102  it is our own
    return found["Diapause"](), recorder


class SpackTest(unittest.TestCase):
    def test_it_builds_this_version_with_options_that_there_are(self):
        package, recorder = read_package()
        sources = "".join(path.read_text() for path in (REPOSITORY / "CMakeLists.txt",
                                                        *REPOSITORY.glob("cmake/*.cmake")))
        self.assertEqual(recorder.words("version"),
                         [re.search(r"project\(diapause VERSION (\S+)", sources)[1]])
        options = re.findall(r"^option\((\w+)", sources, re.MULTILINE)
        for word in package.cmake_args():
            name, value = re.fullmatch(r"-D(\w+)=(.*)", word).groups()
            self.assertIn(name, options)
            if value.startswith("variant:"):
                self.assertIn(value.partition(":")[2], recorder.words("variant"))

    def test_it_depends_on_every_library_that_the_build_asks_for(self):
        _, recorder = read_package()
        needed = {word.partition("@")[0] for word in recorder.words("depends_on")}
        build = (REPOSITORY / "CMakeLists.txt").read_text()
        asked = re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET lib(\w+)\)", build)
        asked += re.findall(r"find_package\((\S+) REQUIRED", build)
        self.assertGreater(len(asked), 8)
        names = {"isal": "isa-l", "uring": "liburing", "PkgConfig": "pkgconfig",
                 "nlohmann_json": "nlohmann-json"}
        for library in asked:
            if library != "Threads":
                self.assertIn(names.get(library, library.lower()), needed)


if __name__ == "__main__":
    unittest.main()
