#!/usr/bin/env python3
"""list, show and verify over what eight ranks on four emulated nodes left."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

import support
from support import CommandTest, Tiers, flip, own

NODES = ["node0", "node1", "node2", "node3"]
# Version of each level, by the numbers of calls below.
LEVELS = {10: [1], 20: [1, 2], 30: [1, 3], 40: [1], 50: [1, 4]}
SCHEDULE = {"DIAPAUSE_NODE_RANKS_PER_NODE": 2} | {
    f"DIAPAUSE_LEVEL{level}_{key}": value
    for level, calls in {1: 10, 2: 20, 3: 30, 4: 50}.items()
    for key, value in {"EVERY_CALLS": calls, "KEEP": 9}.items()
}
SIZE = 1536  # 2.25 MiB a rank: three blocks
HEADER_BYTES = 4096
BLOCK_BYTES = 1 << 20


def heat_command(tiers, iterations, size=SIZE, ms_per_iteration=0):
    mpi = {"OMPI_ALLOW_RUN_AS_ROOT": 1,
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1,
           "OMPI_MCA_rmaps_base_oversubscribe": 1}
    command = [support.MPIEXEC, "-n", "8", support.HEAT, "--size", str(size), "--iterations",
               str(iterations), "--min-ms-per-iteration", str(ms_per_iteration), "--output",
               str(tiers.root / "result")]
    return {"args": command,
            "env": support.environment(**SCHEDULE, **tiers.settings(), **mpi),
            "cwd": tiers.root}


class ReadingTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory(prefix="diapause-cli-made-",
                                           dir=os.environ.get("TMPDIR"))
        cls.addClassCleanup(made.cleanup)
        first = Tiers(pathlib.Path(made.name) / "first")
        first.root.mkdir()
        subprocess.run(**heat_command(first, 50), check=True, timeout=support.LIMIT_S)
        # The copy was moved away from the original: beside it, a copy has nothing in the nodes'
        # memory.
        cls.made = Tiers(first.root.rename(first.root.with_name("moved")))

    def setUp(self):
        super().setUp()
        self.tiers = self.made.copy(self.scratch / "tiers")

    def versions(self, *arguments, status=0):
        jobs = self.report(*arguments, tiers=self.tiers, status=status)["jobs"]
        self.assertEqual(len(jobs), 1)
        return {version["version"]: version for version in jobs[0]["versions"]}

    def image(self, node, version, rank):
        return self.tiers.file(f"memory/*/{node}/v{version}-*/r{rank}.img")

    # ---- many versions ----

    def test_the_time_that_verify_takes_grows_with_the_versions_and_not_with_their_square(self):
        """The files that are opened are counted in a tenth and in all of the damaged
        versions; no clock is asked."""
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed, which counts the calls")
        global_ = self.tiers.file("global/*/")
        whole = self.tiers.file("global/*/v50-*")
        opened = []
        for most in (20, 200):
            for number in range(len(self.tiers.files("global/*/v9*-*")), most):
                copy = global_ / whole.name.replace("v50-", f"v9{number:03}-")
                copy.mkdir(mode=0o700)
                for file in whole.iterdir():
                    (copy / file.name).write_bytes(b"damaged")
            done = subprocess.run(["strace", "-f", "-c", "-e", "trace=openat", support.DIAPAUSE,
                                   "verify", "--json"],
                                  env=support.environment(**self.tiers.settings()),
                                  capture_output=True, text=True, timeout=support.LIMIT_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            opened.append(int(next(line for line in done.stderr.splitlines()
                                   if line.endswith("openat")).split()[3]))
        self.assertLess(opened[1], 10 * opened[0])

    # ---- list ----

    def test_list_tells_level_place_and_size_of_every_version(self):
        listed = self.versions("list")
        self.assertEqual({number: version["levels"] for number, version in listed.items()}, LEVELS)
        for number, version in listed.items():
            self.assertEqual(version["state"], "complete")
            self.assertEqual(version["ranks"], 8)
            self.assertEqual(version["data_bytes"], SIZE * SIZE * 8)
            self.assertEqual(
                [part["node"] for part in version["parts"] if part["tier"] == "memory"], NODES)
            self.assertEqual(any(part["tier"] == "global" for part in version["parts"]),
                             number == 50)
            files = (
                self.tiers.files(f"*/*/v{number}-*/*") + self.tiers.files(f"*/*/*/v{number}-*/*"))
            self.assertEqual(version["stored_bytes"], sum(file.stat().st_size for file in files))

    def test_list_counts_partner_copies_and_parity_apart(self):
        listed = self.versions("list")
        image = self.image("node0", 10, 0).stat().st_size
        parities = self.tiers.files("memory/*/*/v30-*/g*-p*.img")
        parity = sum(file.stat().st_size for file in parities)
        self.assertGreater(parity, 0)
        of_all_ranks = {10: (1, 0, 0), 20: (1, 1, 0), 30: (1, 0, parity), 40: (1, 0, 0),
                        50: (2, 0, 0)}
        for number, (images, copies, parity_bytes) in of_all_ranks.items():
            version = listed[number]
            kinds = ("image_bytes", "copy_bytes", "parity_bytes")
            self.assertEqual([version[kind] for kind in kinds],
                             [8 * images * image, 8 * copies * image, parity_bytes], number)
            for kind in ("stored_bytes", *kinds):
                self.assertEqual(sum(part[kind] for part in version["parts"]), version[kind])
        (job,) = self.report("jobs", tiers=self.tiers)["jobs"]
        self.assertEqual((job["copy_bytes"], job["parity_bytes"]), (8 * image, parity))

    def test_list_shows_the_newest_first_in_a_table(self):
        text, _ = self.diapause("list", tiers=self.tiers)
        lines = text.splitlines()
        self.assertEqual([line.split()[1] for line in lines],
                         ["VERSION", "50", "40", "30", "20", "10"])
        self.assert_in_order(
            ["1 4", "18.0 MiB", "complete", "memory node0 node1 node2 node3, global"], lines[1])

    def test_list_names_a_checkpoint_that_did_not_come_to_its_end(self):
        unfinished = self.tiers.file("memory/*/node1") / f"v60-i1-{'ab' * 16}"
        unfinished.mkdir(mode=0o700)
        self.assertEqual(self.versions("list")[60]["state"], "unfinished")

    def test_list_calls_a_version_partial_when_parts_are_lost(self):
        shutil.rmtree(self.tiers.file("memory/*/node2"))
        states = {number: version["state"] for number, version in self.versions("list").items()}
        self.assertEqual(states, {
            10: "partial", 20: "complete", 30: "complete", 40: "partial", 50: "complete"})

    def test_list_says_which_manifest_is_damaged(self):
        manifest = self.tiers.file("memory/*/node3/v20-*/manifest.b")
        flip(manifest, 40)
        self.assertIn(str(manifest), "".join(self.versions("list")[20]["problems"]))
        self.assertIn("complete, manifest damaged", self.diapause("list", tiers=self.tiers)[0])

    def test_list_calls_a_version_damaged_when_no_manifest_is_left(self):
        for manifest in self.tiers.files("memory/*/*/v40-*/manifest.*"):
            flip(manifest, 40)
        self.assertEqual(self.versions("list")[40]["state"], "damaged")

    def test_list_leaves_strange_things_alone(self):
        node = self.tiers.file("memory/*/node0")
        (node / "v7-i1-nothex").mkdir()
        (node / f"v8-i1-{'cd' * 16}").symlink_to("/etc")
        (self.tiers.memory / "no-job").mkdir()
        text, _ = self.diapause("list", tiers=self.tiers)
        self.assertNotIn("nothex", text)
        self.assertNotIn("no-job", text)

    def test_reading_changes_nothing(self):
        def picture():
            return {path: path.stat().st_mtime_ns for path in self.tiers.root.rglob("*")}

        before = picture()
        for verb in (["list"], ["show", "heat"], ["verify"]):
            self.diapause(*verb, tiers=self.tiers)
        self.assertEqual(picture(), before)

    # ---- show ----

    def test_show_tells_partners_groups_and_regions(self):
        partners = self.report("show", "heat", "20", tiers=self.tiers)["ranks"]
        self.assertEqual([rank["partner"] for rank in partners], [2, 3, 4, 5, 6, 7, 0, 1])
        self.assertEqual(partners[7]["found_in"], ["memory node0", "memory node3"])
        with_parity = self.report("show", "heat", "30", tiers=self.tiers)
        self.assertEqual(with_parity["copy_bytes"], 0)
        self.assertIn(f"partner copies 0 B, parity {with_parity['parity_bytes'] / 2**20:.1f} MiB",
                      self.diapause("show", "heat", "30", tiers=self.tiers)[0])
        self.assertEqual([[member["rank"] for member in group["members"]]
                          for group in with_parity["groups"]],
                         [[0, 2, 4, 6], [1, 3, 5, 7]])
        region = with_parity["ranks"][0]["regions"][0]
        self.assertEqual([region["name"], region["type"], region["count"]],
                         ["field", "float64", SIZE * SIZE // 8])
        self.assertEqual([dim["global_shape"] for dim in region["place"]], [SIZE, SIZE])

    def test_show_takes_the_newest_version_unless_told(self):
        text, _ = self.diapause("show", "heat", tiers=self.tiers)
        self.assert_in_order(
            ["version      50", "levels       1 4", "RANKS", "field", "float64", "0-7"], text)

    def test_show_tells_the_energy_of_the_checkpoint_as_the_ledger_does(self):
        told = self.report("show", "heat", 50, tiers=self.tiers)["energy"]
        phases = [phase for phase in self.report("energy", "heat", tiers=self.tiers)["phases"]
                  if phase["version"] == 50 and phase["for"] == "checkpoint"]
        self.assertAlmostEqual(told["joules"], sum(phase["joules"] for phase in phases))
        text, _ = self.diapause("show", "heat", 50, tiers=self.tiers)
        self.assertIn(f"s of its checkpoint, {told['kind']}", text)
        self.assertRegex(text, r"off by at most: .* J as samples are apart, .* by the source "
                               r"itself, .* J by who is charged")
        self.tiers.file("global/*/ledger.jsonl").unlink()
        self.assertNotIn("energy", self.report("show", "heat", 50, tiers=self.tiers))

    def test_show_has_one_line_for_ranks_that_are_alike(self):
        text, _ = self.diapause("show", "heat", "20", tiers=self.tiers)
        lines = [line.split() for line in text.splitlines()]
        ranks = lines[[line[:1] for line in lines].index(["RANKS"]) + 1:][:5]
        self.assertEqual([line[:5] for line in ranks[:4]], [
            [f"{2 * n}-{2 * n + 1}", f"node{n}", f"{(2 * n + 2) % 8}-{(2 * n + 3) % 8}", "on",
             f"node{(n + 1) % 4}"] for n in range(4)])

    def test_show_refuses_what_is_not_there(self):
        self.assertIn("no job 'cold'", self.diapause("show", "cold", tiers=self.tiers, status=3)[1])
        self.assertIn("no version 51",
                      self.diapause("show", "heat", "51", tiers=self.tiers, status=3)[1])

    # ---- export ----

    def test_export_gives_the_global_array_that_the_program_had(self):
        out, _ = self.diapause("export", "heat", "--to", "arrays", tiers=self.tiers)
        self.assertEqual(out, f"{self.scratch}/arrays/field.npy\n")
        array = (self.scratch / "arrays/field.npy").read_bytes()
        head, data = array[:128], array[128:]
        self.assertIn(
            f"'descr': '<f8', 'fortran_order': False, 'shape': ({SIZE}, {SIZE}), ".encode(), head)
        self.assertEqual(data, (self.tiers.root / "result").read_bytes())
        about = support.json.loads((self.scratch / "arrays/version.json").read_text())
        self.assertEqual((about["version"], about["state"]), (50, "complete"))
        _, errors = self.diapause("export", "heat", 40, "--to", "arrays", tiers=self.tiers,
                                  status=3)
        self.assertIn("arrays holds a version that was exported before", errors)
        self.assertEqual((self.scratch / "arrays/field.npy").read_bytes(), array)

    def test_export_takes_another_copy_of_what_is_damaged_and_never_damaged_data(self):
        for tier in ("memory/*/node0/v50-*/r0.img", "global/*/v50-*/*"):
            files = [file for file in self.tiers.files(tier) if "manifest" not in file.name]
            flip(files[0], HEADER_BYTES + 5)
            status = 0 if tier.startswith("memory") else 2
            _, errors = self.diapause("export", "heat", 50, "--to", f"arrays{status}",
                                      tiers=self.tiers, status=status)
            if status == 0:
                self.assertTrue((self.scratch / "arrays0/field.npy").read_bytes().endswith(
                    (self.tiers.root / "result").read_bytes()))
        self.assertIn("damaged", errors)
        self.assertFalse((self.scratch / "arrays2/field.npy").exists())

    def test_export_makes_an_image_for_viewers(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import numpy"],
                          capture_output=True).returncode != 0:
            self.skipTest("the Python of this machine has no numpy")
        self.diapause("export", "heat", "--to", "heat.vti", tiers=self.tiers)
        head, _, data = (self.scratch / "heat.vti").read_bytes().partition(b'encoding="raw">\n_')
        self.assertIn(f'WholeExtent="0 {SIZE - 1} 0 {SIZE - 1} 0 0"'.encode(), head)
        self.assertIn(b'<DataArray type="Float64" Name="field" format="appended" offset="0"/>',
                      head)
        result = (self.tiers.root / "result").read_bytes()
        self.assertEqual(data[:8 + len(result)], len(result).to_bytes(8, "little") + result)
        self.assertEqual([path.name for path in self.scratch.iterdir() if "heat" in path.name],
                         ["heat.vti"])

    def python_with(self, *modules):
        """A Python that has them; skips the test where there is none."""
        for python in ("python3", "/usr/bin/python3"):
            if subprocess.run([python, "-c", f"import {', '.join(modules)}"],
                              capture_output=True).returncode == 0:
                return python
        self.skipTest(f"no Python here has {', '.join(modules)}")

    def test_export_makes_a_file_of_hdf5(self):
        python = self.python_with("numpy", "h5py")
        self.diapause("export", "heat", 40, "--to", "heat.h5", tiers=self.tiers)
        script = ("import h5py, sys\n"
                  "with h5py.File('heat.h5') as file:\n"
                  "    print(list(file), file['field'].shape, file['field'].dtype, {k: str(v) for "
                  "k, v in file.attrs.items()})\n"
                  "    file['field'][:].tofile('field')\n")
        done = subprocess.run([python, "-c", script], cwd=self.scratch, capture_output=True,
                              text=True)
        self.assert_in_order([f"['field'] ({SIZE}, {SIZE}) float64", "'energy_attribution_j'",
                              "'energy_bound': '", "'energy_domain': 'node'", "'energy_j'",
                              "'energy_kind': 'modelled'", "'energy_sampling_j'",
                              "'energy_source': 'model generic'",
                              "'ranks': '8'", "'version': '40'"],
                             done.stdout)
        self.diapause("export", "heat", 40, "--to", "arrays", tiers=self.tiers)
        self.assertEqual((self.scratch / "field").read_bytes(),
                         (self.scratch / "arrays/field.npy").read_bytes()[128:])
        self.assertEqual([path.name for path in self.scratch.iterdir() if "heat" in path.name],
                         ["heat.h5"])

    def test_an_export_that_fails_leaves_nothing_behind(self):
        """The data has been written beside the file by then."""
        broken = self.scratch / "broken"
        broken.mkdir()
        (broken / "h5py.py").write_text(
            "raise ModuleNotFoundError('it cannot be loaded', name='h5py')\n")
        for settings, word in (({"PYTHONPATH": broken}, "h5py"),
                               ({"PATH": broken}, "cannot run python3")):
            _, errors = self.diapause("export", "heat", 40, "--to", "heat.h5", tiers=self.tiers,
                                      status=3, **settings)
            self.assertIn(word, errors)
        for file in self.tiers.files("memory/*/node*/v40-*/r3.img"):
            flip(file, HEADER_BYTES + 5)
        self.assertIn("damaged",
                      self.diapause("export", "heat", 40, "--to", "heat.h5", tiers=self.tiers,
                                    status=2)[1])
        self.assertEqual([path.name for path in self.scratch.iterdir() if "heat" in path.name], [])
        done = self.python_of_the_package(
            "import diapause\n"
            "try: diapause.open_version('heat', 40)\n"
            "except diapause.CorruptError as error: print('damaged:', error)\n")
        self.assert_in_order(["damaged: ", "r3.img"], done.stdout + done.stderr)

    def test_export_rebuilds_from_parity_what_no_tier_has(self):
        arrays = []
        for number, lost in enumerate(((), (1,), (1, 2))):
            for node in lost:
                for path in self.tiers.files(f"memory/*/node{node}"):
                    shutil.rmtree(path)
            to = self.scratch / f"rebuilt{number}"
            _, errors = self.diapause("export", "heat", 30, "--to", to, tiers=self.tiers,
                                      status=3 if len(lost) > 1 else 0)
            if len(lost) <= 1:
                arrays.append((to / "field.npy").read_bytes())
        self.assertEqual(*arrays)
        self.assertIn("that it could be rebuilt from only", errors)

    def test_export_gives_the_files_of_the_program(self):
        tiers = Tiers(self.scratch / "of_files")
        tiers.root.mkdir()
        # It ends in the middle: the version may be published by then, or only captured.
        stopped = subprocess.run([support.FILES], cwd=tiers.root, capture_output=True,
                                 env=support.environment(**tiers.settings()))
        self.assertEqual(stopped.returncode, 3)
        self.diapause("export", "files", 40, "--to", "out", tiers=tiers)
        self.assertEqual((self.scratch / "out/files/r0/state.txt").read_text(),
                         f"40 {40 * 41 // 2}\n")
        python = self.python_with("numpy", "h5py")
        self.diapause("export", "files", 40, "--to", "out.h5", tiers=tiers)
        script = "import h5py; print(bytes(h5py.File('out.h5')['files/r0/state.txt'][:]))"
        done = subprocess.run([python, "-c", script], cwd=self.scratch, capture_output=True,
                              text=True)
        self.assertEqual(done.stdout, f"b'40 {40 * 41 // 2}\\n'\n")

    def python_of_the_package(self, script, tiers=None, **settings):
        package = pathlib.Path(__file__).resolve().parents[2] / "python"
        environment = support.environment(DIAPAUSE_COMMAND=support.DIAPAUSE, PYTHONPATH=package,
                                          **(tiers or self.tiers).settings(), **settings)
        return subprocess.run([self.python_with("numpy"), "-B", "-c", script], cwd=self.scratch,
                              capture_output=True, text=True, env=environment)

    def test_python_gives_bytes_the_type_that_they_have(self):
        script = ("import numpy, diapause\n"
                  "waves = numpy.array([1 + 2j, 3j, 4])\n"
                  "halves = numpy.array([0.5, 2], numpy.float16)\n"
                  "mask = numpy.array([True, False])\n"
                  "with diapause.open('types') as run:\n"
                  "    for name in ('waves', 'halves', 'mask'):\n"
                  "        run.protect(name, globals()[name])\n"
                  "    run.checkpoint(1)\n"
                  "types = {'waves': 'complex128', 'halves': 'float16', 'mask': bool}\n"
                  "with diapause.open_version('types', dtypes=types) as version:\n"
                  "    found = [version[name][0].tolist() for name in types]\n"
                  "    print(found == [waves.tolist(), halves.tolist(), mask.tolist()], found)\n"
                  "for name, type in (('waves', 'float16'), ('waves', 'int8'), ('mask', object)):\n"
                  "    try: diapause.open_version('types', dtypes={name: type})\n"
                  "    except diapause.ArgumentError as error: print(error)\n")
        tiers = Tiers(self.scratch / "of_types")
        tiers.root.mkdir()
        done = self.python_of_the_package(
            script, tiers, DIAPAUSE_LIBRARY_PATH=support.DIAPAUSE.resolve().parent)
        self.assert_in_order(["True [[(1+2j), 3j, (4+0j)], [0.5, 2.0], [True, False]]",
                              "have 16 bytes, and those of float16 2", "cannot stand for"],
                             done.stdout + done.stderr)

    def test_python_maps_the_arrays_of_a_version(self):
        script = ("import diapause\n"
                  "with diapause.open_version('heat', 40) as version:\n"
                  "    field = version['field']\n"
                  "    print(version.number, field.shape, field.dtype, field.flags.writeable, "
                  "list(version))\n"
                  "    print(version)\n"
                  "try: diapause.open_version('cold')\n"
                  "except LookupError as error: print(error)\n"
                  "for arguments, options in (((None,), {}), (('heat', '40'), {}), (('heat',), "
                  "{'memory': 5}), (('heat',), {'disk': 'x'})):\n"
                  "    try: diapause.open_version(*arguments, **options)\n"
                  "    except TypeError as error: print(error)\n")
        done = self.python_of_the_package(script)
        self.assert_in_order([f"40 ({SIZE}, {SIZE}) float64 False ['field']",
                              "<diapause.StoredVersion 40 of heat-", ": field>", "no job 'cold'",
                              "job: a str is expected, not None",
                              "version: a whole number is expected, not str",
                              "memory: the path of a file is expected, not int", "'disk'"],
                             done.stdout + done.stderr)

    # ---- verify ----

    def restorable(self, status=0):
        return {number: version["restorable"]
                for number, version in self.versions("verify", status=status).items()}

    def test_verify_says_what_each_level_survives(self):
        found = self.restorable()
        self.assertEqual({number: one["fatal_single_nodes"] for number, one in found.items()},
                         {10: NODES, 20: [], 30: [], 40: NODES, 50: []})
        # Copies lie on the next node of the ring.
        ring = [["node0", "node1"], ["node0", "node3"], ["node1", "node2"], ["node2", "node3"]]
        self.assertEqual(found[20]["fatal_node_pairs"], {"tried": 6, "fatal": 4, "examples": ring})
        self.assertEqual([found[number]["fatal_node_pairs"]["fatal"] for number in (10, 30, 50)],
                         [6, 6, 0])
        self.assertEqual([number for number, one in found.items() if one["without_any_node"]], [50])

    def test_verify_names_the_damaged_block_and_counts_on_what_is_left(self):
        image = self.image("node1", 30, 2)
        flip(image, HEADER_BYTES + BLOCK_BYTES + 77)
        version = self.versions("verify", status=1)[30]
        self.assertEqual(version["damages"],
                         [{"path": str(image), "what": "block 1 of region 'field' is damaged"}])
        self.assertEqual(version["restorable"]["sources"][2], "parity")
        self.assertEqual(version["restorable"]["fatal_single_nodes"], ["node0", "node2", "node3"])

    def test_verify_names_every_damaged_block(self):
        image = self.image("node0", 10, 0)
        for block in (0, 1, 2):
            flip(image, HEADER_BYTES + block * BLOCK_BYTES)
        version = self.versions("verify", status=1)[10]
        self.assertEqual([damage["what"] for damage in version["damages"]],
                         ["blocks 0-2 of region 'field' are damaged"])
        self.assertEqual(version["restorable"]["missing_ranks"], [0])

    def test_verify_finds_damage_in_copies_parity_and_global_images(self):
        copy = self.image("node2", 20, 2)
        parity = self.tiers.file("memory/*/node3/v30-*/g1-p3.img")
        in_global = self.tiers.file("global/*/v50-*/r5.img")
        for path in (copy, parity, in_global):
            flip(path, HEADER_BYTES + 5)
        found = self.versions("verify", status=1)
        self.assertEqual([found[number]["damages"][0]["path"] for number in (20, 30, 50)],
                         [str(copy), str(parity), str(in_global)])
        self.assertEqual(found[20]["restorable"]["fatal_single_nodes"], ["node1"])
        self.assertEqual(found[50]["restorable"]["fatal_single_nodes"], ["node2"])
        self.assertFalse(found[50]["restorable"]["without_any_node"])

    def test_verify_finds_truncated_missing_and_foreign_files(self):
        cut, gone, foreign = (self.image("node0", 10, 1), self.image("node1", 10, 2),
                              self.image("node2", 10, 4))
        os.truncate(own(cut), 5000)
        gone.unlink()
        shutil.copyfile(self.image("node2", 40, 4), own(foreign))
        damages = {damage["path"]: damage["what"]
                   for damage in self.versions("verify", status=1)[10]["damages"]}
        self.assertEqual(set(damages), {str(cut), str(gone), str(foreign)})
        self.assertIn("ends after 5000", damages[str(cut)])
        self.assertEqual(damages[str(gone)], "is missing")
        self.assertIn("another checkpoint", damages[str(foreign)])

    def test_verify_finds_damaged_and_missing_manifests(self):
        damaged = self.tiers.file("memory/*/node0/v20-*/manifest.a")
        flip(damaged, 40)
        missing = self.tiers.file("memory/*/node1/v20-*/manifest.b")
        missing.unlink()
        version = self.versions("verify", status=1)[20]
        text = str(version["damages"])
        self.assertIn(str(damaged), text)
        self.assertIn("manifest.b is missing", text)
        self.assertTrue(version["restorable"]["now"])

    def test_verify_takes_a_version_that_a_running_job_half_published_for_no_damage(self):
        self.tiers.file("memory/*/node1/v20-*/manifest.b").unlink()
        with open(self.tiers.file("memory/*/node1/lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            version = self.versions("verify", status=0)[20]
        self.assertTrue(version["changed_while_read"])
        version = self.versions("verify", status=1)[20]
        self.assertFalse(version["changed_while_read"])
        self.assertIn("manifest.b is missing", str(version["damages"]))

    def test_verify_ends_with_2_when_the_newest_version_is_lost(self):
        flip(self.image("node0", 50, 0), HEADER_BYTES)
        flip(self.tiers.file("global/*/v50-*/r0.img"), HEADER_BYTES)
        self.assertEqual(self.restorable(status=2)[50]["missing_ranks"], [0])
        text, _ = self.diapause("verify", "heat", tiers=self.tiers, status=2)
        self.assert_in_order(["version 50", "DAMAGED",
                              "CANNOT be restored: no intact image of rank 0", "version 40"],
                             text)

    def test_verify_looks_at_one_version_if_told(self):
        flip(self.image("node0", 10, 0), HEADER_BYTES)
        self.diapause("verify", "heat", "20", tiers=self.tiers)
        self.diapause("verify", "heat", "10", tiers=self.tiers, status=2)
        self.assertIn("there is no version 7 of 'heat'",
                      self.diapause("verify", "heat", "7", tiers=self.tiers, status=3)[0])

    def test_what_is_no_version_number_is_refused(self):
        for number in ("-1", " -1", "18446744073709551616", "1x"):
            out = self.diapause("show", "heat", number, tiers=self.tiers, status=3)
            self.assertIn(f"'{number}' is not a number from 0 to 18446744073709551615", out[1])

    def test_verify_of_nothing_is_no_success(self):
        empty = Tiers(self.scratch / "empty")
        self.assertIn("nothing to verify", self.diapause("verify", tiers=empty, status=3)[0])
        self.assertIn("no checkpoints in", self.diapause("list", tiers=empty)[0])

    def test_a_running_job_is_neither_disturbed_nor_called_damaged(self):
        tiers = Tiers(self.scratch / "running")
        tiers.root.mkdir(mode=0o700)
        # The program is ended when its versions were looked at often enough.
        command = heat_command(tiers, iterations=100_000, size=256, ms_per_iteration=20)
        command["env"] |= {f"DIAPAUSE_LEVEL{level}_KEEP": "1" for level in (1, 2, 3, 4)}
        command["env"] |= {"DIAPAUSE_LEVEL1_EVERY_CALLS": "2"}
        job = subprocess.Popen(**command)
        self.addCleanup(lambda: job.poll() is None and (job.terminate(), job.wait()))
        looks = 0
        while looks < 8:
            self.assertIsNone(job.poll(), "the job ended by itself")
            self.diapause("list", tiers=tiers)
            if any(tiers.memory.glob("*/node3/*/manifest.b")):
                found = self.report_while_running(tiers)
                damages = [v["damages"]
                           for v in found if not v["changed_while_read"] and v["damages"]]
                self.assertEqual(damages, [])
                looks += 1

    def report_while_running(self, tiers):
        done = subprocess.run([support.DIAPAUSE, "verify", "--json"],
                              env=support.environment(**tiers.settings()), capture_output=True,
                              text=True, timeout=support.LIMIT_S)
        return [version
                for job in support.json.loads(done.stdout)["jobs"] for version in job["versions"]]


if __name__ == "__main__":
    support.main()
