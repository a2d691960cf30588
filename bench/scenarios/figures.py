"""From measured seconds to rows and to the summary. Plain functions of plain data; what was not
measured is absent, never a guess."""

import statistics

EDIT_TASKS_MIN = 3
STARTUP_BYTES = 1e9
NEVER_SLOWER_TURNS_MIN = 5


def spread(samples):
    """(largest - smallest) / median; None of a single one, which says nothing of it."""
    if len(samples) < 2:
        return None
    return (max(samples) - min(samples)) / statistics.median(samples)


def settled(samples):
    """Without the first, which warms caches up; it counts where there is no other."""
    return samples[1:] or samples


def best_peer(samples):
    """{kind: seconds of each turn} -> (the kind with the least median, its samples)."""
    kind = min(samples, key=lambda name: statistics.median(samples[name]))
    return kind, samples[kind]


def limit_seconds(cost, ceilings):
    """The least time a pass can take: weights and KV, each bound by reading or by multiplying.
    Multiplying is taken at the rate of int8 products, twice what 16-bit attention can reach."""
    def least(n_bytes, n_macs):
        return max(n_bytes / ceilings["read_bytes_per_s"], n_macs / ceilings["macs_per_s"])
    return (least(cost["weight_bytes"], cost["matrix_macs"])
            + least(cost["kv_bytes"], cost["attention_macs"]))


def pass_row(group, one, ours, cost, peers):
    """One row of the report. ours: seconds of each turn; peers: the same by kind, maybe empty."""
    ours = settled(ours)
    seconds = statistics.median(ours)
    row = {"kind": one.kind, "depth": group.depth, "rows": one.rows, "sessions": group.sessions,
           "ms": seconds * 1e3, "spread": spread(ours), "turns": len(ours),
           "tokens_per_s": one.rows * group.sessions / seconds,
           "gb_per_s": (cost["weight_bytes"] + cost["kv_bytes"]) / seconds / 1e9, "cost": cost}
    if peers:
        kind, samples = best_peer({name: settled(some) for name, some in peers.items()})
        peer_s = statistics.median(samples)
        row |= {"peer": kind, "peer_ms": peer_s * 1e3, "peer_spread": spread(samples),
                "peer_tokens_per_s": one.rows * group.sessions / peer_s,
                "ratio": peer_s / seconds}
    return row


def parts_row(group, rows, answers, cost):
    """The fastest of several passes, part by part."""
    fastest = min(answers, key=lambda answer: answer["seconds"])
    return {"kind": "parts", "depth": group.depth, "rows": rows, "sessions": group.sessions,
            "ms": fastest["seconds"] * 1e3, "parts_ms": fastest["parts_ms"], "cost": cost}


def with_limits(row, ceilings):
    """The row beside what the machine allows, by the best that the whole run saw of it."""
    if "cost" not in row:
        return row
    limit_s = limit_seconds(row["cost"], ceilings)
    shares = {"limit_ms": limit_s * 1e3, "limit_share": limit_s * 1e3 / row["ms"]}
    if row["kind"] == "parts" and row["rows"] == 1 and row["cost"]["kv_bytes"] > 0:
        rate = row["cost"]["kv_bytes"] / (row["parts_ms"]["attention"] / 1e3)
        shares["attention_bw_share"] = rate / ceilings["read_bytes_per_s"]
    return row | shares


def answer_row(plan, choice, prompt_tokens, own, full):
    """own, full: what the engine answered in each turn."""
    row = {"kind": "answer", "sessions": plan.prompts, "prompt_tokens": prompt_tokens,
           "text": plan.text, "mode": choice.mode, "drafter": choice.drafter,
           "compressor": choice.compressor, "draft_len": choice.draft_len, "name": choice.name,
           "tokens": plan.tokens, "turns": len(own),
           "tokens_per_s": statistics.median(a["tokens_per_s"] for a in own),
           "spread": spread([a["decode_s"] for a in own])}
    if choice.mode == "full":
        return row
    row |= {"compress_s": statistics.median(a["compress_s"] for a in own),
            "speedup": statistics.median(f["decode_s"] / a["decode_s"]
                                         for a, f in zip(own, full)),
            "speedup_decode_only": statistics.median(f["decode_s"] / (a["decode_s"]
                                                                      - a["compress_s"])
                                                     for a, f in zip(own, full)),
            "identical": all(a["tokens"] == f["tokens"] for a, f in zip(own, full))}
    n_verifies = sum(answer["rounds"] for answer in own)
    if n_verifies > 0:
        row["mean_accepted"] = sum(answer["accepted"] for answer in own) / n_verifies
    return row


def find(among, **wanted):
    """The first row with these values, or None."""
    for row in among:
        if all(row.get(key) == value for key, value in wanted.items()):
            return row
    return None


def summary(rows, starts):
    """The keys that this run measured. starts: {model: {load_s, weight_bytes}}."""
    smol, large = "smollm2-135m", "qwen2.5-coder-1.5b"
    result = {}

    def put(key, row, value):
        if row is not None and value in row:
            result[key] = row[value]

    def passes(model, kind, depth, n_rows):
        return find(rows, model=model, kind=kind, depth=depth, rows=n_rows, sessions=1)

    put("decode_ratio_d0", passes(smol, "decode", 0, 1), "ratio")
    put("decode_ratio_d8k", passes(smol, "decode", 7500, 1), "ratio")
    put("decode_ratio_d16k", passes(large, "decode", 16000, 1), "ratio")
    put("prefill_ratio_512", passes(smol, "prefill", 0, 512), "ratio")
    put("prefill_ratio_8k", passes(smol, "prefill", 7500, 512), "ratio")
    step, verify = passes(smol, "decode", 7500, 1), passes(smol, "verify", 7500, 32)
    if step and verify:
        result["verify32_steps_8k"] = verify["ms"] / step["ms"]
    put("attention_bw_share_1row", passes(smol, "parts", 7500, 1), "attention_bw_share")
    result |= answer_summary([row for row in rows if row["kind"] == "answer"], smol, large)
    for start in starts.values():
        if start["weight_bytes"] >= STARTUP_BYTES:
            result["startup_s_1gb"] = start["load_s"] / (start["weight_bytes"] / STARTUP_BYTES)
    return result


def answer_summary(rows, smol, large):
    verified = [row for row in rows if row["mode"] == "verified"]
    result = {}
    for key, model, sessions, n_tokens in (("verified_speedup_b8_8k", smol, 8, 6500),
                                           ("verified_speedup_b4_16k", large, 4, 15000)):
        speedups = [row["speedup_decode_only"] for row in verified
                    if row["model"] == model and row["sessions"] == sessions
                    and row["prompt_tokens"] >= n_tokens]
        if speedups:
            result[key] = max(speedups)
    edits = [row["speedup"] for row in verified
             if row["model"] == large and row["drafter"] == "ngram" and "edit" in row["text"]]
    if len(edits) >= EDIT_TASKS_MIN:
        result["ngram_speedup_edit"] = statistics.median(edits)
    cells = [row["speedup"] for row in verified
             if row["draft_len"] == "auto" and row["turns"] >= NEVER_SLOWER_TURNS_MIN]
    if cells:
        result["never_slower_min"] = min(cells)
    return result
