"""The binding's arguments: what cannot be one is refused by its name."""

import os
import unittest

import numpy
from instance_test import InADirectory

import diapause


class Arguments(InADirectory):
    def test_refuses_numbers_and_names_that_c_would_take_for_others(self):
        with self.open() as run:
            run.protect("x", numpy.zeros(3))
            for call in (run.checkpoint, run.snapshot, run.wait, run.poll, run.restart):
                for version in (-1, 2**64):
                    with self.assertRaisesRegex(diapause.ArgumentError,
                                                f"version {version} is out of range"):
                        call(version)
            with self.assertRaisesRegex(diapause.ArgumentError, "no zero bytes"):
                run.protect("x\0y", numpy.zeros(3))
            self.assertEqual(run.checkpoint(numpy.int64(5)).version, 5)
            self.assertTrue(run.wait(5, seconds=float("inf")))

    def test_an_argument_of_another_type_is_refused_by_its_name(self):
        """(call, arguments, the name that the TypeError begins with)"""
        run, data = self.open(), numpy.zeros(3)
        run.protect("x", data)
        for call, arguments, name in (
                (diapause.open, (None,), "name"), (diapause.open, (b"test",), "name"),
                (diapause.open, ("test", 5), "comm"), (diapause.open, ("test", None, 5), "config"),
                (run.protect, (None, data), "region"),
                (run.protect_block, ("x", data, 3, (0,)), "region 'x': global_shape"),
                (run.protect_block, ("x", data, (3,), (0.0,)), "region 'x': start"),
                (run.unprotect, (5,), "region"), (run.declare, ("x", "stable"), "declaration"),
                (run.allow_loss, ("x", "1e-3"), "bound"),
                (run.allow_loss, ("x", 1e-3, "zfp"), "codec"), (run.checkpoint, (1.5,), "version"),
                (run.checkpoint, (1, None), "level"), (run.files(1, "4").__enter__, (), "level"),
                (run.snapshot, ("1",), "version"), (run.wait, (1, 1, None), "seconds"),
                (run.poll, (None,), "version"),
                (lambda count: list(run.steps(count)), (1e3,), "count"),
                (run.restart, (None,), "version"), (run.restore, ("x",), "regions"),
                (run.restore, (5,), "regions"), (run.inject_bit_flip, ("x", 0.5, 0), "element"),
                (run.close, ("soon",), "within_s")):
            with self.subTest(call=call, arguments=arguments), self.assertRaisesRegex(
                    TypeError, f"^{name}: .* is expected"):
                call(*arguments)
        self.assertEqual(run.checkpoint(1).version, 1)  # it is still open

    def test_an_argument_that_c_would_cut_is_refused_by_its_name(self):
        run, data = self.open(), numpy.zeros(3)
        run.protect("x", data)
        for call, arguments, word in (
                (diapause.open, ("a\0b",), "name 'a"),
                (diapause.open, ("test", None, "/a\0b"), "config b'/a"),
                (run.protect_block, ("x", data, (-1,), (0,)), "region 'x': global_shape -1"),
                (run.declare, ("x", 2**32 + 1), "declaration"),
                (run.checkpoint, (1, 2**32 + 1), "level"),
                (run.wait, (1, 1, float("nan")), "seconds"),
                (run.inject_bit_flip, ("x", -1, 0), "element -1"),
                (run.protect_block, ("x", data.astype("M8[s]"), (3,), (0,)),
                 "region 'x': a block has numbers")):
            with self.subTest(call=call, arguments=arguments), self.assertRaisesRegex(
                    diapause.ArgumentError, word):
                call(*arguments)

    def test_names_and_paths_that_are_no_utf_8_are_taken_as_they_are(self):
        config = os.fsencode(self.path) + b"/\xff.toml"
        os.rename(self.config, config)
        with diapause.open("test", config=config) as run:
            run.protect("x\udcff", numpy.zeros(3))
            run.checkpoint(1)
            run.restart_begin()
            self.assertEqual([region.name for region in run.stored()], ["x\udcff"])
            run.restore(["x\udcff"])
            run.restart_end()
            with self.assertRaisesRegex(diapause.ArgumentError, "UTF-8"):
                run.protect("x\ud800", numpy.zeros(3))


if __name__ == "__main__":
    unittest.main()
