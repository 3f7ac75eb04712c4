#!/usr/bin/env python3
"""The Debian packages: made of the build, installed by dpkg into an empty
directory, and used from there."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["DIAPAUSE_TEST_BUILD"])
NAMES = ("libdiapause", "libdiapause-dev", "diapause", "python3-diapause", "diapause-drop-in")
LIMIT_S = 600

PYTHON_PROGRAM = """
import diapause
values = bytearray(b"kept")
with diapause.open("packaged") as run:
    run.protect("values", values)
    run.checkpoint(1)
    values[:] = b"lost"
    run.restart()
assert values == b"kept", values
print(diapause.__file__)
"""


def output(*command, status=0, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          timeout=LIMIT_S,
                          check=False, **options)
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def version():
    return re.search(r"project\(diapause VERSION (\S+)",
                     (REPOSITORY / "CMakeLists.txt").read_text())[1]


def contents(package):
    """Returns what the package unpacks, except directories."""
    listed = output("dpkg-deb", "--contents", package).splitlines()
    return {line.split()[5] for line in listed if not line.startswith("d")}


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("dpkg-shlibdeps") or not shutil.which("cpack"):
            raise unittest.SkipTest("dpkg-shlibdeps or cpack is not there")
        scratch = tempfile.TemporaryDirectory(prefix="diapause-packages-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name).resolve()
        # Compressing would take most of the time.
        output("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B",
               cls.scratch / "made",
               "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none")
        found = {path.name.partition("_")[0]: path for path in (cls.scratch / "made").glob("*.deb")}
        assert set(found) == set(NAMES), found
        cls.packages = found
        cls.root = cls.scratch / "root"
        for folder in ("info", "updates", "triggers"):
            (cls.root / "var/lib/dpkg" / folder).mkdir(parents=True)
        (cls.root / "var/lib/dpkg/status").touch()
        # The scripts of packages run outside of the directory, where they must change nothing.
        (cls.scratch / "bin").mkdir()
        (cls.scratch / "bin/ldconfig").write_text(
            f'#!/bin/sh\necho "$DPKG_ROOT" >>{cls.scratch}/ldconfig.log\n')
        (cls.scratch / "bin/ldconfig").chmod(0o755)
        cls.dpkg("--install", *found.values())
        cls.settings = {"DIAPAUSE_MEMORY_PATH": str(cls.scratch / "memory"),
                        "DIAPAUSE_GLOBAL_PATH": str(cls.scratch / "global"),
                        "PATH": f"{cls.root / 'usr/bin'}:{os.environ['PATH']}"}

    @classmethod
    def dpkg(cls, *words):
        """In the directory, where there is nothing that they depend on. Anybody may do so,
        whose PATH may lack /sbin."""
        forced = ("--force-depends", "--force-not-root", "--force-bad-path",
                  "--force-script-chrootless")
        return output("dpkg", f"--root={cls.root}", f"--log={cls.scratch / 'dpkg.log'}", *forced,
                      *words,
                      env=os.environ | {"PATH": f"{cls.scratch / 'bin'}:{os.environ['PATH']}"})

    def test_they_are_installed_side_by_side(self):
        listed = self.dpkg("--list", *NAMES).splitlines()
        self.assertEqual({line.split()[1].partition(":")[0]
                          for line in listed if line.startswith("ii ")},
                         set(NAMES))
        self.assertEqual(self.dpkg("--audit"), "")
        self.assertIn(str(self.root), (self.scratch / "ldconfig.log").read_text())

    def test_they_depend_on_one_another_and_on_the_libraries_inside(self):
        told = {name: output("dpkg-deb", "--field", package, "Depends")
                for name, package in self.packages.items()}
        self.assertIn(f"libdiapause (= {version()})", told["libdiapause-dev"])
        self.assertIn(f"libdiapause (= {version()})", told["diapause"])
        self.assertIn(f"diapause (= {version()})", told["python3-diapause"])
        self.assertIn(f"libdiapause (= {version()})", told["diapause-drop-in"])
        self.assertRegex(told["libdiapause"], r"libc6 .*libisal2 .*libzstd1")

    def test_no_program_gets_a_library_of_anothers_name_unasked(self):
        """Only the package's own folder has them, and no package that is installed later is
        told to depend on it."""
        libraries = {pathlib.PurePath(file) for file in contents(self.packages["diapause-drop-in"])
                     if ".so" in file}
        self.assertEqual({library.name for library in libraries} & {
            "libfti.so", "libscr.so", "libveloc-client.so"},
                         {"libfti.so", "libscr.so", "libveloc-client.so"})
        for library in libraries:
            self.assertEqual(library.parent.parent.parent.name, "drop-in", library)
        told = output("dpkg-deb", "--info", self.packages["diapause-drop-in"])
        self.assertNotIn("shlibs", told)

    def test_no_file_is_in_two_of_them(self):
        held = [file for package in self.packages.values() for file in contents(package)]
        self.assertEqual(len(held), len(set(held)))
        self.assertTrue(all(file.startswith("./usr/") for file in held))

    def test_they_keep_to_what_debian_asks_of_packages(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not there")
        # These come from the packages of the tests, which have another prefix than those of users,
        # and are not compressed.
        elsewhere = ("file-in-unusual-dir,non-standard-dir-in-usr,"
                     "pkg-config-unavailable-for-cross-compilation,"
                     "uses-no-compression-for-data-tarball")
        output("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags",
               elsewhere, *self.packages.values())

    def test_each_says_under_what_license_it_is(self):
        for name, package in self.packages.items():
            self.assertIn(f"./usr/share/doc/{name}/copyright", contents(package))

    def test_a_program_is_built_and_runs(self):
        folder = next(self.root.glob("usr/lib/**/pkgconfig"))
        asked = {"env": os.environ | {"PKG_CONFIG_PATH": str(folder)}}
        for package, source, words in (
                ("diapause", "minimal.c", []),
                ("diapause_mpi", "minimal_mpi.c",
                 [os.environ["DIAPAUSE_TEST_MPIEXEC"], "-n", "2"])):
            compiler = output("pkg-config", "--variable=mpicc", package, **asked).strip() or "cc"
            flags = output("pkg-config", "--cflags", "--libs", package, **asked).split()
            program = self.scratch / package
            output(compiler, self.root / "usr/share/diapause/examples" / source, "-o", program,
                   *flags, "-lm")
            command = ";".join([*words, str(program)])
            output("cmake", f"-DDIRECTORY={self.scratch / 'run'}", f"-DCOMMAND={command}", "-P",
                   REPOSITORY / "examples/run_twice.cmake")

    def test_a_program_written_for_another_library_is_built_and_runs(self):
        place = next(self.root.glob("usr/**/drop-in/veloc/lib/pkgconfig"))
        asked = {"env": os.environ | {"PKG_CONFIG_PATH": str(place)}}
        compiler = output("pkg-config", "--variable=mpicc", "veloc", **asked).strip()
        flags = output("pkg-config", "--cflags", "--libs", "veloc", **asked).split()
        program = self.scratch / "veloc_solver"
        source = REPOSITORY / "tests/drop_in/veloc_solver.c"
        output(compiler, source, "-o", program, *flags, "-lm")
        configuration = self.scratch / "veloc.cfg"
        configuration.write_text(f"scratch = {self.scratch / 'node'}\npersistent = "
                                 f"{self.scratch / 'veloc'}\nmode = async\n")
        run = (os.environ["DIAPAUSE_TEST_MPIEXEC"], "-n", "2", program, configuration, "packaged",
               "20", self.scratch / "result")
        results = []
        for _ in range(2):  # The second run finds the checkpoints of the first.
            output(*run)
            results.append([(self.scratch / f"result.{rank}").read_bytes() for rank in range(2)])
        self.assertEqual(*results)

    def test_the_command_and_python_see_the_same_checkpoint(self):
        python = {"PYTHONPATH": str(self.root / "usr/lib/python3/dist-packages")}
        found = output("/usr/bin/python3", "-c", PYTHON_PROGRAM,
                       env=os.environ | self.settings | python)
        self.assertIn(str(self.root), found)
        self.assertIn("packaged", output("diapause", "list", env=os.environ | self.settings))
        self.assertIn(version(), output("diapause", "--version", env=os.environ | self.settings))

    def test_pages_and_completions_lie_where_readers_look(self):
        if shutil.which("man"):
            for page in ("diapause-list", "diapause_open"):
                found = output("man", "-M", self.root / "usr/share/man", "--where", page)
                self.assertIn(str(self.root), found)
        self.assertTrue((self.root / "usr/share/bash-completion/completions/diapause").exists())


if __name__ == "__main__":
    unittest.main()
