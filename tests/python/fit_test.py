"""The fits of the study, first of all: from data made out of the published curves they find
the published numbers."""

import unittest

import numpy as np
from diapause.study import fit, published

# The published study measured at these clocks.
CLOCKS = {"Broadwell": np.arange(0.8, 2.0001, 0.05), "Skylake": np.arange(0.8, 2.2001, 0.05)}


def clocks_of(curve):
    return CLOCKS.get(curve.data, CLOCKS["Skylake"])


class PublishedTest(unittest.TestCase):
    def test_the_published_coefficients_come_back_from_their_curves(self):
        curves = published.curves()
        self.assertEqual(len(curves), 8)
        for curve in curves:
            with self.subTest(step=curve.step, data=curve.data):
                clock = clocks_of(curve)
                found = fit.fit_power(clock, curve.power(clock))
                np.testing.assert_allclose([found.a, found.b, found.c], [curve.a, curve.b, curve.c],
                                           rtol=1e-5)
                self.assertLess(found.rmse, 1e-9)
                self.assertAlmostEqual(found.r2, 1.0)

    def test_noise_of_the_published_size_leaves_them_within_their_confidence(self):
        random = np.random.default_rng(2023)
        for curve in published.curves():
            with self.subTest(step=curve.step, data=curve.data):
                clock = np.repeat(clocks_of(curve), 80)
                found = fit.fit_power(clock,
                                      curve.power(clock) + random.normal(0, curve.rmse, clock.size))
                self.assertAlmostEqual(found.rmse / curve.rmse, 1.0, delta=0.1)
                at = clocks_of(curve)[::6]
                self.assertTrue(
                    np.all(np.abs(found.power(at) - curve.power(at)) < found.band(at, 0.9999)))

    def test_the_rule_saves_what_the_curves_say(self):
        """At the rule's clock: 13.0 and 20.3 % of the power compressing,
        11.8 and 12.4 % writing."""
        saved = []
        for step in ("compress", "write"):
            for machine in published.CHIPS:
                curve, top = published.curve_of(machine, step)
                saved.append(round(
                    100 * (1 - curve.power(published.RULE[step] * top) / curve.power(top)), 1))
        self.assertEqual(saved, [13.0, 20.3, 11.8, 12.4])

    def test_both_printed_slowdowns_are_those_of_the_same_share_of_the_clock(self):
        self.assertEqual([round(published.phi(step), 3) for step in ("compress", "write")],
                         [0.525, 0.527])


class PowerTest(unittest.TestCase):
    def test_the_band_holds_the_curve_as_often_as_it_says(self):
        random = np.random.default_rng(4)
        clock, inside = np.linspace(0.8, 2.2, 29), 0
        truth = 0.02 * clock**4 + 0.7
        for _ in range(300):
            found = fit.fit_power(clock, truth + random.normal(0, 0.01, clock.size))
            inside += abs(found.power([1.7])[0] - truth[18]) < found.band([1.7])[0]
        self.assertAlmostEqual(inside / 300, 0.95, delta=0.04)

    def test_figures_of_merit_are_those_of_the_residuals(self):
        clock, power = (np.array([1.0, 1.2, 1.4, 1.6, 1.8, 2.0]),
                        np.array([1.0, 1.1, 1.3, 1.4, 1.9, 2.2]))
        found = fit.fit_power(clock, power)
        left = power - found.power(clock)
        self.assertAlmostEqual(found.sse, left @ left)
        self.assertAlmostEqual(found.rmse, np.sqrt(left @ left / 3))
        self.assertAlmostEqual(found.r2, 1 - left @ left / np.sum((power - power.mean()) ** 2))

    def test_too_few_clocks_are_refused(self):
        with self.assertRaisesRegex(ValueError, "four clocks"):
            fit.fit_power([1.0, 1.0, 1.5, 2.0], [1.0, 1.0, 1.5, 2.0])


class RuntimeTest(unittest.TestCase):
    def test_the_share_that_scales_with_the_clock_comes_back(self):
        ratio = np.linspace(0.4, 1.0, 13)
        found = fit.fit_runtime(ratio, 0.526 / ratio + 0.474)
        self.assertAlmostEqual(found.phi, 0.526)
        self.assertAlmostEqual(found.phi_error, 0)

    def test_one_clock_tells_nothing(self):
        with self.assertRaisesRegex(ValueError, "second clock"):
            fit.fit_runtime([1.0, 1.0], [1.0, 1.01])


if __name__ == "__main__":
    unittest.main()
