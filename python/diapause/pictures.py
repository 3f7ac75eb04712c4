"""The pictures of a report. Each is a matplotlib figure, labelled with what its numbers are."""

from __future__ import annotations

import matplotlib
import numpy as np

from diapause import amounts, look, timeline
from diapause.account import PHASES, RESTART_PHASES

MOST_LANES = 16
MOST_CURVES = 10


def source_label(account):
    """Returns a label such as "measured: powercap intel-rapl:0". It also says what was emulated."""
    if not account.total:
        return "no source of energy"
    names = sorted({source.name for source in account.sources_of_total()})
    said = f"{account.kind or 'unknown kind'}: {', '.join(names)}" if names else account.kind
    said = look.shortened(said, 70)
    return said + ", clocks emulated" if account.is_emulated else said


# ---- power over time -----------------------------------------------------------------------------


def power_over_time(account, title, curves, label):
    """Curves of power, with the phases of checkpoints and restarts as bands behind
    them and as lanes below."""
    axis = timeline.axis_of(account.ledger)
    spans = timeline.lanes(account.phases, axis)
    names = [name for name in PHASES if name in spans] + sorted(set(spans) - set(PHASES))
    del names[MOST_LANES:]
    unit, length = look.scale_of(axis.length)
    lanes_height = 0.19 * max(1, len(names))
    height = 3.7 + lanes_height
    made = look.figure(height, title, label)
    with matplotlib.rc_context(look.STYLE):
        upper, lower = made.subplots(2, 1, sharex=True, gridspec_kw={
            "height_ratios": [2.6, lanes_height], "left": 0.115, "right": 0.87,
            "top": 1 - 0.5 / height,
            "bottom": 0.5 / height, "hspace": 0.06})
        _draw_curves(upper, curves[:MOST_CURVES], account.total, length)
        _draw_lanes(upper, lower, names, spans, length)
        _draw_pauses(upper, lower, axis, length)
        lower.set_xlim(0, axis.length / length or 1)
        lower.set_xlabel(f"time of the job ({unit})"
                         + (", without pauses between starts" if axis.pauses() else ""))
    return made


def _draw_curves(axes, curves, total, length):
    """The total in black; the others with a colour and a name at their end."""
    drawn = [c for c in curves if np.isfinite(c.watts).any()
             and not (c.domain == total and len(curves) > 1)]
    ends = []
    for place, curve in enumerate(drawn):
        colour = look.BLACK if curve.domain == "total" else look.LINES[(
            place - 1) % len(look.LINES)]
        name = total if curve.domain == "total" and total else curve.domain
        axes.stairs(curve.watts, curve.edges / length, baseline=None, color=colour,
                    linewidth=1.8 if curve.domain == "total" else 1.3)
        known = curve.watts[np.isfinite(curve.watts)]
        ends.append((known[-1], look.shortened(name, 16), colour))
    top = max((np.nanmax(curve.watts) for curve in drawn), default=1.0)
    axes.set_ylim(0, 1.08 * top or 1)
    axes.set_ylabel("mean power (W)")
    axes.grid(axis="y")
    axes.tick_params(axis="x", length=0)
    for place, (value, name, colour) in zip(look.spread([end[0] for end in ends], 0.075 * top),
                                            ends):
        axes.annotate(name, (1, place), xytext=(6, 0), xycoords=("axes fraction", "data"),
                      textcoords="offset points", va="center", color=colour, fontweight="bold",
                      fontsize=8.5, annotation_clip=False)


def _colour_of_phase(name):
    if name == "wait":
        return look.GREY
    level = "restart" if name in RESTART_PHASES else look.LEVEL_OF_PHASE.get(name, 0)
    return look.LEVELS[level]


def _draw_lanes(upper, lower, names, spans, length):
    for lane, name in enumerate(names):
        colour = _colour_of_phase(name)
        found = [(begin / length, size / length) for begin, size in spans[name]]
        lower.broken_barh(found, (lane - 0.38, 0.76), color=colour, linewidth=0)
        upper.broken_barh(found, (0, 1), color=colour, alpha=0.16, linewidth=0,
                          transform=upper.get_xaxis_transform())
    lower.set_ylim(max(0, len(names) - 1) + 0.6, -0.6)
    lower.set_yticks(range(len(names)), [_lane_name(name) for name in names])
    lower.tick_params(axis="y", length=0)
    lower.grid(axis="x")
    lower.spines["left"].set_visible(False)
    if not names:
        lower.text(0.5, 0.5, "no phases", transform=lower.transAxes, ha="center", va="center",
                   color="#888888")


def _lane_name(name):
    level = look.LEVEL_OF_PHASE.get(name)
    return look.shortened(name, 14) + (f" L{level}" if level else "")


def _draw_pauses(upper, lower, axis, length):
    """A line where it was away, and, where there is room above the picture, for how long."""
    free_from = 0.0
    for start, (place, seconds) in enumerate(axis.pauses()[:50], start=2):
        for axes in (upper, lower):
            axes.axvline(place / length, color="#444444", linestyle=(0, (4, 3)), linewidth=1)
        if place >= free_from:
            upper.annotate(f"start {start}, {look.time_text(max(0.0, seconds))} later",
                           (place / length, 1),
                           xycoords=("data", "axes fraction"), xytext=(0, 3),
                           textcoords="offset points", va="bottom", fontsize=7.5, color="#444444")
            free_from = place + 0.17 * axis.length


# ---- energy of phases and levels -----------------------------------------------------------------


def energy_by_phase_and_level(account):
    """The whole job as one bar, and what is not the program's by phase and by level, and
    how far that may be off."""
    phases = [(name, sum_, _colour_of_phase(name))
              for name, sum_ in account.by_phase().items()][:MOST_LANES]
    levels = [(look.level_name(level), sum_, look.LEVELS[level])
              for level, sum_ in account.by_level().items()]
    rows = max(len(phases), len(levels), 2)
    height = 1.75 + 0.27 * rows
    made = look.figure(height, "Energy of checkpoints and restarts", source_label(account))
    with matplotlib.rc_context(look.STYLE):
        grid = made.add_gridspec(2, 2, height_ratios=[0.3, 0.27 * rows], left=0.115, right=0.975,
                                 top=1 - 0.68 / height, bottom=0.48 / height,
                                 hspace=0.5 / (0.15 + 0.135 * rows), wspace=0.32)
        _draw_whole(made.add_subplot(grid[0, :]), account, levels)
        _draw_bars(made.add_subplot(grid[1, 0]), "by phase", phases, rows)
        _draw_bars(made.add_subplot(grid[1, 1]), "by level", levels, rows)
    return made


def _draw_whole(axes, account, levels):
    left = 0.0
    parts = [("program", account.program, look.LIGHT), *levels]
    for name, sum_, colour in parts:
        joules = sum_.of_known or 0.0
        axes.barh(0, max(0.0, joules), left=left, color=colour, height=0.8)
        share = account.percent(sum_)
        label = f"{name} {share:.1f} %" if share is not None else ""
        if share is not None and share > 0.9 * len(label):  # else it would not fit into its part
            axes.text(left + joules / 2, 0, label, ha="center", va="center", fontsize=8.5)
        left += max(0.0, joules)
    parts = amounts.parts_text(account.whole) if account.whole.known else ""
    axes.set_title(f"whole job, {joules_text(account.whole)}{parts}", loc="left", color="#333333",
                   pad=3)
    axes.set_xlim(0, left or 1)
    axes.set_axis_off()


def energy_text(sum_):
    """Returns a text such as "≥ 1.23 kJ", where ≥ means that a part is unknown. It is "< 1.2 kJ"
    where only a bound is known, and "≈ 1.2 kJ" where not even that is."""
    if sum_.of_known is None:
        return "unknown" if sum_.unknown else "no source"
    if sum_.bound is not None:
        prefix, factor = look.prefix_of(sum_.bound)
        return look.below(sum_.bound / factor, f"{prefix}J")
    at_least = "≥ " if sum_.is_partial else ""
    return at_least + (f"≈ {_two_digits(sum_.of_known)}" if sum_.is_estimate
                       else look.scaled(sum_.of_known, "J"))


def _two_digits(joules):
    prefix, factor = look.prefix_of(joules)
    return look.rounded(joules / factor, f"{prefix}J")


def joules_text(sum_):
    """Returns the same with how far it may be off, unless the text is a bound already. The
    digits follow from that."""
    off = sum_.uncertainty_j if sum_.bound is None else None
    if off is None:
        return energy_text(sum_)
    prefix, factor = look.prefix_of(sum_.of_known)
    value, error = look.digits(sum_.of_known / factor, off / factor, f"{prefix}J")
    return (("≥ " if sum_.is_partial else "") + value.removesuffix(f" {prefix}J") + f" ± {error}"
            if error else energy_text(sum_))


def _watts_text(account):
    """The digits follow from how far the power may be off."""
    off = account.whole.uncertainty_j
    if account.whole.is_estimate or off is None:
        return f"≈ {look.rounded(account.watts, 'W')}"
    return look.digits(account.watts, off / account.covered_s, "W")[0]


def _draw_bars(axes, title, bars, rows):
    """A bar for each; energy that is unknown has no bar and says so, and what is only bounded has
    an empty one up to there."""
    most = max([sum_.bound or sum_.joules for _, sum_, _ in bars if sum_.known] or [1.0])
    most = most if most > 0 else 1.0
    prefix, factor = look.prefix_of(most)
    for place, (_, sum_, colour) in enumerate(bars):
        value = sum_.of_known
        if sum_.bound is not None:
            value = sum_.bound
            axes.barh(place, value / factor, facecolor="none", edgecolor=colour,
                      linestyle=(0, (3, 2)), height=0.72)
        elif value is not None:
            axes.barh(place, value / factor, color=colour, height=0.72)
        parts = amounts.parts_text(sum_) if sum_.known else ""
        axes.annotate(joules_text(sum_) + parts, (max(value or 0.0, 0.0) / factor, place),
                      xytext=(5, 0), textcoords="offset points", va="center", fontsize=7,
                      color="#888888" if value is None else "black")
    axes.set_title(title, loc="left", color="#333333")
    axes.set_xlim(0, 2.1 * most / factor)
    axes.set_xlabel(f"energy ({prefix}J)")
    axes.set_yticks(range(len(bars)), [look.shortened(name, 16) for name, _, _ in bars])
    axes.set_ylim(rows - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


# ---- several jobs --------------------------------------------------------------------------------


def time_against_energy(named_accounts):
    """A point for each (name, account) that has both, and a line of the first one's mean power."""
    baseline = named_accounts[0][1]
    known = [(name, account)
             for name, account in named_accounts if account.whole.complete is not None]
    labels = sorted({source_label(account) for _, account in known})
    height = 4.2
    made = look.figure(height, "Time against energy",
                       look.shortened("; ".join(labels) or "no source of energy", 90))
    longest = max((account.runtime_s for _, account in known), default=1.0)
    unit, length = look.scale_of(longest)
    prefix, factor = look.prefix_of(max((account.whole.joules for _, account in known),
                                        default=1.0))
    with matplotlib.rc_context(look.STYLE):
        axes = made.subplots(gridspec_kw={"left": 0.115, "right": 0.68, "top": 1 - 0.55 / height,
                                          "bottom": 0.5 / height})
        for place, (name, account) in enumerate(known):
            axes.errorbar(account.runtime_s / length, account.whole.joules / factor,
                          (account.whole.uncertainty_j or 0.0) / factor,
                          fmt=look.MARKERS[place % len(look.MARKERS)],
                          color=(look.BLACK, *look.LINES)[place % 8], markersize=9,
                          markeredgecolor="white", elinewidth=1,
                          label=f"{look.shortened(name, 34)}\n{joules_text(account.whole)}"
                                f"{amounts.parts_text(account.whole)}")
        axes.margins(0.18)
        axes.autoscale_view()
        axes.autoscale(False)
        if baseline.watts is not None:
            ends = np.array([0.0, 2 * longest])
            axes.plot(ends / length, ends * baseline.watts / factor, color="#AAAAAA",
                      linestyle=(0, (5, 4)), linewidth=1, zorder=0,
                      label=f"{_watts_text(baseline)}, the mean power\nof the first")
        axes.set_xlabel(f"runtime ({unit})")
        axes.set_ylabel(f"energy of the whole job ({prefix}J)")
        axes.grid()
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), labelspacing=0.9,
                    borderaxespad=0)
    return made
