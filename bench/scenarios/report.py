"""Rows as tables: for a terminal, and for docs/benchmarks.md."""

PASS_COLUMNS = [
    ("pass", "{}", lambda row: row["kind"]),
    ("depth", "{}", lambda row: row["depth"]),
    ("rows", "{}", lambda row: row["rows"]),
    ("sessions", "{}", lambda row: row["sessions"]),
    ("ms", "{:.2f}", lambda row: row["ms"]),
    ("spread", "{:.0%}", lambda row: row.get("spread")),
    ("tokens/s", "{:.1f}", lambda row: row["tokens_per_s"]),
    ("GB/s", "{:.1f}", lambda row: row["gb_per_s"]),
    ("of limit", "{:.0%}", lambda row: row["limit_share"]),
    ("llama.cpp ms", "{:.2f}", lambda row: row.get("peer_ms")),
    ("spread", "{:.0%}", lambda row: row.get("peer_spread")),
    ("its best", "{}", lambda row: row.get("peer")),
    ("ratio", "{:.2f}", lambda row: row.get("ratio")),
]
ANSWER_COLUMNS = [
    ("answers", "{}", lambda row: row["name"]),
    ("prompt", "{}", lambda row: row["prompt_tokens"]),
    ("sessions", "{}", lambda row: row["sessions"]),
    ("tokens/s", "{:.1f}", lambda row: row["tokens_per_s"]),
    ("spread", "{:.0%}", lambda row: row.get("spread")),
    ("against full", "{:.2f}", lambda row: row.get("speedup")),
    ("decode only", "{:.2f}", lambda row: row.get("speedup_decode_only")),
    ("compression s", "{:.2f}", lambda row: row.get("compress_s")),
    ("accepted a round", "{:.1f}", lambda row: row.get("mean_accepted")),
    ("identical", "{}", lambda row: {True: "yes", False: "no"}.get(row.get("identical"))),
]


def cells(columns, rows):
    """Texts of a table, its head first; what was not measured is empty."""
    table = [[name for name, _, _ in columns]]
    for row in rows:
        values = [(form, value(row)) for _, form, value in columns]
        table.append(["" if value is None else form.format(value) for form, value in values])
    return table


def plain(table):
    widths = [max(map(len, column)) for column in zip(*table)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths))
                     for line in table)


def markdown(table):
    lines = ["| " + " | ".join(line) + " |" for line in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def parts_table(rows):
    """A line per part of the layer, a column per step, in ms."""
    names = list(rows[0]["parts_ms"]) if rows else []
    head = ["ms"] + [f"{row['rows']} row{'s' * (row['rows'] > 1)} at {row['depth']}"
                     for row in rows]
    lines = [[name] + [f"{row['parts_ms'][name]:.2f}" for row in rows] for name in names]
    return [head, *lines]


def tables(report):
    """[(title, cells)] of all that was measured, model by model."""
    result = []
    for model in report["models"]:
        rows = [row for row in report["rows"] if row["model"] == model]
        answers = [row for row in rows if row["kind"] == "answer"]
        parts = [row for row in rows if row["kind"] == "parts"]
        passes = [row for row in rows if row not in answers and row not in parts]
        for title, some, columns in (("passes", passes, PASS_COLUMNS),
                                     ("answers", answers, ANSWER_COLUMNS)):
            if some:
                result.append((f"{model}: {title}", cells(columns, some)))
        if parts:
            result.append((f"{model}: a step by part", parts_table(parts)))
    if report["summary"]:
        figures = [[key, f"{value:.3f}"] for key, value in report["summary"].items()]
        result.append(("summary", [["key", "value"], *figures]))
    return result


def machine_line(report):
    limits = report["ceilings"]
    return (f"{report['date']}, {report['version']}, {report['cpu']}, {report['isa']}, "
            f"{report['threads']} threads; reads {limits['read_bytes_per_s'] / 1e9:.1f} GB/s, "
            f"int8 products {limits['macs_per_s'] / 1e9:.0f} GMAC/s; load before "
            f"{report['load_before']:.1f}")


def as_text(report, layout=plain):
    heading = "### " if layout is markdown else ""
    parts = [machine_line(report)]
    parts += [f"{heading}{title}\n\n{layout(table)}" for title, table in tables(report)]
    return "\n\n".join(parts) + "\n"
