"""Pictures of what `diapause plan` and `diapause simulate` say, from their JSON."""

from __future__ import annotations

import json
import pathlib

import matplotlib

from diapause import files, look

PARTS = {"work": look.GREEN, "rework": look.VERMILION, "checkpoints": look.BLUE,
         "slowed by them": look.SKY,
         "restarts": look.PURPLE, "down": look.GREY, "behind checkpoints": look.ORANGE}
ACTIVITIES = {"compute": look.GREEN, "slowed": look.SKY, "checkpoint": look.BLUE,
              "restart": look.PURPLE,
              "down": look.GREY, "queue": look.LIGHT}
MODEL = "expected values of a model"


def _bars(axes, names, values, title):
    """Horizontal bars of parts, one below the other; `values`: {part: [share of each bar]}."""
    left = [0.0] * len(names)
    for part, shares in values.items():
        axes.barh(names, [100 * share for share in shares], left=[100 * x for x in left],
                  color=PARTS[part], label=part, height=0.6)
        left = [a + b for a, b in zip(left, shares)]
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_title(title, loc="left")
    axes.set_xlabel("percent")


def picture_of_plan(plan):
    schedules = plan["schedules"]
    if not schedules:
        raise files.Trouble("nothing fails: there is nothing to draw")
    names = [schedule["name"] for schedule in schedules]
    made = look.figure(3.6, f"Schedules for {plan['nodes']} nodes", MODEL)
    with matplotlib.rc_context(look.STYLE):
        upper, lower = made.subplots(2, 1, sharex=True,
                                     gridspec_kw={"left": 0.18, "right": 0.8, "top": 0.84,
                                                  "bottom": 0.14, "hspace": 0.35})
        for axes, key, title in ((upper, "of_time", "share of time"),
                                 (lower, "of_energy", "share of energy")):
            parts = {part: [schedule["parts"][part][key] for schedule in schedules]
                     for part in PARTS}
            _bars(axes, names, parts, title)
        upper.set_xlabel("")
        lower.legend(loc="center left", bbox_to_anchor=(1.02, 1.2))
    return made


def picture_of_sizes(sizes):
    """Draws figure 1 of the published paper on throttled checkpoints: shares of wall-clock
    time against the size."""
    rows = [row for row in sizes["sizes"] if row["plan"]]
    if not rows:
        raise files.Trouble("nothing fails: there is nothing to draw")
    made = look.figure(4, "Where the time goes, at the optimal interval of each size", MODEL)
    with matplotlib.rc_context(look.STYLE):
        axes = made.subplots(gridspec_kw={"left": 0.1, "right": 0.8, "top": 0.86, "bottom": 0.22})
        parts = [part for part in PARTS if part != "behind checkpoints"]
        axes.stackplot([row["nodes"] for row in rows],
                       [[100 * row["plan"]["parts"][part]["of_time"] for row in rows]
                        for part in parts],
                       labels=parts, colors=[PARTS[part] for part in parts])
        axes.set_xscale("log", base=2)
        axes.set_xticks([row["nodes"] for row in rows], [f"{row['nodes']:,}" for row in rows],
                        rotation=30, ha="right")
        axes.minorticks_off()
        axes.set_ylim(0, 100)
        axes.margins(x=0)
        axes.set_xlabel("nodes")
        axes.set_ylabel("percent of wall-clock time")
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return made


def picture_of_events(events):
    """The time line of one run: what the job did, and what failed."""
    unit, length = look.scale_of(events["wall_s"])
    made = look.figure(3.4, "Time line of the first run", "simulated")
    with matplotlib.rc_context(look.STYLE):
        axes = made.subplots(gridspec_kw={"left": 0.12, "right": 0.97, "top": 0.86, "bottom": 0.15})
        lanes = [name
                 for name in ACTIVITIES if any(event["what"] == name for event in events["events"])]
        for place, name in enumerate(lanes):
            spans = [(event["begin_s"] / length, (event["end_s"] - event["begin_s"]) / length)
                     for event in events["events"] if event["what"] == name]
            axes.broken_barh(spans, (place - 0.4, 0.8), color=ACTIVITIES[name], linewidth=0.3)
        failures = [event["begin_s"] / length
                    for event in events["events"] if event["what"] == "failure"]
        axes.plot(failures, [len(lanes)] * len(failures), "|", color=look.VERMILION, markersize=8)
        axes.set_yticks(range(len(lanes) + 1), [*lanes, "failures"])
        axes.set_ylim(-0.6, len(lanes) + 0.6)
        axes.set_xlabel(f"time ({unit})")
        axes.invert_yaxis()
    return made


def draw(numbers, output):
    """Draws the JSON file `numbers` into the file `output`, by the ending of its name."""
    try:
        told = json.loads(pathlib.Path(numbers).read_text(encoding="utf-8"))
        make = {"plan": picture_of_plan, "sizes": picture_of_sizes,
                "events": picture_of_events}[told["kind"]]
    except (ValueError, KeyError, TypeError) as error:
        raise files.Trouble(f"{numbers} has no plan, sizes or events") from error
    kind = pathlib.Path(output).suffix.lstrip(".").lower()
    if kind not in ("svg", "png"):
        raise files.Trouble(f"{output}: the name of a picture ends in .svg or .png")
    print(files.written(output, look.saved(make(told), kind)))
