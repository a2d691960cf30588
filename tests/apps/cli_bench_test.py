#!/usr/bin/env python3
"""`vericache bench` as a user and as ./dev bench meet it, on a tiny model.

    cli_bench_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import pathlib
import subprocess
import sys

import cli_case
from cli_case import TIMEOUT_S, Folder, call

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ["embed", "norm", "qkv", "rope+append", "attention", "merge", "attention output", "gate/up",
         "gate", "down", "logits", "wait", "sampling"]


class Table(Folder):
    OPTIONS = ["--depths", "0,40", "--rows", "1,8", "--reps", "2"]

    def test_every_depth_and_kind_has_a_row(self):
        path = self.folder / "bench.json"
        code, out, err = call("bench", "-m", self.model, *self.OPTIONS, "--json", path)
        self.assertEqual(code, 0, err)
        rows = json.loads(path.read_text())["results"]
        self.assertEqual([(row["depth"], row["kind"]) for row in rows],
                         [(depth, kind) for depth in (0, 40)
                          for kind in ("prefill", "decode", "verify")])
        self.assertEqual(len(out.splitlines()), 2 + len(rows))
        self.assertNotIn("parts_ms", rows[0])

    def test_a_breakdown_names_every_part_and_adds_up(self):
        code, out, err = call("bench", "-m", self.model, *self.OPTIONS, "--breakdown", "--json",
                              "-")
        self.assertEqual(code, 0, err)
        for row in json.loads(out)["results"]:
            self.assertEqual(list(row["parts_ms"]), PARTS)
            self.assertGreater(row["parts_ms"]["sampling"], 0)
            self.assertGreater(row["parts_ms"]["attention"], 0)
        for part in PARTS:
            self.assertIn(f"\n  {part} ", err)


class Commands(Folder):
    def ask(self, *commands):
        """What the process says of itself, and its answers."""
        code, out, err = call("bench", "--commands", "-m", self.model,
                              text="".join(command + "\n" for command in commands).encode())
        self.assertEqual((code, err), (0, ""))
        facts, *answers = map(json.loads, out.splitlines())
        self.assertEqual(len(answers), len(commands))
        return facts, answers

    def test_passes_cost_what_their_rows_and_sequences_move(self):
        facts, answers = self.ask("open 1 600", "depth 100", "pass 1 all", "pass 500 last",
                                  "open 3 600", "depth 100", "pass 1 all", "depth 50",
                                  "pass 1 all", "ceilings")
        self.assertEqual(facts["n_context"], 2048)
        one, many, three, shallow = (answers[i] for i in (2, 3, 6, 8))
        for answer in (one, many, three, shallow):
            self.assertGreater(answer["seconds"], 0)
        self.assertEqual(three["kv_bytes"], 3 * one["kv_bytes"])
        self.assertEqual(three["weight_bytes"], one["weight_bytes"])
        self.assertEqual(2 * shallow["kv_bytes"], three["kv_bytes"])
        self.assertEqual(many["weight_bytes"], 2 * one["weight_bytes"])  # 500 rows: two passes
        self.assertGreater(answers[-1]["read_bytes_per_s"], 0)

    def test_parts_are_those_of_the_breakdown(self):
        _, answers = self.ask("open 1 100", "depth 50", "parts 8 all")
        self.assertEqual(list(answers[-1]["parts_ms"]), PARTS)

    def test_answers_to_distinct_prompts_are_those_of_full_mode(self):
        text = self.folder / "text.txt"
        text.write_text("".join(f"line {i} says {i * i}\n" for i in range(300)))
        _, answers = self.ask(f"prompts 3 400 {text}", "answer full kv identity auto 30",
                              "answer verified kv kivi:bits=2 7 30",
                              "answer verified ngram x auto 30",
                              "answer lossy kv kivi:bits=2 auto 30")
        prompts, full, verified, unknown, lossy = answers
        self.assertTrue(300 < prompts["prompt_tokens"] <= 400, prompts)
        self.assertEqual([len(row) for row in full["tokens"]], [30, 30, 30])
        self.assertNotEqual(full["tokens"][0], full["tokens"][1])
        self.assertEqual(verified["tokens"], full["tokens"])
        self.assertGreater(verified["compress_s"], 0)
        self.assertIn("'x'", unknown["error"])
        self.assertNotIn("error", lossy)

    def test_a_wrong_command_is_answered_and_the_next_one_heard(self):
        _, answers = self.ask("fly", "pass 1 all", "depth 3", "open 0 10", "open 1 5000",
                              "open 1 20", "pass 30 all", "pass 1 some", "depth 21", "depth -1",
                              "answer full kv identity auto 9", "prompts 1 9 /no/such.txt",
                              "pass 1 last")
        for answer, part in zip(answers, ["'fly'", "open", "open", "'0'", "5000", None, "30",
                                          "'some'", "21", "'-1'", "prompts", "/no/such.txt"]):
            if part:
                self.assertIn(part, answer["error"])
        self.assertGreater(answers[-1]["seconds"], 0)


class Scenario(Folder):
    def test_the_whole_run_works_without_the_peer(self):
        path = self.folder / "report.json"
        result = subprocess.run(
            [sys.executable, "-B", ROOT / "bench" / "scenarios" / "bench.py", "--vericache",
             cli_case.BINARY, "--no-peer", "--quick", "-m", self.model, "--depths", "0,64",
             "--json", path], capture_output=True, text=True, timeout=4 * TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(path.read_text())
        self.assertEqual(report["summary"], {})  # its keys belong to other models
        kinds = {row["kind"] for row in report["rows"]}
        self.assertEqual(kinds, {"prefill", "decode", "parts", "answer"})
        for row in report["rows"]:
            if row["kind"] == "answer" and row["mode"] == "verified":
                self.assertIs(row["identical"], True, row)


if __name__ == "__main__":
    cli_case.main()
