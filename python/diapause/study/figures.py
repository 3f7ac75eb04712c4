"""The pictures of the study, as the published one has them; each labelled with what it rests on."""

from __future__ import annotations

import matplotlib
import numpy as np

from diapause import look
from diapause.study import published, results

STEP_NAMES = {"compress": "compressing", "write": "writing"}
STEP_COLOURS = {"compress": look.BLUE, "write": look.VERMILION}
CODEC_COLOURS = {"raw": look.GREY, "shuffle+lz4": look.SKY, "shuffle+zstd": look.BLUE,
                 "lattice": look.VERMILION, "zfp": look.GREEN, "sz3": look.PURPLE}


def power_and_runtime(study):
    """Scaled power and run time over the clock: points, fits with their bands, and
    the published curves."""
    height = 4.3
    made = look.figure(height, "Power and run time over the clock", study.label())
    with matplotlib.rc_context(look.STYLE):
        left, right = made.subplots(1, 2, gridspec_kw={"left": 0.075, "right": 0.985,
                                                       "top": 1 - 0.55 / height,
                                                       "bottom": 0.52 / height, "wspace": 0.2})
        for step in results.STEPS:
            _draw_power(left, study, step)
            _draw_runtime(right, study, step)
        _leave_out_the_farthest(right, study)
        for axes, what in ((left, "power"), (right, "run time")):
            axes.axhline(1, color="#BBBBBB", linewidth=0.8)
            for step, clock in published.RULE.items():
                axes.axvline(clock, color=STEP_COLOURS[step], linewidth=0.8, linestyle=(0, (1, 3)))
            axes.set_xlabel("clock over base clock (dotted: the published rule)")
            axes.set_ylabel(f"{what} over that at the base clock")
            axes.set_xlim(0.38, 1.02)
            axes.grid()
            axes.legend(loc="upper left" if what == "power" else "upper right", fontsize=8,
                        frameon=True,
                        facecolor="white", edgecolor="none", framealpha=0.9)
    return made


def _draw_power(axes, study, step):
    clock = np.linspace(0.4, 1, 200)
    colour = STEP_COLOURS[step]
    found = study.power_fit(step)
    if found:
        full = found.power(1.0)
        axes.plot(clock, found.power(clock) / full, color=colour, linewidth=1.8,
                  label=f"{STEP_NAMES[step]}, fit of here")
        band = found.band(clock) / full
        axes.fill_between(clock, found.power(clock) / full - band, found.power(clock) / full + band,
                          color=colour, alpha=0.2, linewidth=0)
        points = [(point.clock, point.power) for point in study.points() if point.step == step
                  and point.power is not None]
        axes.plot(*np.array(points).T, ".", color=colour, markersize=3, alpha=0.5)
    for machine, chip in published.CHIPS.items():
        curve, top = published.curve_of(machine, step)
        shown = clock[clock * top >= published.clocks_ghz()[chip][0] - 1e-9]
        is_ours = machine == study.machine and not found
        axes.plot(shown, curve.power(shown * top) / curve.power(top), color=colour,
                  linewidth=1.8 if is_ours else 1.0,
                  linestyle="-" if is_ours else (0, (4, 2)) if chip == "Broadwell" else (0, (1, 1)),
                  label=f"{STEP_NAMES[step]}, published {chip}"
                  + (" (used here)" if is_ours else ""))


def _draw_runtime(axes, study, step):
    clock = np.linspace(0.4, 1, 200)
    colour = STEP_COLOURS[step]
    found = study.runtime_fit(step)
    if found:
        points = np.array([(point.clock, point.runtime)
                           for point in study.points() if point.step == step])
        axes.plot(*points.T, ".", color=colour, markersize=3.5, alpha=0.45)
        axes.plot(clock, found.runtime(clock), color=colour, linewidth=1.8,
                  label=f"{STEP_NAMES[step]} here, φ = {found.phi:.2f} ± {found.phi_error:.2f}")
        low, high = (1 + phi * (1 / clock - 1)
                     for phi in (found.phi - found.phi_error, found.phi + found.phi_error))
        axes.fill_between(clock, low, high, color=colour, alpha=0.2, linewidth=0)
    phi = published.phi(step)
    axes.plot(clock, phi / clock + 1 - phi, color=colour, linewidth=1.0, linestyle=(0, (4, 2)),
              label=f"{STEP_NAMES[step]}, published, φ = {phi:.2f}")


def _leave_out_the_farthest(axes, study):
    """A few times that something else on the machine made long would press all others
    flat; how many is said."""
    runtimes = np.array([point.runtime for point in study.points()] or [1.0])
    top = 1.3 * max(2.0, np.quantile(runtimes, 0.9))
    axes.set_ylim(0, top)
    if above := int(np.sum(runtimes > top)):
        axes.annotate(f"{above} of {len(runtimes)} points lie above", (0.02, 0.97),
                      xycoords="axes fraction", va="top", fontsize=7.5, color="#666666",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})


def energy_by_bound(study):
    """A group of bars for each bound, a pair for each codec: without the rule
    and, hatched, with it."""
    height = 4.4
    made = look.figure(height, "Energy of compressing and writing, by bound", study.label())
    groups = [0.0, *study.bounds]
    with matplotlib.rc_context({**look.STYLE, "hatch.linewidth": 0.6}):
        axes = made.subplots(gridspec_kw={"left": 0.075, "right": 0.84, "top": 1 - 0.6 / height,
                                          "bottom": 0.52 / height})
        place, ticks, seen = 0.0, [], []
        for bound in groups:
            codecs = [codec for codec in study.codecs
                      if study.seconds_per_gb(codec, bound, "write") is not None]
            for codec in codecs:
                for with_rule in (False, True):
                    _draw_bar(axes, study, (codec, bound), with_rule, place + 0.4 * with_rule)
                place += 1.0
                seen += [codec] if codec not in seen else []
            if codecs:
                ticks.append((place - 0.5 * len(codecs) - 0.3,
                              f"{bound:.0e}" if bound else "without loss"))
                place += 0.6
        axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("absolute error bound")
        axes.set_ylabel("J for 1 GB; with the rule no bound" if study.in_joules
                        else "s at the power of the base clock, for 1 GB")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        _legend(axes, seen)
    return made


def _draw_bar(axes, study, method, with_rule, place):
    bottom = 0.0
    for step in results.STEPS:
        size = study.energy(*method, step, with_rule) or 0.0
        colour = CODEC_COLOURS.get(method[0], look.BLACK)
        axes.bar(place, size, 0.38, bottom=bottom, color=colour,
                 alpha=1.0 if step == "compress" else 0.42,
                 hatch="////" if with_rule else None, edgecolor="white", linewidth=0.4)
        bottom += size
    off = study.energy_off_per_gb(*method) if study.in_joules and not with_rule else None
    if off:
        axes.errorbar(place, bottom, off, color="#444444", elinewidth=0.8, capsize=1.5)


def _legend(axes, codecs):
    patch = matplotlib.patches.Patch
    handles = [patch(color=CODEC_COLOURS.get(codec, look.BLACK), label=codec) for codec in codecs]
    handles += [patch(facecolor="#777777", label="compressing (dark)"),
                patch(facecolor="#C9C9C9", label="writing (light)"),
                patch(facecolor="#777777", edgecolor="white", hatch="////", label="with the rule")]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.005, 1.0), fontsize=8,
                borderaxespad=0,
                labelspacing=0.7)


def ratio_and_speed(study):
    """Each codec's ratio against its speed, a point for each bound; the means over the fields."""
    height = 4.0
    made = look.figure(height, "Ratio against speed",
                       "measured, geometric means over the fields, one core")
    with matplotlib.rc_context(look.STYLE):
        axes = made.subplots(gridspec_kw={"left": 0.075, "right": 0.84, "top": 1 - 0.55 / height,
                                          "bottom": 0.52 / height})
        for codec in study.codecs:
            rows = [row for row in study.rows if row.codec == codec and row.step == "compress"
                    and row.clock_asked == 1.0]
            points = [(1e3 / study.seconds_per_gb(codec, bound, "compress"),
                       results.mean(row.ratio for row in rows if row.bound == bound), bound)
                      for bound in sorted({row.bound for row in rows})]
            x, y, bounds = zip(*points)
            axes.plot(x, y, "o-", color=CODEC_COLOURS.get(codec, look.BLACK), label=codec,
                      markersize=5, linewidth=1)
            for at_x, at_y, bound in points:
                if bound:
                    axes.annotate(f"{bound:.0e}", (at_x, at_y), xytext=(6, -2),
                                  textcoords="offset points", fontsize=7.5, color="#555555")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("compressing, every value checked (MB/s)")
        axes.set_ylabel("compression ratio")
        for direction in (axes.xaxis, axes.yaxis):
            direction.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
            direction.set_major_formatter(
                matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            direction.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axes.grid()
        axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), borderaxespad=0)
    return made
