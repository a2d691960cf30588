"""Pictures of a report: tokens/s by depth, speed against full mode, time by part of the layer."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first)


def save(figure, folder, name):
    figure.tight_layout()
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{name}.{suffix}", dpi=150)
    pyplot.close(figure)


def plot_depths(report, folder):
    figure, axes = pyplot.subplots()
    for model in report["models"]:
        rows = [row for row in report["rows"] if row["model"] == model
                and row["kind"] == "decode" and row["sessions"] == 1]
        for name, key in (("VeriCache", "tokens_per_s"), ("llama.cpp", "peer_tokens_per_s")):
            points = [(row["depth"], row[key]) for row in rows if key in row]
            if points:
                axes.plot(*zip(*points), marker="o", label=f"{name}, {model}")
    axes.set(xlabel="depth, tokens", ylabel="tokens/s, full KV", ylim=(0, None))
    axes.legend()
    save(figure, folder, "tokens_by_depth")


def plot_answers(report, folder):
    rows = [row for row in report["rows"] if row["kind"] == "answer" and "speedup" in row]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.35 * len(rows)))
    labels = [f"{row['model']}, {row['sessions']} x {row['prompt_tokens']}: {row['name']}"
              for row in rows]
    axes.barh(range(len(rows)), [row["speedup"] for row in rows])
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set(xlabel="tokens/s : full mode, compression included")
    save(figure, folder, "speed_against_full")


def plot_parts(report, folder):
    rows = [row for row in report["rows"] if row["kind"] == "parts"]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(8, 5))
    labels = [f"{row['model']}\n{row['rows']} at {row['depth']}" for row in rows]
    below = [0.0] * len(rows)
    colours = pyplot.get_cmap("tab20").colors  # more than there are parts
    for part, colour in zip(rows[0]["parts_ms"], colours):
        shares = [row["parts_ms"][part] / sum(row["parts_ms"].values()) for row in rows]
        axes.bar(labels, shares, bottom=below, label=part, color=colour)
        below = [a + b for a, b in zip(below, shares)]
    axes.set(ylabel="share of the step")
    axes.tick_params(axis="x", labelsize=6)
    axes.legend(bbox_to_anchor=(1, 1), fontsize=7)
    save(figure, folder, "time_by_part")


def plot_all(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for plot in (plot_depths, plot_answers, plot_parts):
        plot(report, folder)
