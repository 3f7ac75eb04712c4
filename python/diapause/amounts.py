"""Joules as cells of a page, columns of a CSV file, and text: with how far they may be off, by
cause and together, or the words that they have no bound."""

from __future__ import annotations

import statistics

from diapause import look, page
from diapause.account import Sum

NO_BOUND = "no bound"
PART_HEADS = ["samples are apart", "the source itself", "who is charged"]
PARTS = ("sampling_j", "sensor_j", "attribution_j")


# ---- sums ----------------------------------------------------------------------------------------


def sum_of(joules, parts):
    """The parts are a dictionary by name, of which `sensor_j` may be None; None: there is no bound.

    None of joules gives None.
    """
    if joules is None:
        return None
    if parts is None:
        return Sum(joules=joules, known=1, without_uncertainty=1)
    return Sum(joules=joules, known=1, sampling_j=parts["sampling_j"],
               sensor_j=parts["sensor_j"] or 0.0, attribution_j=parts["attribution_j"],
               estimates=int(parts["sensor_j"] is None))


def parts_of(sum_):
    """The dictionary that sum_of() takes."""
    return None if sum_ is None or sum_.parts_j is None else dict(zip(PARTS, sum_.parts_j))


def total(sums):
    """None if there are none, or if one of them is not known."""
    sums = list(sums)
    if not sums or None in sums:
        return None
    whole = Sum()
    for one in sums:
        whole.add_sum(one)
    return whole


def mean(sums):
    """The bounds of all together are those of the mean: they may all err in the same way."""
    sums = list(sums)
    whole = total(sums)
    return whole and whole.scaled(1 / len(sums))


def median(sums):
    """A median is never further off than the worst of its values."""
    known = [one for one in sums if one is not None]
    if not known:
        return None
    middle = statistics.median(one.joules for one in known)
    parts = [one.parts_j for one in known]
    if None in parts:
        return sum_of(middle, None)
    sampling_j, sensor_j, attribution_j = zip(*parts)
    return sum_of(middle, {"sampling_j": max(sampling_j),
                           "sensor_j": None if None in sensor_j else max(sensor_j),
                           "attribution_j": max(attribution_j)})


def ratio(one, other):
    """(one over other, how far that may be off): of two amounts of one meter on one machine.

    The meter is off by the same share of both, so that its error is in no ratio. None where it is
    not known.
    """
    if one is None or other is None or not other.joules > 0:
        return None, None
    value = one.joules / other.joules
    if None in (one.parts_j, other.parts_j):
        return value, None
    of_one, of_other = (each.sampling_j + each.attribution_j for each in (one, other))
    if not of_other < other.joules:
        return value, None
    return value, max(abs((one.joules + of_one) / (other.joules - of_other) - value),
                      abs(value - (one.joules - of_one) / (other.joules + of_other)))


# ---- how they are shown --------------------------------------------------------------------------


def cell(sum_):
    if sum_ is None:
        return page.Number("-")
    if sum_.of_known is None:
        return page.Number("unknown" if sum_.unknown else "-")
    if sum_.bound is not None:
        return page.Number(look.below(sum_.bound, "J"), sum_.joules)
    at_least = "≥ " if sum_.is_partial else ""
    if sum_.is_estimate:
        return page.Number(f"{at_least}≈ {look.rounded(sum_.joules, 'J')}", sum_.joules)
    return page.Number(at_least + look.digits(sum_.joules, sum_.uncertainty_j, "J")[0], sum_.joules)


def uncertainty_cell(sum_):
    if sum_ is None or not sum_.known:
        return page.Number("-")
    off = sum_.uncertainty_j
    if off is None:
        return page.Number(NO_BOUND)
    return page.Number(f"± {look.digits(sum_.joules, off, 'J')[1] or '0.00 J'}", off)


def parts_cells(sum_):
    if sum_ is None or not sum_.known:
        return [page.Number("-")] * 3
    parts = sum_.parts_j or (None, None, None)
    return [page.Number(NO_BOUND) if part is None else page.Number(look.rounded(part, "J"), part)
            for part in parts]


def cells(sum_):
    """In the order of heads(): the joules, how far they may be off, and the three parts of that."""
    return [cell(sum_), uncertainty_cell(sum_), *parts_cells(sum_)]


def heads(what):
    return [what, "uncertainty", *PART_HEADS]


def parts_text(sum_):
    """As " (2.0 + 5.0 + 1.0 J)", in the order of PART_HEADS; " (no bound)" without one."""
    parts = sum_.parts_j
    if parts is None or None in parts:
        return f" ({NO_BOUND})"
    prefix, factor = look.prefix_of(max(map(abs, parts)))
    shown = [look.rounded(part / factor, "").strip() for part in parts]
    return f" ({' + '.join(shown)} {prefix}J)"


def text(sum_):
    """As "284 ± 30 J (2.0 + 25 + 3.0 J)"; "≈ 280 J (no bound)" without a bound."""
    shown = cell(sum_).text
    off = sum_.uncertainty_j
    if off and sum_.bound is None:
        shown = f"{shown.removesuffix(' J')} {uncertainty_cell(sum_).text}"
    return shown + parts_text(sum_)


def columns(name, sum_):
    """Of a CSV file: the joules under this name, and beside them how far they may be off."""
    parts = parts_of(sum_) or dict.fromkeys(PARTS)
    about = name.removesuffix("_j")
    return {name: None if sum_ is None else sum_.joules,
            f"{about}_uncertainty_j": None if sum_ is None else sum_.uncertainty_j,
            **{f"{about}_{part}": value for part, value in parts.items()},
            f"{about}_bound": bound_word(sum_)}


def of_columns(name, row):
    """The sum that columns() was made of."""
    parts = {part: row[f"{name.removesuffix('_j')}_{part}"] for part in PARTS}
    return sum_of(row[name], None if parts["sampling_j"] is None else parts)


def text_cell(sum_, otherwise="-"):
    """text() as one cell of a table whose head ends with TEXT_HEAD."""
    return page.Number(otherwise) if sum_ is None else page.Number(text(sum_), sum_.joules)


TEXT_HEAD = "± together (samples + source + charged)"


def saved_cell(percent, off, otherwise="-"):
    """Of a saving in percent, which has a bound only if `off` is known."""
    if percent is None:
        return page.Number(otherwise)
    if off is None:
        return page.Number(f"≈ {percent:.2g} ({NO_BOUND})", percent)
    value, error = look.digits(percent, off, "")
    return page.Number(value.strip() + (f" ± {error.strip()}" if error else ""), percent)


def bound_word(sum_):
    """None where there are no joules."""
    if sum_ is None:
        return None
    return NO_BOUND if sum_.uncertainty_j is None else "bound"


def ratio_cell(value, off):
    """Of ratio(): the digits follow from how far it may be off."""
    if value is None:
        return page.Number("-")
    if off is None:
        return page.Number(f"≈ {value:.2g} ({NO_BOUND})", value)
    shown, error = look.digits(value, off, "")
    return page.Number(shown.strip() + (f" ± {error.strip()}" if error else ""), value)


def percent_text(value, off, digits=1):
    """As "+1.2 ± 3.0 %: not told apart"; "+1.2 % (no bound)" where nobody knows how far it is
    off."""
    if value is None:
        return "-"
    if off is None:
        return f"{value:+.{digits}f} % ({NO_BOUND})"
    said = look.digits(value, off, "%")
    shown = f"{value:+.{digits}f} %" if said[1] is None else (
        f"{'+' if value >= 0 else ''}{said[0].removesuffix(' %')} ± {said[1]}")
    return shown + ("" if abs(value) > off else ": not told apart")
