"""Fits of power and of run time over the clock, with how well they are known."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import optimize, stats

EXPONENTS = (0.05, 80.0)  # range of the exponent b


@dataclasses.dataclass(frozen=True)
class PowerFit:
    """P(f) = a f^b + c."""

    a: float
    b: float
    c: float
    sse: float  # sum of the squared residuals
    rmse: float  # their root mean square, over the degrees of freedom
    r2: float
    points: int
    clock_scale: float  # f was divided by it while the covariance was computed
    covariance: np.ndarray  # covariance of (a clock_scale^b, b, c)

    def power(self, clock):
        return self.a * np.asarray(clock, float) ** self.b + self.c

    def intervals(self, confidence=0.95):
        """Half the widths of the intervals of a f^b at the highest clock, of b and of c."""
        spread = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return tuple(float(one)
                     for one in stats.t.ppf(0.5 + confidence / 2, self.points - 3) * spread)

    def band(self, clock, confidence=0.95):
        """Half the width of the band in which the curve lies with this confidence."""
        x = np.asarray(clock, float) / self.clock_scale
        slope = _slopes(x, self.a * self.clock_scale**self.b, self.b)
        variance = np.einsum("ij,jk,ik->i", slope, self.covariance, slope)
        return (
            stats.t.ppf(0.5 + confidence / 2, self.points - 3) * np.sqrt(np.maximum(variance, 0.0)))


def _slopes(x, scale, b):
    """Returns the slopes of the curve with regard to its three parameters, a row for each point."""
    return np.column_stack([x**b, scale * x**b * np.log(x), np.ones_like(x)])


def _linear(x, power, b):
    """The best scale and c for an exponent, and the squares that are left."""
    columns = np.column_stack([x**b, np.ones_like(x)])
    (scale, c), *_ = np.linalg.lstsq(columns, power, rcond=None)
    return scale, c, float(np.sum((columns @ (scale, c) - power) ** 2))


def fit_power(clock, power):
    """The curve with the least squares; ValueError if the points do not tell one.

    For each exponent the other two follow by linear algebra, so only one is to be looked for: over
    the whole range, and then finely around the best. So the result hangs on no first guess.
    """
    clock, power = np.asarray(clock, float), np.asarray(power, float)
    if len(clock) < 4 or len(np.unique(clock)) < 4:
        raise ValueError("a curve of three parameters wants at least four clocks")
    top = clock.max()
    x = clock / top
    logs = np.linspace(*np.log(EXPONENTS), 100)
    rough = [_linear(x, power, np.exp(one))[2] for one in logs]
    place = int(np.argmin(rough))
    bounds = logs[max(0, place - 1)], logs[min(len(logs) - 1, place + 1)]
    found = optimize.minimize_scalar(lambda one: _linear(x, power, np.exp(one))[2], bounds=bounds,
                                     method="bounded", options={"xatol": 1e-13})
    b = float(np.exp(found.x))
    scale, c, sse = _linear(x, power, b)
    left_over = sse / (len(x) - 3)
    slope = _slopes(x, scale, b)
    covariance = left_over * np.linalg.pinv(slope.T @ slope)
    spread = float(np.sum((power - power.mean()) ** 2))
    return PowerFit(scale / top**b, b, c, sse, left_over**0.5,
                    1 - sse / spread if spread > 0 else float("nan"), len(x), top, covariance)


@dataclasses.dataclass(frozen=True)
class RuntimeFit:
    """t(f) / t(f_max) = phi f_max / f + 1 - phi: phi is the share of the time that
    scales with the clock."""

    phi: float
    phi_error: float  # half the width of its interval of 95 %
    sse: float
    rmse: float
    points: int

    def runtime(self, ratio):
        return self.phi / np.asarray(ratio, float) + 1 - self.phi


def fit_runtime(ratio, runtime):
    """`ratio` of the clock to the highest one, `runtime` to that at it. ValueError if no clock
    is below the highest."""
    x = 1 / np.asarray(ratio, float) - 1
    y = np.asarray(runtime, float) - 1
    if len(x) < 2 or not np.any(x > 1e-9):
        raise ValueError("run time over the clock wants a second clock")
    phi = float(x @ y / (x @ x))
    sse = float(np.sum((y - phi * x) ** 2))
    left_over = sse / (len(x) - 1)
    return RuntimeFit(phi, float(stats.t.ppf(0.975, len(x) - 1) * np.sqrt(left_over / (x @ x))),
                      sse, left_over**0.5, len(x))
