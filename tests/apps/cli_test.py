#!/usr/bin/env python3
"""The binary as a user meets it: options, defaults, exit codes, JSON, signals, pipes and every kind of bad input.

    cli_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]

Method: runs the built binary on a tiny model, and on damaged copies of it.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from gguf_damage import Gguf

BINARY, WRITE_TINY_MODEL = sys.argv[1], sys.argv[2]
TIMEOUT_S = 60

JSON_KEYS = [
    "model", "mode", "compressor", "draft_len", "isa", "threads", "numerics", "prompt_tokens",
    "tokens", "text", "finish_reason", "prefill_s", "decode_s", "tokens_per_s", "rounds", "drafted",
    "accepted", "mean_accepted", "kv_full_bytes", "kv_draft_bytes"]
COMPARE_KEYS = [
    "identical", "first_difference", "full_tokens_per_s", "speedup", "lossy_identical_prefix",
    "lossy_tokens_per_s"]
FLAGS = """-m -p -f -n -c -t --temp --top-k --top-p --min-p --seed --mode --compressor --draft-len
    --compare --json --isa --repeat-penalty --presence-penalty --frequency-penalty --logit-bias
    --stop --ignore-eos --logprobs --system-prompt --chat-template --prefill-chunk --fast-kv
    --raw""".split()
# A default of `run --help` and where the JSON says what held.
HELP_DEFAULTS = {
    "--temp": lambda report: report["sampling"]["temperature"],
    "--top-k": lambda report: report["sampling"]["top_k"],
    "--top-p": lambda report: report["sampling"]["top_p"],
    "--min-p": lambda report: report["sampling"]["min_p"],
    "--repeat-penalty": lambda report: report["sampling"]["repeat_penalty"],
    "--presence-penalty": lambda report: report["sampling"]["presence_penalty"],
    "--frequency-penalty": lambda report: report["sampling"]["frequency_penalty"],
    "--mode": lambda report: report["mode"],
    "--draft-len": lambda report: report["draft_len"],
}


def start(*arguments, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               # A test runner in the background ignores SIGINT, and its children would too.
               "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
               **options}
    return subprocess.Popen([BINARY, *map(str, arguments)], **options)


def call(*arguments, text=None, **options):
    """Runs to the end. Returns (exit code, stdout, stderr) with text decoded."""
    if text is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*arguments, **options)
    try:
        out, err = process.communicate(text, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, (out or b"").decode(), (err or b"").decode()


class Folder(unittest.TestCase):
    """A folder of its own with a tiny model in it."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="vericache_cli_")
        cls.folder = pathlib.Path(cls._folder.name)
        cls.model = cls.folder / "tiny.gguf"
        subprocess.run([WRITE_TINY_MODEL, cls.model], check=True)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def run_model(self, *arguments, **options):
        return call("run", "-m", self.model, *arguments, **options)

    def report(self, *arguments, **options):
        code, out, err = self.run_model(*arguments, "--json", "-", **options)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def assert_refused(self, result, code, *parts):
        """One clear sentence on standard error, nothing on standard output, the exit code; no crash."""
        actual, out, err = result
        self.assertEqual(actual, code, err)
        self.assertEqual(out, "")
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertTrue(err.startswith("vericache"), err)
        for part in parts:
            self.assertIn(part, err)


class Help(Folder):
    def test_every_flag_of_the_list_is_offered_and_explained(self):
        code, out, _ = call("run", "--help")
        self.assertEqual(code, 0)
        for flag in FLAGS:
            line = next((line for line in out.splitlines() if re.search(rf"(^|[ ,]){flag}\b", line)), None)
            self.assertIsNotNone(line, flag)

    def test_defaults_in_the_help_are_the_ones_that_hold(self):
        # ggml-org/llama.cpp#15448, #12038: the help contradicted the default.
        report = self.report("-p", "hello", "-n", "1")
        _, text, _ = call("run", "--help")
        for flag, actual in HELP_DEFAULTS.items():
            shown = re.search(rf"{flag} .*?\(default: ([^)]*)\)", text, re.DOTALL).group(1)
            if isinstance(actual(report), str):
                self.assertEqual(shown, actual(report), flag)
            else:
                self.assertAlmostEqual(float(shown), actual(report), 5, flag)

    def test_every_command_explains_itself(self):
        for command in ("run", "bench", "doctor", "inspect"):
            code, out, err = call(command, "--help")
            self.assertEqual((code, err), (0, ""), command)
            self.assertIn("Usage", out)
        self.assertEqual(call("--help")[0], 0)

    def test_version_says_what_is_running(self):
        # ggml-org/llama.cpp#26423: a user tested an old binary.
        code, out, _ = call("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"vericache \d+\.\d+\.\d+ \(commit [0-9a-f]{12}|unknown")
        for part in ("-ffp-contract=off", "cpu ", "numerics  revision 1", "compiled: ref avx2",
                     "available here: ref"):
            self.assertIn(part, out)


class Usage(Folder):
    def test_a_wrong_call_names_the_value_and_what_is_right(self):
        cases = [
            (["--no-such"], "--no-such"),
            (["stray"], "stray"),
            (["-n", "-5"], "-1", "'-5'"),
            (["-n", "many"], "'many'"),
            (["-n"], "--predict", "needs a value"),
            (["-c", "-1"], "'-1'"),
            (["-t", "-2"], "'-2'"),
            (["--temp", "-0.5"], "from 0 to", "'-0.5'"),
            (["--temp", "nan"], "'nan'"),
            (["--top-k", "-3"], "'-3'"),
            (["--top-p", "1.5"], "'1.5'"),
            (["--min-p", "2"], "'2'"),
            (["--seed", "x"], "--seed", "'x'"),
            (["--seed", "18446744073709551616"], "--seed"),
            (["--mode", "fast"], "full, lossy, verified", "'fast'"),
            (["--compressor", "zip"], "zip", "kivi", "snapkv"),
            (["--compressor", "kivi:bats=4"], "bats", "bits"),
            (["--compressor", "kivi:bits=3"], "bits", "3"),
            (["--compressor", "snapkv:keep=7"], "keep", "7"),
            (["--compressor", ""], "compressor"),
            (["--draft-len", "-1"], "'-1'"),
            (["--draft-len", "1000"], "'1000'"),
            (["--isa", "mmx"], "ref", "'mmx'"),
            (["--repeat-penalty", "0"], "'0'"),
            (["--logit-bias", "12"], "'12'"),
            (["--logit-bias", "x+1"], "'x+1'"),
            (["--logit-bias", "99999+1"], "99999"),
            (["--stop", ""], "--stop"),
            (["--fast-kv", "4Q"], "'4Q'"),
            (["--prefill-chunk", "0"], "'0'"),
            (["--logprobs", "3"], "--json"),
            (["--compare", "--mode", "full"], "--mode full"),
            (["--raw", "--system-prompt", "be brief"], "--system-prompt"),
        ]
        for arguments, *parts in cases:
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_model("-p", "hello", *arguments), 2, *parts)

    def test_the_commands_are_listed_for_none_and_for_an_unknown_one(self):
        self.assert_refused(call(), 2, "run, bench, doctor, inspect")
        self.assert_refused(call("serve"), 2, "serve")

    def test_a_json_file_that_cannot_be_written_is_refused_before_the_work(self):
        self.assert_refused(self.run_model("-p", "x", "--json", "/no/such/folder/a.json"), 1,
                            "/no/such/folder/a.json")

    def test_bench_refuses_what_its_model_cannot_hold(self):
        self.assert_refused(call("bench", "-m", self.model, "--depths", "4000"), 2, "2048")
        self.assert_refused(call("bench", "-m", self.model, "--rows", "0"), 2, "'0'")


class Prompts(Folder):
    def test_an_empty_prompt_is_refused(self):
        for arguments, text in ((["-p", ""], None), ([], b""), (["-f", "-"], b""), (["-f", "-"], b"\xef\xbb\xbf")):
            with self.subTest(arguments=arguments, text=text):
                self.assert_refused(self.run_model(*arguments, text=text), 2, "empty")

    def test_invalid_utf8_is_refused_with_its_place(self):
        path = self.folder / "broken.txt"
        path.write_bytes(b"good \xff bad")
        self.assert_refused(self.run_model("-f", path), 2, "UTF-8", "offset 5", "0xff")
        self.assert_refused(self.run_model(text=b"\xc3"), 2, "UTF-8", "offset 0")
        code, _, err = call("run", "-m", self.model, "-p", os.fsdecode(b"a\xfe"))
        self.assertEqual(code, 2)
        self.assertIn("offset 1", err)

    def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(self):
        self.assert_refused(self.run_model("--raw", text=b"#$" * 2000), 2, "4000", "2048")

    def test_a_file_that_is_none_is_refused(self):
        self.assert_refused(self.run_model("-f", self.folder / "missing.txt"), 1, "missing.txt")
        self.assert_refused(self.run_model("-f", self.folder), 1, str(self.folder))

    def test_a_file_larger_than_any_context_is_refused(self):
        path = self.folder / "huge.txt"
        with open(path, "wb") as file:
            file.truncate((64 << 20) + 1)
        self.assert_refused(self.run_model("-f", path), 2, "64 MiB")

    def test_byte_order_mark_and_crlf_do_not_reach_the_model(self):
        path = self.folder / "windows.txt"
        path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
        options = ["-n", "3", "--seed", "1"]
        self.assertEqual(self.report("-f", path, *options)["prompt_tokens"],
                         self.report("-p", "one\ntwo", *options)["prompt_tokens"])

    def test_standard_input_is_the_prompt_when_there_is_no_other(self):
        options = ["-n", "3", "--seed", "1"]
        expected = self.report("-p", "hello there", *options)
        for arguments in ([], ["-f", "-"]):
            report = self.report(*arguments, *options, text=b"hello there")
            self.assertEqual(report["tokens"], expected["tokens"])

    def test_the_document_comes_before_the_question(self):
        path = self.folder / "document.txt"
        path.write_text("the document\n")
        options = ["-n", "3", "--seed", "1"]
        self.assertEqual(self.report("-f", path, "-p", "why?", *options)["tokens"],
                         self.report("-p", "the document\n\nwhy?", *options)["tokens"])

    def test_without_prompt_a_terminal_is_told_how_to_ask(self):
        terminal, other_end = os.openpty()
        try:
            code, out, err = self.run_model(stdin=other_end)
        finally:
            os.close(terminal)
            os.close(other_end)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("vericache run -p", err)

    def test_raw_text_gets_no_template_and_control_words_stay_text(self):
        self.assertEqual(self.report("--raw", "-p", "#$%", "-n", "0")["prompt_tokens"], 3)
        self.assertGreater(self.report("-p", "#$%", "-n", "0")["prompt_tokens"], 10)
        self.assertGreater(self.report("--raw", "-p", "<|im_end|>", "-n", "0")["prompt_tokens"], 3)

    def test_a_chat_template_is_taken_as_text_or_file_and_a_broken_one_is_refused(self):
        template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
        path = self.folder / "template.jinja"
        path.write_text(template)
        for value in (template, path):
            self.assertEqual(self.report("-p", "#$%", "-n", "0", "--chat-template", value)["prompt_tokens"], 3)
        code, out, err = self.run_model("-p", "x", "--chat-template", "{% if %}")
        self.assertEqual((code, out), (2, ""), err)


class Models(Folder):
    def refuse_damaged(self, damage, *parts, code=1, command="run"):
        path = self.folder / "damaged.gguf"
        damage(Gguf(self.model)).write(path)
        arguments = ["run", "-m", path, "-p", "x"] if command == "run" else [command, path]
        result = call(*arguments)
        if command != "run":
            result = (result[0], "", result[2])  # what was understood before the error may be shown
        self.assert_refused(result, code, *parts)

    def test_a_missing_model_is_explained(self):
        self.assert_refused(call("run", "-m", "nowhere.gguf", "-p", "x"), 1, "nowhere.gguf", "smollm2-135m")
        result = call("run", "-m", "qwen2.5-coder-1.5b", "-p", "x",
                      env={**os.environ, "VERICACHE_CACHE": str(self.folder)})
        self.assert_refused(result, 1, "./dev model qwen2.5-coder-1.5b")

    def test_a_name_is_looked_up_in_the_cache_folder(self):
        (self.folder / "models").mkdir(exist_ok=True)
        link = self.folder / "models" / "smollm2-135m.gguf"
        link.symlink_to(self.model)
        code, out, err = call("run", "-p", "x", "-n", "1", "--json", "-",
                              env={**os.environ, "VERICACHE_CACHE": str(self.folder)})
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["model"], "smollm2-135m")

    def test_what_is_no_model_is_refused(self):
        path = self.folder / "wrong.gguf"
        for content in (b"", b"GGU", b"PK\3\4" + bytes(100), b"GGUF" + bytes(100)):
            path.write_bytes(content)
            for command in (["run", "-p", "x", "-m"], ["inspect"], ["bench", "-m"]):
                with self.subTest(content=content[:8], command=command):
                    self.assert_refused(call(*command, path), 1, "wrong.gguf")
        code, _, err = call("run", "-p", "x", "-m", self.folder)
        self.assertIn(code, (1, 2), err)

    def test_a_model_cut_anywhere_is_refused(self):
        content = self.model.read_bytes()
        path = self.folder / "cut.gguf"
        for sixteenth in range(1, 16):
            path.write_bytes(content[:len(content) * sixteenth // 16])
            with self.subTest(sixteenth=sixteenth):
                self.assert_refused(call("run", "-m", path, "-p", "x"), 1, "cut.gguf")

    def test_a_damaged_header_is_refused(self):
        name = "blk.0.attn_q.weight"
        cases = {
            "offset past the end": lambda gguf: gguf.put(gguf.tensors[name]["offset"], "Q", 1 << 40),
            "offset that wraps": lambda gguf: gguf.put(gguf.tensors[name]["offset"], "Q", (1 << 64) - 32),
            "size that overflows": lambda gguf: gguf.put(gguf.tensors[name]["dims"], "QQ", (1 << 42) + 1, 1 << 42),
            "dimension 0": lambda gguf: gguf.put(gguf.tensors[name]["dims"], "Q", 0),
            "negative dimension": lambda gguf: gguf.put(gguf.tensors[name]["dims"], "q", -1),
            "too many dimensions": lambda gguf: gguf.put(gguf.tensors[name]["n_dims"], "I", 1_000_000),
            "unknown type": lambda gguf: gguf.put(gguf.tensors[name]["type"], "I", 9999),
            "another shape": lambda gguf: gguf.put(gguf.tensors[name]["dims"], "QQ", 64, 64),
            "2^63 keys": lambda gguf: gguf.put(16, "Q", 1 << 63),
            "2^63 tensors": lambda gguf: gguf.put(8, "Q", 1 << 63),
        }
        for what, damage in cases.items():
            with self.subTest(what=what):
                self.refuse_damaged(damage, "damaged.gguf")

    def test_inspect_refuses_the_same(self):
        self.refuse_damaged(lambda gguf: gguf.put(gguf.tensors["output_norm.weight"]["offset"], "Q", 1 << 40),
                            "damaged.gguf", command="inspect")

    def test_an_unsupported_architecture_is_named_with_those_that_work(self):
        self.refuse_damaged(lambda gguf: gguf.put_text("general.architecture", "mamba"), "mamba", "llama", "qwen2")

    def test_a_model_that_computes_nan_fails_and_says_so(self):
        self.refuse_damaged(lambda gguf: gguf.put_tensor_f32("output_norm.weight", 3, float("nan")), "NaN")


class Answers(Folder):
    def test_the_json_holds_the_promised_keys(self):
        report = self.report("-p", "hello", "-n", "20", "--ignore-eos")
        for key in JSON_KEYS:
            self.assertIn(key, report)
        self.assertNotIn("compare", report)
        self.assertEqual(len(report["tokens"]), 20)
        self.assertEqual(report["finish_reason"], "length")
        self.assertEqual(report["numerics"], 1)
        self.assertGreater(report["kv_full_bytes"], 0)

    def test_text_goes_to_stdout_and_figures_to_stderr(self):
        code, out, err = self.run_model("-p", "hello", "-n", "20", "--ignore-eos", "--seed", "5")
        self.assertEqual(code, 0)
        self.assertEqual(out.rstrip("\n"), self.report("-p", "hello", "-n", "20", "--ignore-eos", "--seed", "5")["text"]
                         .rstrip("\n"))
        for part in ("tokens/s", "seed 5", "rounds", "KV"):
            self.assertIn(part, err)

    def test_a_json_file_leaves_the_text_on_stdout(self):
        path = self.folder / "report.json"
        code, out, _ = self.run_model("-p", "hello", "-n", "8", "--ignore-eos", "--json", path)
        self.assertEqual(code, 0)
        report = json.loads(path.read_text())
        self.assertEqual(out.rstrip("\n"), report["text"].rstrip("\n"))

    def test_no_token_is_wanted_of_a_prefill_only(self):
        report = self.report("-p", "hello", "-n", "0")
        self.assertEqual((report["tokens"], report["text"], report["finish_reason"]), ([], "", "length"))
        self.assertGreater(report["prompt_tokens"], 0)

    def test_an_answer_without_limit_ends_with_the_context(self):
        report = self.report("-p", "hello", "-n", "-1", "-c", "200", "--ignore-eos", "--temp", "0")
        self.assertEqual(report["finish_reason"], "context")
        self.assertLessEqual(report["prompt_tokens"] + len(report["tokens"]), 201)

    def test_the_same_seed_gives_the_same_text_and_the_report_says_the_seed(self):
        first = self.report("-p", "hello", "-n", "30", "--ignore-eos")
        seed = first["sampling"]["seed"]
        again = self.report("-p", "hello", "-n", "30", "--ignore-eos", "--seed", seed)
        other = self.report("-p", "hello", "-n", "30", "--ignore-eos", "--seed", seed + 1)
        self.assertEqual(again["tokens"], first["tokens"])
        self.assertNotEqual(other["tokens"], first["tokens"])

    def test_modes_threads_and_paths_do_not_change_the_answer(self):
        options = ["-p", "a longer question than before", "-n", "40", "--ignore-eos", "--seed", "3"]
        expected = self.report(*options, "--mode", "full")["tokens"]
        for more in (["--draft-len", "7"], ["-t", "1"], ["--isa", "ref"], ["--prefill-chunk", "5"]):
            with self.subTest(more=more):
                self.assertEqual(self.report(*options, *more)["tokens"], expected)

    def test_a_stop_string_ends_the_text(self):
        options = ["-p", "hello", "-n", "60", "--ignore-eos", "--seed", "11"]
        text = self.report(*options)["text"]
        stop = text[10:12]
        report = self.report(*options, "--stop", stop)
        self.assertEqual(report["text"], text[:text.index(stop)])
        self.assertEqual(report["finish_reason"], "stop")

    def test_a_bias_keeps_a_token_out(self):
        options = ["-p", "hello", "-n", "12", "--ignore-eos", "--temp", "0"]
        token = self.report(*options)["tokens"][0]
        self.assertNotEqual(self.report(*options, "--logit-bias", f"{token}-inf")["tokens"][0], token)
        self.assertEqual(self.report(*options, "--logit-bias", "65+1000")["tokens"], [65] * 12)

    def test_log_probabilities_come_with_every_token(self):
        report = self.report("-p", "hello", "-n", "6", "--ignore-eos", "--temp", "0", "--logprobs", "3")
        self.assertEqual([row["id"] for row in report["logprobs"]], report["tokens"])
        for row in report["logprobs"]:
            self.assertEqual(len(row["top"]), 3)
            self.assertEqual(row["top"][0]["id"], row["id"])  # temperature 0: the likeliest
            self.assertLessEqual(row["logprob"], 0)

    def test_compare_finds_the_verified_answer_identical(self):
        code, out, err = self.run_model("-p", "what differs?" * 30, "-n", "40", "--ignore-eos", "--seed", "2",
                                        "--compressor", "streaming", "--compare", "--json", "-")
        self.assertEqual(code, 0, err)
        compare = json.loads(out)["compare"]
        self.assertEqual(sorted(compare), sorted(COMPARE_KEYS))
        self.assertIs(compare["identical"], True)
        self.assertIsNone(compare["first_difference"])
        self.assertLessEqual(compare["lossy_identical_prefix"], 40)
        for mode in ("full", "lossy", "verified"):
            self.assertRegex(err, rf"(?m)^{mode} ")


class Ends(Folder):
    LONG = ["-p", "hello", "-n", "-1", "--ignore-eos", "--isa", "ref", "--temp", "0"]

    def test_ctrl_c_ends_the_answer_and_reports_what_is_known(self):
        process = start("run", "-m", self.model, *self.LONG)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"ended by cancelled", err)
        self.assertTrue((first + out).endswith(b"\n"))

    def test_ctrl_c_leaves_a_whole_json_report(self):
        path = self.folder / "cancelled.json"
        process = start("run", "-m", self.model, *self.LONG, "--json", path)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(path.read_text())["finish_reason"], "cancelled")

    def test_ctrl_c_while_loading_ends_at_once(self):
        fifo = self.folder / "slow_prompt"
        os.mkfifo(fifo)
        process = start("run", "-m", self.model, "-f", fifo)
        writer = os.open(fifo, os.O_WRONLY)  # returns when the binary has opened its end
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        os.close(writer)
        self.assertIn(process.returncode, (130, -signal.SIGINT))

    def test_a_closed_pipe_ends_quietly(self):
        process = start("run", "-m", self.model, *self.LONG)
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 141)
        self.assertNotIn(b"rror", err)

    def test_output_to_a_terminal_is_the_same_text(self):
        expected = self.report("-p", "hello", "-n", "40", "--ignore-eos", "--seed", "4")["text"]
        terminal, other_end = os.openpty()
        process = start("run", "-m", self.model, "-p", "hello", "-n", "40", "--ignore-eos", "--seed", "4",
                        stdout=other_end)
        os.close(other_end)
        text = b""
        try:
            while piece := os.read(terminal, 4096):
                text += piece
        except OSError:  # how Linux says that the other end of a terminal was closed
            pass
        os.close(terminal)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(text.replace(b"\r\n", b"\n").decode().rstrip("\n"), expected.rstrip("\n"))


class OtherCommands(Folder):
    def test_inspect_shows_keys_tensors_and_what_the_kv_costs(self):
        code, out, err = call("inspect", self.model)
        self.assertEqual(code, 0, err)
        for part in ("general.architecture", '"llama"', "token_embd.weight", "q8_0", "full KV", "per token"):
            self.assertIn(part, out)

    def test_bench_measures_every_row_count_at_every_depth(self):
        code, out, err = call("bench", "-m", self.model, "--depths", "300,0", "--rows", "1,8", "--reps", "1",
                              "--prefill-chunk", "64", "--json", "-")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        seen = [(result["depth"], result["rows"]) for result in report["results"]]
        self.assertEqual(seen, [(0, 64), (0, 1), (0, 8), (300, 64), (300, 1), (300, 8)])
        for result in report["results"]:
            self.assertGreater(result["tokens_per_s"], 0)
            self.assertGreater(result["read_share"], 0)

    def test_doctor_names_paths_speeds_and_the_self_test(self):
        code, out, err = call("doctor")
        self.assertEqual(code, 0, err)
        for part in ("cpu", "cores", "memory", "GB/s", "path       ref", "self-test", "-t "):
            self.assertIn(part, out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
