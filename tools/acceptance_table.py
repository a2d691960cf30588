#!/usr/bin/env python3
"""Writes measured acceptance into docs/compressors.md, between its two markers.

    vericache bench acceptance ... --json FILE      per model, or per model and text
    acceptance_table.py FILE...                     replaces what was there

A line is the mean over a model's texts, except that each has its own column of accepted tokens.
Lines are sorted by the bytes that a token of the answer costs.
"""

import json
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "compressors.md"
BEGIN = "<!-- measured: written by tools/acceptance_table.py -->"
END = "<!-- end of what was measured -->"
# What a spec says for every method alike, or by default: left out in the table.
SILENT = ("budget=uniform", "window=64", "window=256", "kernel=5", "sinks=4", "recent=0.5",
          "recent=64", "chunk=64", "r=0.25", "dr=0.025", "rmin=0.1", "split=alternate",
          "of=a", "degree=on", "base=keydiff", "reach=64")


def short_spec(spec):
    """The spec without what goes without saying."""
    stages = []
    for stage in spec.split("+"):
        name, _, pairs = stage.partition(":")
        said = [pair for pair in pairs.split(",") if pair and pair not in SILENT]
        stages.append(name + (":" + ",".join(said) if said else ""))
    return "+".join(stages)


def read_share(result, text, weight_bytes):
    """Bytes read per token of the answer, of those of plain decoding: weights and KV, each draft
    row and each verify once."""
    plain = weight_bytes + text["kv_full_bytes"]
    draft = weight_bytes + result["kv_bytes"]
    return (result["draft_len"] * draft + plain) / (result["accepted"] + 1) / plain


def joined(reports):
    """Runs that differ only in texts, compressors, version and day as one: neither of the latter
    changes a bit of what is counted. What was measured twice counts once, the last time."""
    together = {}
    for report in reports:
        same = {key: report[key] for key in ("model", "cpu", "isa", "threads", "predict")}
        whole = together.setdefault(json.dumps(same), {**report, "runs": [], "texts": {}})
        whole["runs"].append(f"{report['date']}, version {report['version']}")
        for text in report["texts"]:
            results = whole["texts"].setdefault(text["file"], {**text, "results": {}})["results"]
            for result in text["results"]:
                key = short_spec(result["compressor"]), result["draft_len"]
                results[key] = {
                    **result, "reads": read_share(result, text, report["weight_bytes"])}
    return list(together.values())


def rows_of(report):
    """[((spec, draft length), results by text, means)], the cheapest first."""
    keys = {key for text in report["texts"].values() for key in text["results"]}
    rows = []
    for key in keys:
        by_text = [text["results"].get(key) for text in report["texts"].values()]
        known = [result for result in by_text if result]
        means = {name: sum(result[name] for result in known) / len(known)
                 for name in ("agreement", "kl", "kept", "reads")}
        rows.append((key, by_text, means))
    return sorted(rows, key=lambda row: (row[2]["reads"], row[0]))


def table_of(report):
    names = [pathlib.Path(file).stem for file in report["texts"]]
    yield (f"**{report['model']}**, {'; '.join(dict.fromkeys(report['runs']))}; "
           f"{report['cpu']}, `{report['isa']}`, {report['threads']} threads; prompts of "
           + ", ".join(f"{text['prompt_tokens']} ({name})"
                       for name, text in zip(names, report["texts"].values())) + " tokens.")
    yield ""
    yield ("`vericache bench acceptance -m " + report["model"]
           + "".join(f" -f {file}" for file in report["texts"])
           + f" -n {report['predict']} ...`")
    yield ""
    yield "| compressor | draft | " + " | ".join(names) + " | agreement | KL | kept | reads |"
    yield "|---" * (6 + len(names)) + "|"
    for (spec, draft_len), by_text, means in rows_of(report):
        accepted = [f"{result['accepted']:.1f}" if result else "" for result in by_text]
        yield (f"| `{spec}` | {draft_len} | " + " | ".join(accepted)
               + f" | {means['agreement']:.3f} | {means['kl']:.3f} | {means['kept']:.2f} | "
               + f"{means['reads']:.2f} |")


def with_tables(page, reports):
    """The page with the tables of the reports between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or END not in rest:
        sys.exit(f"{PAGE}: no '{BEGIN}' with '{END}' behind it")
    parts = ["\n".join(table_of(report)) for report in joined(reports)]
    return before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reports = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    PAGE.write_text(with_tables(PAGE.read_text(), reports))


if __name__ == "__main__":
    main()
