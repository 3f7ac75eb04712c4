"""Decides how all pictures look: colours that colour-blind readers tell
apart, units, and labels."""

from __future__ import annotations

import io
import math

import matplotlib

matplotlib.use("Agg")  # no screen is needed

from matplotlib.figure import Figure  # noqa: E402  after the choice above

# These are the colours of Okabe and Ito without their yellow, which is too light for thin lines.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
GREY, LIGHT = "#8A8A8A", "#D9D9D9"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = "os^DvPX*"

LEVELS = {0: ORANGE, 1: SKY, 2: GREEN, 3: BLUE, 4: VERMILION, "restart": PURPLE}
LEVEL_OF_PHASE = {"keep": 1, "partner": 2, "parity": 3, "encode": 4, "global": 4}

STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#666666",
    "axes.linewidth": 0.8,
    "axes.labelcolor": "#333333", "xtick.color": "#444444", "ytick.color": "#444444",
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4", "grid.linewidth": 0.7, "legend.frameon": False,
    "text.parse_math": False,
    "svg.fonttype": "path", "svg.hashsalt": "diapause", "figure.facecolor": "white",
}

WIDTH = 10  # inches, of every picture


def level_name(level):
    return {0: "no one level", "restart": "restart"}.get(level, f"level {level}")


def shortened(text, most=40):
    return text if len(text) <= most else text[: most - 1] + "…"


def digits(value, off, unit):
    """(value, off) as "283.9", "1.9 J": two digits of what it may be off, or one where
    the first is more than 3.

    Three digits of the value where nobody knows how far it may be off.
    """
    if not off:
        return rounded(value, unit, 3), None
    place = math.floor(math.log10(off)) - 1
    place += off / 10.0**place > 35.5
    step, decimals = 10.0**place, max(-place, 0)
    return tuple(f"{round(one / step) * step:,.{decimals}f} {unit}" for one in (value, off))


def rounded(value, unit, digits=2):
    """So many digits and no more. What rounding leaves of nothing is nothing."""
    if abs(value) < 1e-9:
        return f"0 {unit}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
    return f"{round(value / step) * step:,.{max(-math.floor(math.log10(step)), 0)}f} {unit}"


def below(value, unit):
    """As "< 12 J": two digits, rounded up."""
    if not value > 0:
        return f"< 0 {unit}"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    # A value that has two digits stays as it is, though its binary fraction may be a little more.
    return f"< {rounded(math.ceil(value / step - 1e-9) * step, unit)}"


def to_the_digits_of(value, off, unit):
    """The value alone, as digits() has it; two decimals where it is not off."""
    return digits(value, off, unit)[0] if off > 0 else f"{value:,.2f} {unit}"


def scale_of(seconds):
    """A unit in which so many seconds read well: (name, seconds in one)."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return unit, length
    return "s", 1


PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1))


def prefix_of(value):
    """One with which so much reads well: (prefix, how many units one of it is)."""
    return next((one for one in PREFIXES if abs(value) >= one[1]), PREFIXES[-1])


def scaled(value, unit):
    """1234567, "J" -> "1.23 MJ"."""
    prefix, factor = prefix_of(value)
    return f"{value / factor:.3g} {prefix}{unit}"


def time_text(seconds):
    unit, length = scale_of(seconds)
    return f"{seconds / length:.3g} {unit}"


def figure(height, title, label):
    """An empty figure with its title, and at the right what the numbers are:
    measured, modelled, emulated."""
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(WIDTH, height))
        made.text(0.012, 1 - 0.13 / height, title, fontsize=11, fontweight="bold", va="top",
                  color="#222222")
        made.text(0.988, 1 - 0.15 / height, label, fontsize=8.5, va="top", ha="right",
                  color="#555555", style="italic")
    return made


def spread(values, least):
    """Places for labels near the values and `least` apart, in the order of the values."""
    places = {}
    before = None
    for index in sorted(range(len(values)), key=values.__getitem__):
        before = values[index] if before is None else max(values[index], before + least)
        places[index] = before
    return [places[index] for index in range(len(values))]


def saved(made, kind):
    """The figure as the bytes of an SVG or PNG file; the same figure gives the same bytes."""
    file = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        made.savefig(file, format=kind, dpi=150,
                     metadata={"Date": None} if kind == "svg" else {"Software": None})
    return file.getvalue()
