#!/usr/bin/env python3
"""Makes json.txt anew; the same bytes every time."""

import json
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent

TOOLS = ["plan_route", "reserve_berth", "weigh_cargo", "send_notice", "refuel", "inspect_hull"]
PORTS = ["Aldermouth", "Brackwater", "Corran", "Dunskerry", "Eastholm", "Fenwick Sound"]
STATES = ["done", "done", "done", "failed", "waiting"]
REASONS = ["", "berth taken", "scale out of order", "wind above limit", "no answer from the harbour"]


def record(index, random_source):
    state = random_source.choice(STATES)
    return {
        "id": f"job-{index:04d}",
        "tool": random_source.choice(TOOLS),
        "arguments": {
            "port": random_source.choice(PORTS),
            "vessel": f"V{random_source.randrange(100, 999)}",
            "tonnes": round(random_source.uniform(2, 480), 1),
            "window": [random_source.randrange(0, 12), random_source.randrange(12, 24)],
        },
        "state": state,
        "reason": random_source.choice(REASONS[1:]) if state != "done" else None,
        "attempts": random_source.randrange(1, 4),
    }


def write_json_prompt():
    random_source = random.Random(20240229)
    records = [record(index, random_source) for index in range(62)]
    text = "These are the records of a harbour's job queue, as JSON:\n\n"
    text += "[\n" + ",\n".join("  " + json.dumps(entry) for entry in records) + "\n]\n"
    text += (
        "\nWrite one JSON array that holds, for every job whose state is \"failed\", an object with the keys id, tool, "
        "port and reason, in the order of the records. Write JSON only.\n"
    )
    (HERE / "json.txt").write_text(text)


if __name__ == "__main__":
    write_json_prompt()
