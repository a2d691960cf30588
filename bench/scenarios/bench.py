#!/usr/bin/env python3
"""Both engines in one run, pass by pass in turn: ./dev bench calls this.

    bench.py --vericache BINARY [--quick] [-m MODEL] [--json FILE] [--markdown FILE] [--plots DIR]

llama.cpp is built natively from the pinned source, once. Of its kinds of KV and attention the best
counts, row by row.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import engines
import figures
import plan
import report

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FETCH = ROOT / "third_party" / "fetch.py"
TURNS_MIN, TURNS_MAX = 2, 11      # the first one warms up
PASS_S, PASS_QUICK_S = 20.0, 3.0  # for all turns of one row, both engines
PARTS_TURNS = 5
START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:4.0f} s] {text}", file=sys.stderr, flush=True)


def fetch(*words):
    """The path that fetch.py prints."""
    result = subprocess.run([sys.executable, FETCH, *words], stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise engines.EngineError(f"fetch.py {' '.join(words)} failed")
    return result.stdout.strip()


def find_model(name):
    return name if pathlib.Path(name).is_file() else fetch("model", name)


class Run:
    """What the measurements of one model share."""

    def __init__(self, ours, peers, name, ceilings):
        self.ours, self.peers, self.name = ours, peers, name
        self.ceilings = ceilings  # the best seen so far, of all models
        self.context = ours.facts["n_context"]
        self.rows = []

    def add(self, row):
        self.rows.append({"model": self.name, **row})

    def look_at_limits(self):
        for key, value in self.ours.ask("ceilings").items():
            self.ceilings[key] = max(self.ceilings.get(key, 0), value)

    def peers_for(self, group):
        """Those that take part: a KV of 32k takes minutes to make, and gigabytes thrice."""
        return self.peers if group.depth <= plan.PEER_DEPTH_MAX else []


def measure_pass(run, peers, one, budget_s):
    """Turns of one pass each, until the time is up. Returns (our seconds, the peers', cost)."""
    ours, theirs, cost = [], {peer.name: [] for peer in peers}, None
    begin = time.monotonic()
    while len(ours) < TURNS_MIN or (len(ours) < TURNS_MAX
                                    and time.monotonic() - begin < budget_s):
        cost = run.ours.run_pass(one.rows, one.logits)
        ours.append(cost.pop("seconds"))
        for peer in peers:
            theirs[peer.name].append(peer.run_pass(one.rows, one.logits)["seconds"])
    return ours, theirs, cost


def measure_group(run, group, budget_s):
    say(f"{run.name}: {group.sessions} x depth {group.depth}")
    peers = run.peers_for(group)
    for engine in (run.ours, *peers):
        engine.open(group.sessions, group.room, group.depth)
    run.look_at_limits()
    for one in group.passes:
        ours, theirs, cost = measure_pass(run, peers, one, budget_s)
        run.add(figures.pass_row(group, one, ours, cost, theirs))
    for rows in group.parts:
        cost = run.ours.run_pass(rows, "all")
        answers = [run.ours.ask(f"parts {rows} all") for _ in range(PARTS_TURNS)]
        run.add(figures.parts_row(group, rows, answers, cost))


def measure_answers(run, wanted, folder):
    path = ROOT / wanted.text
    if wanted.text == "documents":
        path = folder / "documents.txt"
        texts = sorted((ROOT / "eval").glob("documents/*.txt"))
        texts += sorted((ROOT / "eval").glob("prompts/*.txt"))
        path.write_text("\n\n".join(text.read_text() for text in texts))
    say(f"{run.name}: {wanted.prompts} prompts, prefilling")
    prompts = run.ours.ask(f"prompts {wanted.prompts} {wanted.prompt_tokens} {path}")
    choices = (plan.Choice("full"), *wanted.choices)
    answers = {choice: [] for choice in choices}
    for number in range(wanted.turns):
        for choice in choices:
            say(f"{run.name}: turn {number + 1} of {wanted.turns}, {choice.name}")
            answers[choice].append(run.ours.ask(
                f"answer {choice.mode} {choice.drafter} {choice.compressor} "
                f"{choice.draft_len} {wanted.tokens}"))
    for choice in choices:
        run.add(figures.answer_row(wanted, choice, prompts["prompt_tokens"], answers[choice],
                                   answers[choices[0]]))


def measure_model(arguments, name, program, ceilings, log):
    """Returns (its rows, what our engine says of itself)."""
    path = find_model(name)
    threads = arguments.threads or len(os.sched_getaffinity(0))
    ours = engines.start_vericache(arguments.vericache, path, threads, log)
    peers = engines.start_peers(program, path, threads, log) if program else []
    run = Run(ours, peers, pathlib.Path(path).stem, ceilings)
    budget_s = PASS_QUICK_S if arguments.quick else PASS_S
    for group in plan.groups(run.context, arguments.depths, arguments.quick):
        measure_group(run, group, budget_s)
    for peer in peers:
        peer.close()
    with tempfile.TemporaryDirectory() as folder:
        for wanted in plan.answers(run.context, run.name, arguments.quick):
            measure_answers(run, wanted, pathlib.Path(folder))
    ours.close()
    return run.rows, ours.facts


def measure(arguments, log):
    program = None if arguments.no_peer else fetch("peer")
    load_before = os.getloadavg()[0]
    rows, starts, ceilings = [], {}, {}
    names = arguments.model or (plan.QUICK_MODELS if arguments.quick else plan.DEFAULT_MODELS)
    for name in names:
        model_rows, facts = measure_model(arguments, name, program, ceilings, log)
        rows += model_rows
        starts[pathlib.Path(facts["model"]).stem] = facts
    rows = [figures.with_limits(row, ceilings) for row in rows]
    return {"date": datetime.date.today().isoformat(),
            **{key: facts[key] for key in ("version", "cpu", "isa", "threads")},
            "load_before": load_before, "seconds": time.monotonic() - START,
            "ceilings": ceilings, "models": list(starts), "starts": starts, "rows": rows,
            "summary": figures.summary(rows, starts)}


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="./dev bench", description="VeriCache and llama.cpp in "
                                     "one run, pass by pass in turn.")
    parser.add_argument("--vericache", required=True, help=argparse.SUPPRESS)
    parser.add_argument("-m", "--model", action="append", help="a path, or a name that ./dev model "
                        "lists; may be given several times (default: "
                        f"{', '.join(plan.DEFAULT_MODELS)})")
    parser.add_argument("--quick", action="store_true",
                        help=f"some minutes, and {', '.join(plan.QUICK_MODELS)} alone")
    parser.add_argument("-t", "--threads", type=int, help="of either engine (default: all cores)")
    parser.add_argument("--depths", type=lambda text: [int(word) for word in text.split(",")],
                        metavar="N,...", help="tokens of KV before the rows (default: "
                        f"{','.join(map(str, plan.DEPTHS))}, as far as the context reaches)")
    parser.add_argument("--no-peer", action="store_true", help="without llama.cpp")
    parser.add_argument("--json", metavar="FILE", help="writes rows and summary")
    parser.add_argument("--markdown", metavar="FILE", help="writes the tables")
    parser.add_argument("--plots", metavar="DIR", help="writes pictures, PNG and SVG")
    return parser.parse_args(words)


def main(words):
    arguments = parse_arguments(words)
    if arguments.plots:
        try:
            import plots
        except ImportError as error:
            return f"error: --plots needs matplotlib: {error}"
    for path in filter(None, (arguments.json, arguments.markdown)):
        try:
            with open(path, "a"):
                pass
        except OSError as error:
            return f"error: {path} cannot be written: {error.strerror}"
    with tempfile.TemporaryFile("w+") as log:
        try:
            result = measure(arguments, log)
        except engines.EngineError as error:
            log.seek(0)
            sys.stderr.write(log.read())
            return f"error: {error}"
    print(report.as_text(result), end="")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(report.as_text(result, report.markdown))
    if arguments.plots:
        plots.plot_all(result, pathlib.Path(arguments.plots))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
