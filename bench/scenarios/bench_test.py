#!/usr/bin/env python3
"""The arithmetic of ./dev bench, and a whole run of it over engines that are played by a script."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import bench
import engines
import figures
import plan
import report

# Answers as both engines do. Seconds of a pass: 0.05 for ours; llama.cpp's differ by kind.
PLAYED = """#!{python}
import json, sys
is_ours = sys.argv[1] == "bench"
seconds = 0.05 if is_ours else {{"f16 on": 0.3, "f16 off": 0.2, "q8_0 on": 0.4}}[
    sys.argv[2] + " " + sys.argv[3]]
cost = {{"weight_bytes": 10**8, "kv_bytes": 10**8, "matrix_macs": 1e8, "attention_macs": 1e7}}
answers = {{
    "open": {{}}, "depth": {{"seconds": 1.0}},
    "pass": {{"seconds": seconds, **(cost if is_ours else {{}})}},
    "parts": {{"seconds": 0.05, "parts_ms": {{"attention": 25.0, "wait": 25.0}}}},
    "ceilings": {{"read_bytes_per_s": 1e10, "macs_per_s": 1e11}},
    "prompts": {{"prompt_tokens": 7000, "seconds": 1.0}},
}}
print(json.dumps({{"model": sys.argv[4], "version": "0", "cpu": "played", "isa": "ref",
                  "threads": 1, "load_s": 0.5, "weight_bytes": 10**8, "n_context": 8192}}),
      flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "answer":
        is_full = words[1] == "full"
        answer = {{"tokens_per_s": 10, "decode_s": 4.0 if is_full else 2.5,
                  "compress_s": 0.0 if is_full else 0.5, "accepted": 6, "rounds": 2,
                  "tokens": [[1, 2]] if words[1] != "lossy" else [[1, 3]]}}
    else:
        answer = answers[words[0]]
    print(json.dumps(answer), flush=True)
"""


class Figures(unittest.TestCase):
    GROUP = plan.Group(1, 100, 200, ())
    COST = {"weight_bytes": 4e9, "kv_bytes": 1e9, "matrix_macs": 1e9, "attention_macs": 4e9}
    CEILINGS = {"read_bytes_per_s": 1e10, "macs_per_s": 1e10}

    def test_the_first_turn_warms_up_and_counts_only_alone(self):
        self.assertEqual(figures.settled([9.0, 1.0, 2.0]), [1.0, 2.0])
        self.assertEqual(figures.settled([9.0]), [9.0])

    def test_spread_is_the_range_in_medians(self):
        self.assertAlmostEqual(figures.spread([1.0, 2.0, 4.0]), 1.5)
        self.assertIsNone(figures.spread([3.0]))

    def test_the_peer_is_its_best_kind_by_median(self):
        kind, samples = figures.best_peer({"a": [1.0, 9.0, 9.0], "b": [4.0, 5.0, 6.0]})
        self.assertEqual((kind, samples), ("b", [4.0, 5.0, 6.0]))

    def test_a_pass_row_holds_both_engines(self):
        one = plan.Pass("verify", 8, "all")
        row = figures.pass_row(self.GROUP, one, [9.0, 1.0, 3.0, 2.0], self.COST,
                               {"a": [8.0, 4.0, 4.0], "b": [1.0, 5.0, 5.0]})
        self.assertEqual((row["ms"], row["turns"], row["tokens_per_s"]), (2000, 3, 4))
        self.assertEqual((row["peer"], row["peer_ms"], row["ratio"]), ("a", 4000, 2))
        self.assertAlmostEqual(row["gb_per_s"], 2.5)

    def test_without_a_peer_there_is_no_ratio(self):
        row = figures.pass_row(self.GROUP, plan.Pass("decode", 1, "all"), [1.0], self.COST, {})
        self.assertFalse({"ratio", "peer", "peer_ms"} & set(row))

    def test_the_limit_is_reading_or_multiplying_part_by_part(self):
        # Weights: 0.4 s to read. KV: 0.4 s to multiply.
        self.assertAlmostEqual(figures.limit_seconds(self.COST, self.CEILINGS), 0.8)
        row = figures.with_limits({"kind": "decode", "rows": 1, "ms": 1600, "cost": self.COST},
                                  self.CEILINGS)
        self.assertAlmostEqual(row["limit_share"], 0.5)
        parts = {"kind": "parts", "rows": 1, "ms": 1600, "cost": self.COST,
                 "parts_ms": {"attention": 200}}
        self.assertAlmostEqual(figures.with_limits(parts, self.CEILINGS)["attention_bw_share"], 0.5)

    def answer(self, decode_s, compress_s=0.0, tokens=((1, 2),)):
        return {"tokens_per_s": 10, "decode_s": decode_s, "compress_s": compress_s, "accepted": 6,
                "rounds": 2, "tokens": [list(row) for row in tokens]}

    def test_a_speedup_is_the_median_of_turns_and_identity_holds_in_all(self):
        wanted = plan.Answers(1, 7000, "documents", 64, 3, ())
        full = [self.answer(4.0), self.answer(8.0), self.answer(6.0)]
        own = [self.answer(2.0, 1.0), self.answer(2.0, 1.0), self.answer(2.0, 1.0)]
        row = figures.answer_row(wanted, plan.Choice("verified"), 7000, own, full)
        self.assertEqual((row["speedup"], row["speedup_decode_only"]), (3, 6))
        self.assertEqual((row["mean_accepted"], row["identical"]), (3, True))
        own[1] = self.answer(2.0, 1.0, tokens=((1, 3),))
        row = figures.answer_row(wanted, plan.Choice("verified"), 7000, own, full)
        self.assertIs(row["identical"], False)


class Summary(unittest.TestCase):
    def row(self, **values):
        return {"model": "smollm2-135m", "sessions": 1, "kind": "decode", "rows": 1, **values}

    def test_what_was_not_measured_is_absent(self):
        self.assertEqual(figures.summary([], {}), {})
        self.assertEqual(figures.summary([self.row(depth=0, ms=1.0)], {}), {})
        self.assertEqual(figures.summary([self.row(depth=0, ratio=4.5)], {}),
                         {"decode_ratio_d0": 4.5})

    def test_keys_belong_to_their_model(self):
        other = self.row(depth=0, ratio=4.5) | {"model": "another"}
        self.assertEqual(figures.summary([other], {}), {})

    def test_a_verify_counts_in_steps_of_its_depth(self):
        rows = [self.row(depth=7500, ms=10.0), self.row(depth=0, ms=1.0),
                self.row(depth=7500, kind="verify", rows=32, ms=60.0)]
        self.assertEqual(figures.summary(rows, {}), {"verify32_steps_8k": 6.0})

    def test_answers(self):
        def answer(**values):
            return self.row(kind="answer", mode="verified", drafter="kv", draft_len="auto",
                            text="documents", prompt_tokens=7000, turns=5, tokens=256,
                            speedup=1.0, speedup_decode_only=1.0) | values
        rows = [answer(sessions=8, turns=2, speedup_decode_only=1.4),
                answer(sessions=8, turns=2, speedup_decode_only=1.5),
                answer(sessions=8, turns=2, speedup_decode_only=9.0, prompt_tokens=100),
                answer(sessions=8, turns=2, speedup_decode_only=9.0, mode="lossy"),
                answer(speedup=0.98), answer(speedup=0.5, turns=4),
                answer(speedup=0.5, draft_len="32")]
        self.assertEqual(figures.summary(rows, {}),
                         {"verified_speedup_b8_8k": 1.5, "never_slower_min": 0.98})
        edit = answer(model="qwen2.5-coder-1.5b", drafter="ngram", text="eval/edit.txt", turns=1,
                      speedup=3.0)
        self.assertEqual(figures.summary([edit, edit], {}), {})
        self.assertEqual(figures.summary([edit] * 3, {}), {"ngram_speedup_edit": 3.0})

    def test_startup_is_of_a_gigabyte(self):
        starts = {"small": {"load_s": 0.1, "weight_bytes": 1e8},
                  "large": {"load_s": 3.0, "weight_bytes": 2e9}}
        self.assertEqual(figures.summary([], starts), {"startup_s_1gb": 1.5})


class Plan(unittest.TestCase):
    def test_nothing_is_deeper_than_the_context(self):
        for context in (1024, 8192, 32768):
            for group in plan.groups(context):
                for one in group.passes:
                    self.assertLessEqual(group.depth + one.rows, group.room)
                self.assertLessEqual(group.room, context)
        self.assertEqual([group.depth for group in plan.groups(1024)], [0])
        self.assertIn(16000, [group.depth for group in plan.groups(32768)])


class WholeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.played = self.folder / "played"
        self.played.write_text(PLAYED.format(python=sys.executable))
        self.played.chmod(0o755)
        self.model = self.folder / "smollm2-135m.gguf"
        self.model.write_text("")
        bench.fetch = lambda *words: str(self.played)
        engines.REST_S = 0
        bench.PASS_QUICK_S = float("inf")  # the number of turns does not depend on the machine

    def run_bench(self, *words):
        """Returns (exit status, what it printed)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = bench.main(["--vericache", str(self.played), "-m", str(self.model),
                                 "--quick", *words])
        return status, out.getvalue()

    def test_both_engines_give_rows_summary_and_tables(self):
        path, markdown = self.folder / "report.json", self.folder / "report.md"
        status, text = self.run_bench("--json", str(path), "--markdown", str(markdown))
        self.assertEqual(status, 0)
        result = json.loads(path.read_text())
        decode = figures.find(result["rows"], kind="decode", depth=7500, sessions=8)
        self.assertEqual((decode["peer"], decode["turns"]), ("llama.cpp kv=f16 fa=off", 10))
        self.assertAlmostEqual(decode["ratio"], 4)
        lossy = figures.find(result["rows"], kind="answer", mode="lossy")
        self.assertEqual((lossy["speedup"], lossy["identical"]), (1.6, False))
        self.assertEqual(sorted(result["summary"]), sorted([
            "decode_ratio_d0", "decode_ratio_d8k", "prefill_ratio_512", "prefill_ratio_8k",
            "verify32_steps_8k", "attention_bw_share_1row"]))
        self.assertIn("its best", text)
        self.assertIn("| decode | 7500 | 1 | 8 |", markdown.read_text())

    def test_without_the_peer(self):
        status, text = self.run_bench("--no-peer")
        self.assertEqual(status, 0)
        self.assertNotIn("ratio_d0", text)
        self.assertIn("verify32_steps_8k", text)

    def test_a_slow_row_has_a_turn_beside_the_one_that_warms_up(self):
        with tempfile.TemporaryFile("w+") as log:
            ours = engines.start_vericache(str(self.played), str(self.model), 1, log)
            run = bench.Run(ours, [], "played", {})
            seconds, _, _ = bench.measure_pass(run, [], plan.Pass("decode", 1, "all"), 0.0)
            ours.close()
        self.assertEqual(len(seconds), 2)

    def test_a_file_that_cannot_be_written_is_refused_before_the_work(self):
        status, text = self.run_bench("--json", str(self.folder / "no" / "report.json"))
        self.assertIn("report.json cannot be written: No such file", status)
        self.assertEqual(text, "")

    def test_an_engine_that_ends_is_named(self):
        self.played.write_text("#!/bin/sh\nexit 3\n")
        status, _ = self.run_bench("--no-peer")
        self.assertIn("error: vericache ended during 'starting', exit code 3", status)


class Report(unittest.TestCase):
    def test_what_is_missing_is_empty(self):
        row = {"kind": "decode", "depth": 0, "rows": 1, "sessions": 1, "ms": 1.0, "spread": None,
               "tokens_per_s": 1000.0, "gb_per_s": 1.0, "limit_share": 0.5}
        table = report.cells(report.PASS_COLUMNS, [row])
        self.assertEqual(table[1][-4:], ["", "", "", ""])
        self.assertEqual(table[1][5], "")
        self.assertEqual(report.markdown([["a", "b"], ["1", ""]]), "| a | b |\n|---|---|\n| 1 |  |")


if __name__ == "__main__":
    unittest.main()
