"""The binding in one process: what is protected comes back, and what must be refused is."""

import array
import ctypes
import importlib.util
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import weakref
from unittest import mock

import numpy

import diapause
from diapause import memory

PACKAGE = pathlib.Path(diapause.__file__).resolve().parents[1]


class InADirectory(unittest.TestCase):
    """With checkpoints in a directory of the test's own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="diapause-python-")
        self.addCleanup(holder.cleanup)
        self.path = pathlib.Path(holder.name)
        self.configure("")

    def configure(self, more):
        self.config = self.path / "diapause.toml"
        self.config.write_text(f'[memory]\npath = "{self.path}/memory"\n[global]\npath = '
                               f'"{self.path}/global"\n' + more)

    def open(self, name="test"):
        run = diapause.open(name, config=self.config)
        self.addCleanup(run.close)
        return run

    def stored_and_back(self, data):
        """Returns what comes back of a writable object after everything in it was overwritten."""
        with self.open() as run:
            run.protect("data", data)
            run.checkpoint(1)
            size = memoryview(data).nbytes
            place = memory.memory_of("data", data).address
            ctypes.memset(place, 0xEE, size)
            self.assertEqual(run.restart().version, 1)
        return data


class Files(InADirectory):
    def test_what_the_body_wrote_comes_back(self):
        with self.open() as run:
            with run.files(1) as directory:
                (directory / "below").mkdir()
                (directory / "below/field.npy").write_bytes(b"as any library writes it")
                (directory / "empty").touch()
            self.assertEqual(list(directory.iterdir()), [])
        self.assertFalse(directory.exists())
        with self.open() as run:
            self.assertEqual(run.restart_begin().version, 1)
            found = run.restore_files()
            self.assertEqual((found / "below/field.npy").read_bytes(), b"as any library writes it")
            self.assertEqual((found / "empty").read_bytes(), b"")
            run.restart_end()
            self.assertEqual(list(found.iterdir()), [])
        self.assertFalse(found.exists())

    def test_a_body_that_raises_makes_no_version(self):
        with self.open() as run:
            with self.assertRaises(KeyError), run.files(1) as directory:
                (directory / "half").touch()
                raise KeyError
            self.assertIsNone(run.restart())
            for make in (lambda path: path.symlink_to("/etc/passwd"),
                         lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to("/"),
                         lambda path: path.hardlink_to(other_file(path)), os.mkfifo, bind_socket):
                with self.assertRaisesRegex(PermissionError, "below/it"), \
                        run.files(2) as directory:
                    (directory / "below").mkdir()
                    make(directory / "below/it")
                self.assertIsNone(run.restart())
            with run.files(3):  # and the next one goes well
                pass
            self.assertEqual(run.restart().version, 3)


def other_file(path):
    other = path.with_name("other")
    other.touch()
    return other


def bind_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


class Protecting(InADirectory):
    def test_arrays_of_every_type_come_back(self):
        for kind in ("i1", "u2", "i4", "u8", "f2", "f4", "f8", "c16", "?", "S5", "U3", ">i4", "V7",
                     "i4,f8", "M8[s]"):
            before = numpy.frombuffer(bytes(range(1, 241)), "u1").copy()
            values = before[: 240 // numpy.dtype(kind).itemsize * numpy.dtype(kind).itemsize].view(
                kind)
            wanted = values.tobytes()
            with self.subTest(kind), self.open("types") as run:
                run.protect("values", values)
                run.checkpoint(1)
                before[:] = 0
                run.restart()
                self.assertEqual(values.tobytes(), wanted)

    def test_other_buffers_come_back(self):
        self.assertEqual(self.stored_and_back(array.array("d", [1.5, 2.5])),
                         array.array("d", [1.5, 2.5]))
        self.assertEqual(self.stored_and_back(bytearray(b"seven bytes")), bytearray(b"seven bytes"))
        self.assertEqual(self.stored_and_back(memoryview(bytearray(b"view"))).tobytes(), b"view")
        self.assertEqual(list(self.stored_and_back((ctypes.c_int * 3)(4, 5, 6))), [4, 5, 6])
        fortran = numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4))
        numpy.testing.assert_array_equal(self.stored_and_back(fortran),
                                         numpy.arange(12.0).reshape(3, 4))

    def test_numbers_are_stored_as_numbers_and_the_rest_as_it_is(self):
        kinds = {"i1": memory.INT8,
                 "u2": memory.UINT16,
                 "i8": memory.INT64,
                 "u8": memory.UINT64,
                 "f4": memory.FLOAT32,
                 "f8": memory.FLOAT64,
                 "f2": memory.BYTES,
                 "c8": memory.BYTES,
                 "?": memory.BYTES,
                 ">f8": memory.BYTES}
        for kind, wanted in kinds.items():
            found = memory.memory_of("x", numpy.zeros(4, kind))
            self.assertEqual((found.type, found.count, found.element_bytes),
                             (wanted, 4, numpy.dtype(kind).itemsize))

    def test_an_empty_array_is_a_region(self):
        with self.open() as run:
            run.protect("nothing", numpy.zeros((0, 3)))
            run.checkpoint(1)
            run.restart_begin()
            self.assertEqual([(region.name, region.count) for region in run.stored()],
                             [("nothing", 0)])
            run.restart_end()

    def test_refuses_what_would_come_back_wrong(self):
        constant = numpy.zeros(3)
        constant.flags.writeable = False
        for data, word in ((numpy.zeros((4, 4))[:, 1], "contiguous"), (constant, "read-only"),
                           (b"bytes", "read-only"),
                           (numpy.array([{}, []], dtype=object), "protect_state"),
                           ([1.0, 2.0], "no access"),
                           (numpy.zeros(2, [("d", "i4"), ("o", "O")]), "protect_state"),
                           (3.5, "no access"), (numpy.ma.array([1.0, 2.0], mask=[0, 1]), "mask")):
            with self.open() as run, self.assertRaisesRegex(diapause.ArgumentError,
                                                            "region 'x'.*" + word):
                run.protect("x", data)

    def test_memory_stays_while_it_is_protected(self):
        values = array.array("i", [1, 2, 3])
        with self.open() as run:
            run.protect("values", values)
            with self.assertRaises(BufferError):
                values.append(4)
            run.unprotect("values")
            values.append(4)

    def test_memory_stays_also_when_the_program_forgets_the_instance(self):
        class Values(array.array):
            """One that can be referred to weakly."""

        values = Values("d", [1.0])
        held = weakref.ref(values)
        run = diapause.open("forgotten", config=self.config)
        run.protect("values", values)
        forgotten = weakref.ref(run)
        del run, values
        self.assertIsNotNone(held())
        forgotten().close()
        self.assertIsNone(held())

    def test_a_tensor_is_taken_by_its_address(self):
        found = memory.memory_of("x", Tensor())
        self.assertEqual((found.address, found.count, found.type, found.is_in_c_order),
                         (Tensor.values.ctypes.data, 6, memory.FLOAT32, True))

    def test_a_tensor_in_one_piece_is_taken_in_whatever_order_its_dimensions_are(self):
        found = memory.memory_of("x", Tensor(stride=(1, 2)))
        self.assertEqual((found.count, found.is_in_c_order), (6, False))

    def test_a_tensor_whose_memory_does_not_hold_its_values_is_refused(self):
        for changed, why in (({"device": "cuda"}, "host"), ({"stride": (6, 2)}, "not contiguous"),
                             ({"stride": (0, 1)}, "not contiguous"),
                             ({"layout": "torch.sparse_coo"}, "sparse_coo"),
                             ({"is_conj": True}, "conjugate")):
            with self.subTest(changed), self.assertRaisesRegex(diapause.ArgumentError, why):
                memory.memory_of("x", Tensor(**changed))


class Tensor:
    """What is asked of a tensor of PyTorch, which need not be there."""

    dtype, shape, values = "torch.float32", (2, 3), numpy.zeros(6, "f4")

    def __init__(self, device="cpu", stride=(3, 1), layout="torch.strided", is_conj=False):
        self.device, self.layout = types.SimpleNamespace(type=device), layout
        self.stride, self.is_conj, self.is_neg = lambda: stride, lambda: is_conj, lambda: False
        self.is_contiguous = lambda: stride == (3, 1)

    element_size, numel = staticmethod(lambda: 4), staticmethod(lambda: 6)
    data_ptr = staticmethod(lambda: Tensor.values.ctypes.data)


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
class TensorsOfPyTorch(InADirectory):
    def test_tensors_of_every_kind_come_back(self):
        import torch

        tensors = {"rows": torch.arange(6.0).reshape(2, 3),
                   "columns": torch.arange(6.0).reshape(2, 3).T,
                   "half": torch.arange(6.0).bfloat16(), "truths": torch.tensor([True, False]),
                   "scalar": torch.tensor(5), "none": torch.zeros(0, 3),
                   "parameter": torch.nn.Parameter(torch.ones(3)),
                   "image": torch.arange(24.0).view(1, 2, 3, 4).contiguous(
                       memory_format=torch.channels_last)}
        wanted = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        with self.open() as run:
            for name, tensor in tensors.items():
                run.protect(name, tensor)
            run.checkpoint(1)
            for tensor in tensors.values():
                tensor.data.zero_()
            run.restart()
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(tensor, wanted[name]), name)

    def test_tensors_without_memory_of_their_own_are_refused(self):
        import torch

        for tensor in (torch.eye(3).to_sparse(), torch.ones(1, 3).expand(4, 3),
                       torch.ones(3, device="meta"), (torch.arange(3.0) + 1j).conj()):
            with self.assertRaises(diapause.ArgumentError):
                memory.memory_of("x", tensor)


class Growing(InADirectory):
    def test_an_attribute_that_is_replaced_is_followed_and_made_anew(self):
        class Model:
            particles = numpy.arange(6.0).reshape(2, 3)

        self.configure("[level1]\nkeep = 2\n")
        model, items = Model(), {"list": numpy.zeros(0, "i4")}
        with self.open() as run:
            run.protect_attribute(model, "particles")
            run.protect_attribute(items, "list", "items")
            run.checkpoint(1)
            model.particles, items["list"] = (numpy.arange(15.0).reshape(5, 3),
                                              numpy.arange(7, dtype="i4"))
            run.checkpoint(2)
        model.particles, items["list"] = numpy.zeros((1, 3)), numpy.zeros(1, "i4")
        with self.open() as run:
            run.protect_attribute(model, "particles")
            run.protect_attribute(items, "list", "items")
            run.restart()
            numpy.testing.assert_array_equal(model.particles, numpy.arange(15.0).reshape(5, 3))
            self.assertEqual(items["list"].tolist(), list(range(7)))
            run.restart(1)
            self.assertEqual((model.particles.shape, items["list"].size), ((2, 3), 0))
            model.particles = numpy.zeros((1, 7))
            with self.assertRaisesRegex(diapause.MismatchError, "particles"):
                run.restart()
            with self.assertRaisesRegex(diapause.ArgumentError, "restart"):
                run.restart_end()  # it is closed already

    def test_an_attribute_comes_back_in_its_order_and_with_its_dimensions(self):
        before = {"fortran": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
                  "number": numpy.array(5.0),
                  "c": numpy.arange(6.0).reshape(2, 3),
                  "row": numpy.arange(3.0).reshape(1, 3)}
        items = dict(before)
        with self.open() as run:
            for name in items:
                run.protect_attribute(items, name)
            run.checkpoint(1)
            run.restart()
        for name, wanted in before.items():
            self.assertIsNot(items[name], wanted)
            numpy.testing.assert_array_equal(items[name], wanted, name)
            self.assertEqual((items[name].shape, items[name].flags.f_contiguous),
                             (wanted.shape, wanted.flags.f_contiguous), name)

    def test_an_attribute_that_is_replaced_by_another_kind_is_refused(self):
        first = numpy.arange(6.0).reshape(2, 3)
        with self.open() as run:
            for other in (numpy.zeros((2, 6)), numpy.zeros(6), numpy.zeros((2, 3), "f4"),
                          numpy.zeros((2, 3), order="F")):
                items = {"x": first}
                run.protect_attribute(items, "x")
                items["x"] = other
                with self.assertRaisesRegex(diapause.ArgumentError,
                                            "region 'x': the array has been replaced"):
                    run.checkpoint(1)
            with self.assertRaisesRegex(TypeError,
                                        "region 'x': a NumPy array is expected, not list"):
                items["x"] = [1.0]
                run.checkpoint(1)
            with self.assertRaisesRegex(TypeError,
                                        "region 'values': a NumPy array is expected, not array"):
                run.protect_attribute({"values": array.array("d", [1.0])}, "values")

    def test_a_checkpoint_that_fails_does_not_end_the_steps(self):
        total = numpy.zeros(1)
        self.configure('[level1]\nevery_calls = 1\n[async]\nmode = "off"\n')
        with self.assertLogs("diapause", logging.ERROR) as logs, self.open() as run:
            run.protect("total", total)
            for step in run.steps(3):
                total += 1
                if step == 1:
                    for folder in (self.path / "memory").iterdir():
                        shutil.rmtree(folder)
                    shutil.rmtree(self.path / "memory")
                    (self.path / "memory").write_text("no directory")
        self.assertEqual(total[0], 3)
        self.assertIn("going on without a checkpoint of step 2", "".join(logs.output))


class Gone:
    """A state holds this, and the program that restarts from it does not have it."""


class States(InADirectory):
    def test_a_state_comes_back_as_it_was(self):
        state = {"seed": 5, "history": [1.0], "name": "a"}
        with self.open() as run:
            run.protect_state(state)
            state["history"].append(2.5)
            run.checkpoint(1)
        fresh = {"other": True}
        with self.open() as run:
            run.protect_state(fresh)
            run.restart()
        self.assertEqual(fresh, {"seed": 5, "history": [1.0, 2.5], "name": "a"})

    def test_a_state_that_is_too_long_is_refused(self):
        state = {"text": ""}
        with self.open() as run:
            run.protect_state(state, most_bytes=1000)
            state["text"] = "x" * 2000
            with self.assertRaisesRegex(diapause.ArgumentError, "1000 are allowed"):
                run.checkpoint(1)

    def test_what_cannot_be_a_state_is_refused(self):
        with self.open() as run:
            for values in ([1, 2], None, "text"):
                with self.assertRaisesRegex(TypeError,
                                            "region 'python.state': a dictionary is expected"):
                    run.protect_state(values)
            with self.assertRaisesRegex(TypeError, "most_bytes: a whole number is expected"):
                run.protect_state({}, most_bytes="1 MB")
            with self.assertRaisesRegex(
                    diapause.ArgumentError,
                    "region 'python.state': the state cannot be pickled: .*lambda"):
                run.protect_state({"function": lambda: 1})

    def test_a_state_of_a_class_that_is_gone_is_refused_by_its_region(self):
        with self.open() as run:
            run.protect_state({"value": Gone()})
            run.checkpoint(1)
        state = {"untouched": True}
        with self.open() as run, mock.patch.dict(globals()):
            del globals()["Gone"]
            run.protect_state(state)
            with self.assertRaisesRegex(
                    diapause.MismatchError,
                    "region 'python.state': the state cannot be unpickled: .*Gone"):
                run.restart()
        self.assertEqual(state, {"untouched": True})

    def test_a_name_that_is_protected_anew_stands_for_the_new_data_alone(self):
        new, items = numpy.arange(3.0), {"x": numpy.zeros(3), "y": numpy.zeros(3)}
        with self.open() as run:
            run.protect_attribute(items, "x")
            run.protect("x", new)
            run.protect_state({"old": True}, region="y")
            run.protect_attribute(items, "y")
            run.checkpoint(1)
            new[:] = -1
            run.restart()
        self.assertEqual((new.tolist(), items["x"].tolist(), items["y"].tolist()),
                         ([0, 1, 2], [0, 0, 0], [0, 0, 0]))

    def test_nothing_is_unpickled_that_is_no_state_or_damaged(self):
        class Trap:
            def __reduce__(self):
                return os.mkdir, (str(trap),)

        trap = self.path / "sprung"
        with self.open() as run:
            run.protect_state({"trap": Trap()})
            run.checkpoint(1)
        for image in self.path.glob("memory/**/v1-*/*"):
            if image.is_file():
                data = bytearray(image.read_bytes())
                data[len(data) // 2] ^= 0x10
                image.write_bytes(data)
        with self.open() as run:
            run.protect_state({})
            with self.assertRaises(diapause.DiapauseError):
                run.restart()
        self.assertFalse(trap.exists())
        with self.open("other") as run:
            run.protect("python.state", numpy.frombuffer(bytearray(b"no state of Python"), "S1"))
            run.checkpoint(1)
            run.unprotect("python.state")
            run.protect_state({})
            with self.assertRaisesRegex(diapause.MismatchError, "holds no state"):
                run.restart()

    @unittest.skipIf(os.geteuid() != 0, "only root can give a file to somebody else")
    def test_nothing_is_unpickled_from_a_file_of_another_user(self):
        for tier, level in (("memory", 1), ("global", 4)):
            with self.subTest(tier):
                with self.open(tier) as run:
                    run.protect_state({"level": level})
                    run.checkpoint(1, level)
                if tier == "global":
                    shutil.rmtree(self.path / "memory")
                for place in (self.path / tier).rglob("*"):
                    os.chown(place, 12345, 12345)
                state = {"untouched": True}
                with self.assertRaises(diapause.DiapauseError), self.open(tier) as run:
                    run.protect_state(state)
                    if run.restart() is None:
                        raise diapause.NotFoundError("nothing")
                self.assertEqual(state, {"untouched": True})


class Running(InADirectory):
    def test_steps_hide_the_loop_and_go_on_after_an_exception(self):
        self.configure("[level1]\nevery_calls = 10\n")
        total = numpy.zeros(1)
        with self.assertRaises(ZeroDivisionError), self.open() as run:
            run.protect("total", total)
            for step in run.steps(50):
                total += step
                if step == 34:
                    raise ZeroDivisionError
        total[:] = -1
        seen = []
        with self.open() as run:
            run.protect("total", total)
            for step in run.steps(50):
                seen.append(step)
                total += step
        self.assertEqual((seen[0], seen[-1], total[0]), (30, 49, sum(range(50))))

    def test_a_job_that_is_finished_begins_anew(self):
        for end, is_there in (("close", True), ("finish", False)):
            with self.open(end) as run:
                run.protect("x", numpy.zeros(4))
                run.checkpoint(1)
                getattr(run, end)()
            with self.open(end) as run:
                run.protect("x", numpy.zeros(4))
                self.assertEqual(run.restart() is not None, is_there)

    def test_what_an_instance_cannot_do_any_more_or_without_mpi_is_refused(self):
        with self.open() as run:
            with self.assertRaisesRegex(diapause.ArgumentError,
                                        "instance 'test' has no communicator"):
                run.comm
        with self.assertRaisesRegex(diapause.ArgumentError, "closed"):
            run.finish()  # the job would go on from its versions
        run.close()

    def test_a_closed_instance_says_so_whatever_it_has_protected(self):
        items, state = {"list": numpy.arange(4)}, {"seed": 1}
        with self.open() as run:
            run.protect_attribute(items, "list")
            run.protect_state(state)
        for call in (lambda: run.checkpoint(1), lambda: run.snapshot(1), run.restart):
            with self.assertRaisesRegex(diapause.ArgumentError, "closed"):
                call()

    def test_statuses_are_exceptions_with_the_text_of_the_library(self):
        with self.open() as run:
            with self.assertRaisesRegex(diapause.NotFoundError, "7") as caught:
                run.restart(7)
            self.assertEqual(caught.exception.status, -7)
            self.assertIsNone(run.restart())
            with self.assertRaises(diapause.ArgumentError):
                run.checkpoint(1, 9)
        with self.assertRaisesRegex(diapause.ArgumentError, "closed"):
            run.checkpoint(1)
        self.configure("[memory2]\n")
        with self.assertRaisesRegex(diapause.ConfigError, "memory2"):
            self.open()
        self.assertTrue(issubclass(diapause.DeniedError, PermissionError))
        self.assertEqual(str(diapause.FullError("text", -4)), "text")

    def test_other_threads_run_while_a_call_waits(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0)

        self.configure('[async]\nmode = "off"\n')
        with self.open() as run:
            run.protect("x", numpy.random.default_rng(1).random(8 << 20))
            other = threading.Thread(target=count)
            other.start()
            before = counted[0]
            run.checkpoint(1, 4)
            after = counted[0]
            done.set()
            other.join()
        self.assertGreater(after, before + 10)

    def test_what_calls_return_prints_as_its_members(self):
        with self.open() as run:
            self.assertEqual(repr(run), "<diapause.Instance 'test', open>")
            run.protect("x", numpy.zeros(4))
            self.assertRegex(
                repr(run.checkpoint(7)),
                r"^CheckpointInfo\(taken=1, version=7, level_asked=1, .*bytes=32, .*\)$")
            self.assertRegex(
                repr(run.poll(7)),
                r"^Progress\(version=7, level_asked=1, level_reached=\d, in_flight=\d, "
                r"captured=1\)$")
            self.assertRegex(repr(run.restart()),
                             r"^RestartInfo\(version=7, level=1, stepped_back=0, bytes=32, ")
        self.assertEqual(repr(run), "<diapause.Instance 'test', closed>")
        self.assertEqual(repr(diapause.StopInfo(signal=15, rank=2)), "StopInfo(signal=15, rank=2)")

    def test_the_log_goes_to_logging(self):
        """Also what is said while an instance is opened."""
        (self.path / "memory").write_text("no directory")
        with self.assertLogs("diapause", logging.WARNING) as logs, self.open():
            pass
        self.assertIn("WARNING:diapause:the memory tier cannot be used: ", "\n".join(logs.output))

    def test_importing_needs_no_packages(self):
        program = ("import sys; sys.modules.update(numpy=None, matplotlib=None, mpi4py=None); "
                   "import diapause")
        subprocess.run([sys.executable, "-S", "-B", "-c", program],
                       env={"PYTHONPATH": str(PACKAGE)}, check=True)


if __name__ == "__main__":
    unittest.main()
