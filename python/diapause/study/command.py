"""`diapause study compress`: sweeps, fits, and leaves tables, pictures and a page."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
import tempfile

from diapause import amounts, look, page, records
from diapause.files import written
from diapause.study import fields, figures, options, published, results, runs, sweep


def add_options(parser):
    """Adds the options that src/cli/study_compress.cpp gives."""
    parser.add_argument("fields", nargs="*")
    parser.add_argument("--encoder", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--codecs", type=lambda text: tuple(text.split(",")))
    parser.add_argument("--bounds", type=_numbers, default=sweep.BOUNDS)
    parser.add_argument("--clocks", type=_clocks, default=sweep.CLOCKS)
    parser.add_argument("--actuator", default="none")
    parser.add_argument("--machine", default="m510-broadwell")
    parser.add_argument("--directory", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--repetitions", type=options.whole_number, default=3)
    parser.add_argument("--dump-gb", type=options.positive, default=1.0)
    parser.add_argument("--dry-run", action="store_true")


def _numbers(text):
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of numbers with commas between") from error


def _clocks(text):
    clocks = _numbers(text)
    if not all(0 < clock <= 1 for clock in clocks):
        raise argparse.ArgumentTypeError(
            f"'{text}': ratios of the base clock are above 0 and at most 1")
    return clocks


def _fields(arguments):
    """(fields, lines about those that cannot be had)."""
    if arguments.fields:
        return [fields.of_file(text) for text in arguments.fields], []
    left_out = []
    used = list(fields.built_in(arguments.output / "fields", arguments.encoder.parent.parent,
                                left_out.append))
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr)
    if not used:
        raise fields.FieldError(
            "nothing of the built-in set can be had here: name fields of your own")
    return used, left_out


def _plan(arguments, scratch):
    clocks = arguments.clocks if arguments.actuator != "none" else (1.0,)
    return sweep.Plan(arguments.encoder, arguments.actuator,
                      tuple(sorted({1.0, *clocks}, reverse=True)), arguments.bounds, scratch,
                      arguments.seconds, arguments.repetitions)


def _plan_of_runs(arguments, used, scratch):
    """Plans each field with each codec: the steps at all clocks, and a dump. To show the plan, only
    the names of the fields are needed."""
    names = [field.name for field in used]
    if len(set(names)) < len(names):
        raise fields.FieldError(
            "two of the fields have the same name: results are told apart by them")
    plan = _plan(arguments, scratch)
    size_bytes = max(1, round(arguments.dump_gb * 1e9 / len(used)))
    made = []
    for codec in arguments.codecs or sweep.CODECS:
        for field in used:
            what = f"{records.printable(field.name)}, {codec}"
            made.append(runs.Run(f"steps-{codec}-{field.name}", what, plan.seconds_of(codec),
                                 _unless_missing(arguments, codec,
                                                 lambda field=field, codec=codec: sweep.rows_of(
                                                     field, codec, plan))))
            made.append(runs.Run(
                f"dump-{codec}-{field.name}", f"{what}: a dump of {size_bytes / 1e9:.3g} GB",
                plan.seconds_of_dump(codec, size_bytes),
                _unless_missing(arguments, codec, lambda field=field, codec=codec: sweep.dumps_of(
                    field, codec, plan, size_bytes))))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def _unless_missing(arguments, codec, rows):
    """A run that gives these rows. A codec that nobody asked for may be missing in this build."""
    def do(_):
        try:
            return {"rows": list(map(dataclasses.asdict, rows()))}
        except sweep.SweepError as error:
            if arguments.codecs or f"this build has no codec {codec}" not in str(error):
                raise
            return {"missing": codec}

    return do


def _show_plan(arguments):
    """Without a look at any field."""
    names = map(fields.name_of, arguments.fields) if arguments.fields else fields.expected_names()
    _plan_of_runs(arguments, [fields.Field(name, None, "") for name in names],
                  arguments.output).show()
    print("Large fields take longer than that, and so does fetching the built-in set.")


def _measured(arguments, used):
    """(rows of the steps, dumps, codecs that are not in this build)."""
    with tempfile.TemporaryDirectory(prefix="study-",
                                     dir=arguments.directory or arguments.output) as scratch:
        found = _plan_of_runs(arguments, used, pathlib.Path(scratch).resolve()).carry_out()

    def of(kind, make):
        return [make(**row) for key, result in found.items() if key.startswith(kind)
                for row in result.get("rows", ())]

    missing = dict.fromkeys(result["missing"] for result in found.values() if "missing" in result)
    return of("steps-", sweep.Row), of("dump-", sweep.Dump), list(missing)


def run(arguments):
    if arguments.dry_run:
        _show_plan(arguments)
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    used, left_out = _fields(arguments)
    rows, dumps, missing = _measured(arguments, used)
    study = results.Study(rows, arguments.machine, dumps)
    drawn = {"power-and-runtime": figures.power_and_runtime(study),
             "energy-by-bound": figures.energy_by_bound(study),
             "ratio-and-speed": figures.ratio_and_speed(study)}
    equal = study.at_equal_error()
    files = {"measurements.csv": results.measurements(rows),
             "equal-error.csv": results.csv_of(EQUAL_COLUMNS, [row.values() for row in equal]),
             "fits.csv": results.csv_of(FIT_COLUMNS, fit_rows(study)),
             "dump.csv": runs.csv_of(study.dump_rows()),
             "study.html": _page(study, used, _notes(study, missing, left_out), drawn)}
    files |= {f"{name}.png": look.saved(figure, "png") for name, figure in drawn.items()}
    for name, data in files.items():
        print(written(arguments.output / name, data))


# ---- tables --------------------------------------------------------------------------------------

FIT_COLUMNS = ("step", "of", "how", "a", "b", "c", "sse", "rmse", "r2", "points", "a_top_off",
               "b_off", "c_off")
EQUAL_COLUMNS = ("codec", "measure", "value", "ratio", "fields")


def fit_rows(study):
    """The published curves, what the fitting makes of data synthesised out of them,
    and the fits of here."""
    rows = []
    for curve in published.curves():
        rows.append((curve.step, curve.data, "published", curve.a, curve.b, curve.c, curve.sse,
                     curve.rmse, curve.r2, *[None] * 4))
        again = results.recovered(curve)
        rows.append((curve.step, curve.data, "fitted to data made of the published curve", again.a,
                     again.b, again.c, again.sse, again.rmse, again.r2, again.points,
                     *again.intervals()))
    for step in results.STEPS:
        found = study.power_fit(step)
        if found:
            rows.append((step, "this machine, f over its base clock", "measured", found.a, found.b,
                         found.c, found.sse, found.rmse, found.r2, found.points,
                         *found.intervals()))
    return rows


def _number(value, text="{:.4g}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))


def _fit_table(study):
    rows = [[step, of, how, *(_number(value) for value in values)]
            for step, of, how, *values in fit_rows(study)]
    return page.table("fits", ["<step", "<of", "<how", *FIT_COLUMNS[3:]], rows)


def _against_table(study):
    """Shows what the rule does, as printed and here."""
    rows = []
    for step, clock in published.RULE.items():
        power, power_how = study.power_at(step, clock)
        longer, longer_how = study.longer_at(step, clock)
        both = power_how if power_how == longer_how else f"power {power_how}, time {longer_how}"
        rows += [[f"power saved {figures.STEP_NAMES[step]}, at {clock} of the clock",
                  _number(100 * published.SAVED_POWER[step], "{:.1f} %"),
                  _number(100 * (1 - power), "{:.1f} %"), power_how],
                 [f"longer {figures.STEP_NAMES[step]}",
                  _number(100 * (published.LONGER[step] - 1), "{:.1f} %"),
                  _number(100 * (longer - 1), "{:.1f} %"), longer_how],
                 [f"energy saved {figures.STEP_NAMES[step]}",
                  _number(100 * (1 - (1 - published.SAVED_POWER[step]) * published.LONGER[step]),
                          "{:.1f} %"),
                  _number(100 * (1 - power * longer), "{:.1f} %"), both]]
    rows.append(["energy saved, both, mean over bounds and lossy codecs",
                 _number(100 * published.SAVED_ENERGY, "{:.1f} %"),
                 _number(_saved_of_both(study), "{:.1f} %"), both])
    return page.table("against", ["<", "published", "here", "<here it is"], rows)


def _dump_parts(study):
    """The dump as it was done, beside what is reckoned and what is published of one."""
    made = study.dump_rows()
    if not made:
        return []
    ruled = {"none": "with the rule it was not done (--actuator)",
             "emulated": "again with the rule, at emulated clocks",
             "cpufreq": "again with the rule, at clocks that were set"}[made[0]["clock_by"]]
    text = (f"{made[0]['gb']:.3g} GB of the fields, as much of each, one after the other on one "
            "core: compressed, written to a file for each field, and synced; once at the full "
            f"clock, {ruled}. Reckoned: the same from the time of each step above, where every "
            "copy of a field is synced; what energy the rule saves there is "
            f"{'measured' if study.in_joules else 'modelled'}. ")
    saved = _saved_of_both(study)
    if saved is not None:
        text += (f"What is reckoned saves ≈ {saved:.1f} % of the energy on the mean over bounds "
                 "and lossy codecs, which has no bound. ")
    text += (f"Published: {published.SAVED_J / 1e3:g} kJ, or {100 * published.SAVED_ENERGY:.0f} %, "
             f"of {published.DUMPED_GB:g} GB, the mean over bounds of SZ, written over NFS; its "
             "time is not printed, and neither is how far its energy may be off.")
    rows = [[row["codec"], f"{row['bound']:.0e}" if row["bound"] else "-",
             *(_measured_number(row[f"here_{name}"], digits) for _, name, digits in TIMES),
             *(amounts.text_cell(amounts.of_columns(f"here_{name}", row), "not measured")
               for _, name in JOULES),
             amounts.saved_cell(row["here_energy_saved_pct"], row["here_energy_saved_off_pct"],
                                "not measured"),
             *(_number(row[f"reckoned_{name}"], digits) for _, name, digits in TIMES[:2]),
             *(amounts.text_cell(amounts.of_columns(f"reckoned_{name}", row))
               for _, name in JOULES),
             amounts.saved_cell(row["reckoned_energy_saved_pct"], None),
             _number(row.get("published_energy_saved_pct"), "{:.0f}")] for row in made]
    joules = [f"{head} {amounts.TEXT_HEAD}" for head, _ in JOULES]
    times = [head for head, *_ in TIMES]
    return [page.heading(f"A dump of {made[0]['gb']:.3g} GB"), page.paragraph(text),
            page.table("dump",
                       ["<codec", "<bound", *times, *joules, "energy saved %",
                        *(f"reckoned {head}"
                          for head in (*times[:2], *joules, "energy saved %")),
                        "published energy saved %"],
                       rows)]


TIMES = (("s", "seconds", "{:,.2f}"), ("s with the rule", "seconds_with_rule", "{:,.2f}"),
         ("longer %", "longer_pct", "{:+.1f}"))
JOULES = (("J", "joules"), ("J with the rule", "joules_with_rule"))


def _measured_number(value, text):
    return page.Number("not measured") if value is None else _number(value, text)


def _saved_of_both(study):
    saved = []
    for codec in study.codecs:
        for bound in study.bounds:
            plain, ruled = ([study.energy(codec, bound, step, rule) for step in results.STEPS]
                            for rule in (False, True))
            if None not in plain:
                saved.append(100 * (1 - sum(ruled) / sum(plain)))
    return sum(saved) / len(saved) if saved else None


def _codec_table(study):
    rows = []
    for codec in study.codecs:
        for bound in sorted({row.bound for row in study.rows if row.codec == codec}, reverse=True):
            found = [row for row in study.rows if (row.codec, row.bound, row.step, row.clock_asked)
                     == (codec, bound, "compress", 1.0)]
            speeds = [page.Number(f"{1e3 / seconds:,.0f}", 1e3 / seconds) for seconds in (
                study.seconds_per_gb(codec, bound, step) for step in ("compress", "decompress"))]
            worst = max(row.greatest_error for row in found)
            off = study.seconds_off(codec, bound, "compress")
            psnr = [row.psnr_db for row in found if row.psnr_db is not None]
            rows.append([codec, f"{bound:.0e}" if bound else "-",
                         _number(results.mean(row.ratio for row in found), "{:.2f}"),
                         *speeds, _number(None if off is None else 100 * off, "{:.1f}"),
                         _number(worst, "{:.3g}"),
                         _number(min(psnr) if psnr else None, "{:.0f}"),
                         str(sum(row.lossless_blocks for row in found)),
                         str(sum(row.blocks for row in found))])
    return page.table("codecs",
                      ["<codec", "<bound", "ratio", "compress MB/s", "decompress MB/s",
                       "compress +- %", "greatest error", "least PSNR dB", "gave way", "blocks"],
                      rows)


def _equal_parts(study):
    """A bound says little of the error: some codecs stay far below theirs."""
    rows = study.at_equal_error()
    if not rows:
        return []
    parts = [page.paragraph("Codecs differ in how far they stay below their bound. So here is the "
                            "ratio where their real errors are equal: at equal PSNR, and at an "
                            "equal greatest error. It is interpolated between bounds, over the "
                            "fields for which all codecs have such an error.")]
    for measure, head, text in (("psnr_db", "PSNR dB", "{:g}"),
                                ("greatest_error", "greatest error", "{:.0e}")):
        codecs = list(dict.fromkeys(row["codec"] for row in rows if row["measure"] == measure))
        values = list(dict.fromkeys(row["value"] for row in rows if row["measure"] == measure))
        at = {(row["codec"], row["value"]): row for row in rows if row["measure"] == measure}
        cells = [[_number(value, text),
                  *(_number(at[codec, value]["ratio"], "{:.2f}") if (codec, value) in at
                    else page.Number("-") for codec in codecs),
                  str(max(row["fields"] for row in at.values() if row["value"] == value))]
                 for value in values]
        parts.append(page.table(f"equal-{measure.replace('_', '-')}", [head, *codecs, "fields"],
                                cells))
    return parts


def _field_table(used):
    rows = [[records.printable(field.name), str(field.values.dtype),
             "x".join(map(str, field.values.shape)),
             page.Number(f"{field.values.nbytes / 1e6:.1f}", field.values.nbytes),
             records.printable(field.origin)] for field in used]
    return page.table("fields", ["<field", "<type", "<shape", "MB", "<what it is"], rows)


# ---- the page ------------------------------------------------------------------------------------


def _notes(study, missing, left_out):
    texts = []
    if not study.measures_power:
        texts.append("No counter measured power over a real clock here, so there is no P(f) of "
                     "this machine. What depends on it uses the published curve of "
                     f"{study.machine} and is modelled.")
    if not study.has_clocks:
        texts.append("Everything was timed at the full clock; how much longer it takes at a lower "
                     "one is the published share of the clock. --actuator cpufreq or emulated "
                     "measures that.")
    elif any(row.clock_is_emulated for row in study.rows):
        texts.append("Clocks are emulated: the thread gets a share of the time. Times are real; "
                     "power is not that of a slower clock.")
    if missing:
        texts.append(f"Not in this build: {', '.join(missing)}.")
    if left_out:
        texts.append(f"Left out: {'; '.join(map(records.printable, left_out))}.")
    return texts


def _page(study, used, notes, drawn):
    def picture(name, about, caption):
        return page.picture(look.saved(drawn[name], "svg"), about, caption)

    kinds = "measured" if study.measures_power else "modelled"
    mark = kinds + (", clocks emulated" if any(row.clock_is_emulated for row in study.rows) else "")
    return page.document("Compressing checkpoints", [
        page.heading_of_page("Compressing checkpoints"), f"<p>{page.kind_mark(mark)}</p>\n",
        page.notes(notes),
        page.heading("Codecs and bounds"),
        picture("ratio-and-speed", "Ratio and speed of every codec and bound",
                "Up and to the right is better."),
        _codec_table(study), *_equal_parts(study),
        page.heading("Energy by bound"),
        picture("energy-by-bound", "Energy of compressing and writing by bound",
                f"The rule: {published.RULE['compress']} of the clock compressing, "
                f"{published.RULE['write']} writing."),
        page.heading("Power and run time over the clock"),
        picture(
            "power-and-runtime", "Power and run time over the clock",
            "φ: the share of the run time that scales with the clock. Shaded: 95 % confidence."),
        page.heading("Against the published study"), _against_table(study),
        page.paragraph("Energy saved, as published, is computed from the printed savings of power "
                       "and the printed slowdowns; both together is the separate measurement that "
                       "it prints."),
        _fit_table(study),
        *_dump_parts(study),
        page.heading("Fields"), _field_table(used)])
