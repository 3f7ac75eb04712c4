"""The report of a job: what is told of a ledger, in which order."""

from __future__ import annotations

import datetime

from diapause import amounts, comparison, look, page, pictures, records, timeline
from diapause.history import History

MOST_VERSIONS = 200  # rows; the newest


def bytes_text(size):
    value, unit = float(size), 0
    while value >= 1023.95 and unit < 6:
        value, unit = value / 1024, unit + 1
    names = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    return f"{size} B" if unit == 0 else f"{value:.1f} {names[unit - 1]}"


def _share_cell(account, sum_):
    return page.Number(account.share_text(sum_), account.percent(sum_))


def _amount_cells(account, sum_):
    return [page.Number(f"{sum_.seconds:,.3f}", sum_.seconds),
            page.Number(bytes_text(sum_.bytes), sum_.bytes), *amounts.cells(sum_),
            _share_cell(account, sum_)]


AMOUNTS = ["seconds", "protected data", *amounts.heads("energy"), "of all"]


def _unit_cell(value, unit):
    return page.Number("-") if value is None else page.Number(f"{value:,.2f} {unit}", value)


def _watts_cell(account):
    watts, off = account.watts, account.whole.uncertainty_j
    if watts is None:
        return page.Number("-")
    if account.whole.is_estimate:
        return page.Number(f"≈ {look.rounded(watts, 'W')}", watts)
    return page.Number(look.digits(watts, off / account.covered_s if off else None, "W")[0], watts)


def date_text(unix_s):
    try:
        return datetime.datetime.fromtimestamp(
            unix_s, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "?"


# ---- tables --------------------------------------------------------------------------------------


def _whole_table(account):
    rows = [["runtime", _unit_cell(account.runtime_s, "s")],
            ["average power", _watts_cell(account)],
            ["energy", amounts.cell(account.whole)],
            ["energy may be off by", amounts.uncertainty_cell(account.whole)],
            *([f"of that: {head}", cell]
              for head, cell in zip(amounts.PART_HEADS, amounts.parts_cells(account.whole)))]
    return page.table("whole", ["<whole job", ""], rows)


def _phase_table(account):
    rows = [[name, page.Number(str(sum_.times), sum_.times), *_amount_cells(account, sum_)]
            for name, sum_ in account.by_phase().items()]
    for name, sum_ in (("program", account.program), ("whole job", account.whole)):
        rows.append([name, "", "", "", *amounts.cells(sum_), _share_cell(account, sum_)])
    return page.table("phases", ["<phase", "times", *AMOUNTS], rows, sums=2)


def _domain_table(account):
    """Empty if there is no more to tell than the total."""
    if list(account.by_domain) in ([], [account.total]):
        return ""
    rows = []
    for domain, (whole, phases) in account.by_domain.items():
        kinds = sorted({source.kind for source in account.sources if source.domain == domain})
        share = (_share_cell(account, whole) if account.is_covered(domain)
                 else page.Number("not in the total"))
        for what, sum_, of_all in (("whole job", whole, share),
                                   ("checkpoints and restarts", phases, page.Number(""))):
            rows.append([domain, " and ".join(kinds), what, *amounts.cells(sum_), of_all])
    return page.heading("By domain") + page.table(
        "domains", ["<domain", "<known as", "<for", *amounts.heads("energy"), "of all"], rows)


def _uncertainty_table(account):
    rows = [[name, amounts.uncertainty_cell(sum_), *amounts.parts_cells(sum_)]
            for name, sum_ in (("whole job", account.whole), ("program", account.program),
                               ("phases", account.all_phases))]
    return page.table("uncertainty", ["<of", "together", *amounts.PART_HEADS], rows)


def _level_table(account):
    rows = [[look.level_name(level),
             page.Number(str(len(sum_.bytes_by_version)), len(sum_.bytes_by_version)),
             *_amount_cells(account, sum_)] for level, sum_ in account.by_level().items()]
    return page.table("levels", ["<level", "versions", *AMOUNTS], rows)


def _version_table(account):
    events = {}
    for event in account.ledger.events("checkpoint"):
        events[records.count(event.fields, "version")] = event
    rows = []
    newest = list(account.by_version().items())[-MOST_VERSIONS:]
    for (version, is_restart), sum_ in reversed(newest):
        event = None if is_restart else events.get(version)
        fields = event.fields if event else {}
        level = records.count(fields, "level_reached")
        blocked_s = records.duration(fields, "blocked_s")
        reached = "" if level is None else "none" if level == 0 else f"L{level}"
        rows.append([page.Number(str(version), version), "restart" if is_restart else "checkpoint",
                     reached,
                     page.Number("") if blocked_s is None
                     else page.Number(f"{blocked_s:.3f}", blocked_s),
                     *_amount_cells(account, sum_), records.text(fields, "error") or ""])
    heads = ["version", "<for", "<level", "blocked s", *AMOUNTS]
    return page.table("versions", heads + ["<error"] * any(row[-1] for row in rows), rows)


def _source_table(account):
    rows = [[source.domain, source.kind, source.name] for source in account.sources]
    return page.table("sources", ["<domain", "<how", "<source"], rows)


def _slowed_table(account):
    """Of each phase that the governor slowed: how often, and the lowest ratios.

    Empty if there was none.
    """
    seen = {}
    for phase in account.phases:
        if phase.slowed:
            seen.setdefault((phase.name, phase.slowed.actuator), []).append(phase.slowed)
    rows = [[name, actuator, str(len(found)), *(page.Number(f"{lowest:.3f}", lowest) for lowest in
                                                (min(one.asked for one in found),
                                                 min(one.obtained for one in found)))]
            for (name, actuator), found in sorted(seen.items())]
    if not rows:
        return ""
    return page.table("slowed", ["<phase", "<actuator", "times", "asked", "obtained"], rows)


def _change_cell(change):
    return page.Number("-") if change is None else page.Number(change.text, change.percent)


def _comparison_table(named):
    """`named`: (name, account) of the jobs; percentages are against the first."""
    base = named[0][1]
    rows = []
    for name, account in named:
        cells = []
        values = (_unit_cell(account.runtime_s, "s"), _watts_cell(account),
                  amounts.cell(account.whole))
        for cell, change in zip(values, comparison.changes(account, base)):
            cells += [cell, _change_cell(None if account is base else change)]
        rows.append([name, *cells, amounts.uncertainty_cell(account.whole),
                     *amounts.parts_cells(account.whole), account.kind or "no source",
                     account.ledger.path])
    heads = ["<job", "runtime", "change", "average power", "change", "energy", "change",
             *amounts.heads("")[1:], "<how", "<ledger"]
    return page.table("comparison", heads, rows)


# ---- notes ---------------------------------------------------------------------------------------


def notes_of(account):
    texts = []
    if "modelled" in account.kind:
        texts.append("Modelled energy comes from a machine profile and not from a counter: good "
                     "for comparing runs on one machine, and not for a bill.")
    if "replayed" in account.kind:
        texts.append("Replayed energy comes from a recorded trace: it is that of another time, "
                     "and maybe of another machine.")
    if account.whole.is_estimate:
        texts.append(
            "Energies with ≈ are estimates without a bound: nobody knows how far they are off.")
    if account.sharing:
        shared = (f"Whole nodes, shared with others: {account.sharing.others_percent:.0f} % of the "
                  "processor time was used by others")
        if account.sharing.job:
            part = amounts.text(account.sharing.job)
            shared += (f"; by processor time the job's part is {part}, if processors draw at most "
                       "twice as much for one program as for another")
        texts.append(shared + ".")
    for parts in sorted({line.told_apart_by for line in account.ledger.energy
                         if line.told_apart_by}):
        texts.append(
            f"Phases are told apart by {parts}, calibrated against the slower meter of the total.")
    for boards in sorted({one for line in account.ledger.energy for one in line.left_out}):
        texts.append(f"{boards}.")
    if account.is_emulated:
        texts.append("Clocks were emulated: the times of slowed phases are real, and their power "
                     "is not that of a slower clock.")
    if account.gap_s > 0:
        texts.append(
            f"No source knows anything of {account.gap_s:.3f} s; their energy is in no number.")
    if account.unmetered:
        texts.append(f"Of {account.unmetered} of {account.machines} machines the energy is "
                     "unknown, of some of the time at least, and in no number.")
    if account.all_phases.unknown:
        phases = account.all_phases
        texts.append(f"Of {phases.unknown} of {phases.times} phases the energy is unknown; it "
                     "counts as the program's.")
    if account.whole.is_partial:
        lines = len(account.ledger.energy) + account.missing_lines
        texts.append(f"In {account.whole.unknown + account.whole.absent} of {lines} lines the "
                     "energy of the whole, or of a machine, is missing.")
    if account.missing_lines:
        texts.append(f"At least {account.missing_lines} lines of the ledger are missing, of "
                     f"{account.missing_s:.3f} s: the energy of that time is in no number.")
    for end in account.open_ends:
        seconds = "" if end.seconds is None else f"{end.seconds:.2f} s"
        texts.append(
            f"Start {end.incarnation} lacks its last energy lines: what it used in "
            f"{'its last ' + seconds if seconds else 'all its time'} is in no number."
            if end.was_closed else
            f"Start {end.incarnation} has no line that ends it: it was killed, it still runs, or "
            "the end of the ledger is missing; what it used after its last line"
            f"{', for at most ' + seconds + ',' if seconds else ''} is in no number.")
    if account.ledger.lost_lines:
        texts.append(f"{account.ledger.lost_lines} lines of the ledger could not be written while "
                     "the job ran, and are lost.")
    if account.ledger.repeated_lines:
        texts.append(f"{account.ledger.repeated_lines} lines of the ledger are there twice, and "
                     "count once.")
    if account.ledger.damaged_lines:
        texts.append(f"{account.ledger.damaged_lines} lines of the ledger are damaged and left "
                     "out, whole or in part.")
    return texts + [_lost_text(lost) for lost in account.lost]


def _lost_text(lost):
    begin = f"Start {lost.incarnation} went back to version {lost.version}: "
    if lost.seconds is None:
        return begin + "how much work was done again is not known, no line tells of its capture."
    if lost.seconds < 0.005:
        return begin + "no work that a line tells of was for nothing."
    joules = f" and {amounts.text(lost.joules)}" if lost.joules.known else ""
    return begin + f"{lost.seconds:.2f} s{joules} of the program were for nothing."


# ---- the page ------------------------------------------------------------------------------------


def pictures_of(account, traces, named):
    """{name of a file without its ending: (figure, title, caption)}, in the order of the page."""
    made = {}
    machines = f"{account.machines} machine{'s' * (account.machines != 1)}"
    curves = timeline.curves_of_ledger(account.ledger, timeline.axis_of(account.ledger))
    made["power"] = (
        pictures.power_over_time(account, f"Power over time, {machines}", curves,
                                 pictures.source_label(account)),
        "Power of each domain over time, with the phases of checkpoints and restarts",
        "Power is the mean between two lines of the ledger. Bands and lanes: phases, in the colour "
        "of their level; a phase that is shorter than a pixel is drawn as wide as one.")
    for place, trace in enumerate(traces, start=1):
        label = f"{trace.total_kind}: " + ", ".join(
            sorted({domain.name for domain in trace.domains}))
        curves = timeline.curves_of_trace(trace, timeline.axis_of(account.ledger))
        made[f"power-{place}"] = (
            pictures.power_over_time(account,
                                     f"Power of node {look.shortened(trace.host, 30)} over time",
                                     curves, look.shortened(label, 70)),
            f"Power of each domain of node {trace.host} over time", f"Recorded in {trace.path}."
            + ("" if curves else " Nothing of it was recorded while the job ran."))
    made["energy"] = (
        pictures.energy_by_phase_and_level(account), "Energy by phase and by level",
        "±: together; in brackets its parts: samples apart in time + the source itself + who is "
        "charged.")
    if len(named) > 1:
        made["jobs"] = (pictures.time_against_energy(named), "Runtime and energy of several jobs",
                        "Above the dashed line a job drew more power than the first, below it "
                        "less.")
    return made


def _plural(count, what):
    return f"{count} {what}{'s' * (count != 1)}"


def _time_cards(account):
    past = History(account.ledger)
    restarts = _plural(past.restarts, "restart")
    share = "-" if past.overhead is None else f"{past.overhead:.2%}".replace("%", " %")
    failed = f", {past.failed} of them failed" if past.failed else ""
    return page.cards([
        ("runtime", look.time_text(past.runtime_s or account.runtime_s)),
        (f"held up by {_plural(past.checkpoints, 'checkpoint')}{failed}: {past.blocked_s:.2f} s",
         share),
        (f"in {_plural(past.starts, 'start')}; {restarts} from a checkpoint",
         _plural(past.failures, "failure"))])


def _power_text(account):
    if account.watts is None:
        return "-"
    if account.whole.is_estimate:
        return f"≈ {look.rounded(account.watts, 'W')}"
    off = account.whole.uncertainty_j
    value, error = look.digits(account.watts, off and off / account.covered_s, "W")
    return f"{value.removesuffix(' W')} ± {error}" if error else value


def _energy_cards(account):
    safety = account.all_phases
    share = account.share_text(safety)
    of_all = f", {share} of all" if share != "-" else ""
    return page.cards([
        (f"energy of the whole job, {account.kind or 'no source'}",
         pictures.joules_text(account.whole)),
        (f"for checkpoints and restarts{of_all}", pictures.joules_text(safety)),
        ("average power", _power_text(account))])


def _head(name, account):
    times = [line.end_unix_s for line in account.ledger.energy]
    begin = min((line.end_unix_s - line.seconds for line in account.ledger.energy), default=0.0)
    starts = f"{len(account.incarnations)} start{'s' * (len(account.incarnations) != 1)}"
    mark = account.kind + (", clocks emulated" if account.is_emulated else "")
    return (page.heading_of_page(f"Job {name}") + page.paragraph(
        f"{date_text(begin)} to {date_text(max(times, default=0.0))}, {starts}, {account.machines} "
        f"machine{'s' * (account.machines != 1)}. Ledger: {account.ledger.path}", quiet=True)
        + "<p>" + page.kind_mark(mark) + " "
            + page.quiet(account.total and f"total of {account.total}") + "</p>\n")


def page_of(name, account, compared, traces):
    """(the page as bytes, its pictures as {name: figure}).

    `compared`: (name, account) of other jobs.
    """
    named = [*compared, (name, account)]
    drawn = pictures_of(account, traces, named)
    figures = {key: page.picture(look.saved(figure, "svg"), about, caption)
               for key, (figure, about, caption) in
               drawn.items()}
    parts = [_head(name, account), _time_cards(account), _energy_cards(account),
             page.notes(notes_of(account)), page.heading("Power over time")]
    parts += [figure for key, figure in figures.items() if key.startswith("power")]
    parts += [page.heading("Who used the energy"), figures["energy"], _whole_table(account),
              _phase_table(account), page.heading("How far it may be off"),
              _uncertainty_table(account),
              page.heading("By level"), _level_table(account), _domain_table(account)]
    hidden = len(account.by_version()) - MOST_VERSIONS
    parts += [page.heading("By version"),
              page.paragraph(f"The newest {MOST_VERSIONS}; {hidden} older ones are in the "
                             "tables above.") if hidden > 0 else "", _version_table(account)]
    if slowed := _slowed_table(account):
        parts += [page.heading("Slowed phases"),
                  page.paragraph("By the governor: the lowest ratios of the base clock."), slowed]
    if compared:
        parts += [page.heading("Against other jobs"),
                  page.paragraph(f"Changes are against {named[0][0]}: (value - baseline) / "
                                 "baseline. ±: the error of the meters, which is less where both "
                                 "ran on the same machines; the scatter of runs of the same "
                                 "program is not in it. -: energy is missing."),
                  figures["jobs"],
                  _comparison_table(named)]
    parts += [page.heading("Sources"), _source_table(account)]
    return page.document(f"Job {name}", parts), {key: figure
                                                 for key, (figure, _, _) in drawn.items()}
