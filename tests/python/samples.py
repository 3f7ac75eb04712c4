"""Ledgers written by hand."""

import json


def off(sampling_j, sensor_j=0.0, attribution_j=0.0):
    return {"sampling_j": sampling_j, "sensor_j": sensor_j, "attribution_j": attribution_j}


def phase(name, version, level, joules, **more):
    """`joules`: of the total, None for unknown, ... for want of a source."""
    made = {"phase": name, "version": version, "level": level, "beside": "nothing",
            "start_unix_s": 1000.0,
            "seconds": 1.0, "bytes": 1024, "uncertainty": off(3.0)}
    if joules is not ...:
        made["joules"] = {"total": None} if joules is None else {"total": joules, "node": joules}
    return made | more


def energy(end, seconds, program, phases, incarnation=1, **more):
    """Of a machine with a meter; the whole is what it must be."""
    whole = program + sum(one.get("joules", {}).get("total") or 0.0 for one in phases)
    return ({"schema": 2,
             "event": "energy",
             "incarnation": incarnation,
             "time_unix_s": end,
             "machines": 1,
             "seconds": seconds,
             "gap_s": 0.0,
             "total": "node",
             "sources": [{"domain": "node", "source": "hwmon node", "kind": "measured"}],
             "program": {"joules": {"total": program, "node": program}},
             "whole": {"joules": {"total": whole, "node": whole}},
             "phases": phases} | more)


def event(kind, at, incarnation=1, **more):
    return {"schema": 1, "event": kind, "incarnation": incarnation, "time_unix_s": at} | more


def write(path, lines):
    """Lines that are text are written as they are."""
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n"
                            for one in lines))
    return path


# 100 s and 11000 J. Captured at 1040, lost at 1060, gone on at 1066 from there.
RUN = [event("open", 1000.0),
       energy(1060.0, 60.0, 6000.0, [phase("capture", 10, 0, 500.0, start_unix_s=1039.0),
                                     phase("global", 10, 4, 1000.0)]),
       event("open", 1065.0, 2),
       event("restart", 1066.0, 2, version=10),
       energy(1106.0, 40.0, 3000.0, [phase("restore", 10, 0, 500.0)], incarnation=2)]
