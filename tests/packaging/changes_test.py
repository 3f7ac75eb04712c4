#!/usr/bin/env python3
"""tools/collect-changes puts fragments into CHANGES.md."""

import pathlib
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SPACK = "packaging/spack/spack_repo/diapause/packages/diapause/package.py"


class ChangesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="diapause-changes-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.write("changes/unreleased/README.md", "What goes here.\n")
        self.bear("0.1.0")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def bear(self, version):
        self.write("CMakeLists.txt", f"project(diapause VERSION {version} LANGUAGES C)\n")
        self.write("python/pyproject.toml", f'version = "{version}"\n')
        self.write(SPACK, f'class Diapause:\n    version("{version}")\n')

    def fragment(self, name, text):
        self.write(f"changes/unreleased/{name}", text)

    def collect(self, version, date="2026-01-02", status=0):
        done = subprocess.run([REPOSITORY / "tools/collect-changes", version, date, "--root",
                               self.root],
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_fragments_become_points_under_their_kinds_and_are_gone(self):
        self.fragment("fixed-a.md", "A fault is mended.\n")
        self.fragment("added-b.md",
                      "Something is there,\nwhich takes two lines.\n\nAnd a paragraph.\n")
        self.collect("0.1.0")
        self.assertEqual((self.root / "CHANGES.md").read_text(),
                         "# Changes\n\n## 0.1.0 (2026-01-02)\n\n### Added\n\n* Something is "
                         "there,\n  which takes two lines.\n"
                         "\n  And a paragraph.\n\n### Fixed\n\n* A fault is mended.\n")
        self.assertEqual([path.name for path in (self.root / "changes/unreleased").iterdir()],
                         ["README.md"])

    def test_later_fragments_of_a_version_join_it_and_later_versions_stand_above(self):
        self.fragment("added-a.md", "One.\n")
        self.collect("0.1.0")
        self.fragment("added-b.md", "Two.\n")
        self.collect("0.1.0", "2026-01-03")
        self.bear("0.2.0")
        self.fragment("format-c.md", "Three.\n")
        self.collect("0.2.0", "2026-02-03")
        self.assertEqual((self.root / "CHANGES.md").read_text(),
                         "# Changes\n\n## 0.2.0 (2026-02-03)\n\n### Formats on disk\n\n* Three.\n"
                         "\n## 0.1.0 (2026-01-03)\n\n### Added\n\n* One.\n* Two.\n")

    def test_what_cannot_be_told_is_refused_and_nothing_is_changed(self):
        self.fragment("added-a.md", "One.\n")
        self.assertIn("CMakeLists.txt does not bear version 0.2.0", self.collect("0.2.0", status=1))
        self.assertIn("isoformat", self.collect("0.1.0", "yesterday", status=1))
        self.fragment("better-b.md", "Two.\n")
        self.assertIn("better-b.md", self.collect("0.1.0", status=1))
        self.assertFalse((self.root / "CHANGES.md").exists())
        self.assertTrue((self.root / "changes/unreleased/added-a.md").exists())

    def test_the_sources_bear_one_version(self):
        """A copy of what bears it, with nothing to collect."""
        version = None
        for name in ("CMakeLists.txt", "python/pyproject.toml", SPACK):
            text = (REPOSITORY / name).read_text()
            self.write(name, text)
            version = version or text.partition("project(diapause VERSION ")[2].split()[0]
        self.collect(version)


if __name__ == "__main__":
    unittest.main()
