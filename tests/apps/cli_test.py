#!/usr/bin/env python3
"""The binary as a user meets it: options, defaults, exit codes, answers, JSON, signals and pipes.

    cli_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import os
import re
import signal
import subprocess
import time

import cli_case
from cli_case import TIMEOUT_S, Folder, call, start

JSON_KEYS = [
    "model", "mode", "compressor", "draft_len", "isa", "threads", "numerics", "prompt_tokens",
    "reused_tokens",
    "tokens", "text", "finish_reason", "prefill_s", "decode_s", "tokens_per_s", "rounds", "drafted",
    "accepted", "mean_accepted", "kv_full_bytes", "kv_draft_bytes"]
COMPARE_KEYS = [
    "identical", "first_difference", "full_tokens_per_s", "speedup", "lossy_identical_prefix",
    "lossy_tokens_per_s"]
FLAGS = """-m -p -f -n -c -t --temp --top-k --top-p --min-p --seed --mode --compressor --draft-len
    --compare --json --isa --repeat-penalty --presence-penalty --frequency-penalty --logit-bias
    --stop --ignore-eos --logprobs --system-prompt --chat-template --prefill-chunk --fast-kv
    --raw --typical --top-nsigma --xtc-probability --xtc-threshold --repeat-last-n --dry-multiplier
    --dry-base --dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker --grammar
    --grammar-file --json-schema --json-schema-file --mirostat --prompt-cache --log
    --tools -i""".split()
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


def read_terminal(terminal, until=None):
    """What was written to a terminal, until its other end is closed or `until` was seen."""
    text = b""
    try:
        while until is None or until not in text:
            text += os.read(terminal, 4096)
    except OSError:  # how Linux says that the other end of a terminal was closed
        pass
    return text


class Help(Folder):
    def test_every_flag_of_the_list_is_offered_and_explained(self):
        code, out, _ = call("run", "--help")
        self.assertEqual(code, 0)
        for flag in FLAGS:
            self.assertRegex(out, rf"(?m)^  (\S+,)?{flag}\b.* [a-z]", flag)

    def test_c1_defaults_in_the_help_are_the_ones_that_hold(self):
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
        for command in ("run", "verify", "drift", "perplexity", "bench", "bench acceptance",
                        "doctor", "inspect", "help"):
            code, out, err = call(*command.split(), "--help")
            self.assertEqual((code, err), (0, ""), command)
            self.assertIn("Usage", out)
        self.assertEqual(call("--help")[0], 0)

    def test_c3_version_says_what_is_running(self):
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
            (["--typical", "0"], "--typical", "'0'"),
            (["--top-nsigma", "x"], "--top-n", "'x'"),
            (["--xtc-probability", "1.5"], "'1.5'"),
            (["--xtc-threshold", "-1"], "'-1'"),
            (["--repeat-last-n", "-2"], "'-2'"),
            (["--dry-multiplier", "-1"], "'-1'"),
            (["--dry-base", "0.5"], "from 1 to", "'0.5'"),
            (["--dry-allowed-length", "0"], "'0'"),
            (["--dry-penalty-last-n", "-5"], "'-5'"),
            (["--dry-sequence-breaker", ""], "breaker"),
            (["--mirostat", "2"], "--mirostat 2", "draft"),
            (["--grammar", "root ::= ("], "line 1, column 11"),
            (["--grammar", "start ::= \"a\""], "root"),
            (["--grammar", ""], "--grammar"),
            (["--grammar", "root ::= root \"a\" | \"b\""], "left recursion"),
            (["--json-schema", "{"], "JSON schema"),
            (["--json-schema", '{"type": "strin"}'], "strin"),
            (["--json-schema", '{"type": "string", "pattern": "^(a$"}'], "(a"),
            (["--json-schema", "{}", "--grammar", "root ::= \"a\""], "--grammar",
             "--json-schema"),
            (["--logit-bias", "12"], "'12'"),
            (["--logit-bias", "12+inf"], "inf"),
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
        self.assert_refused(call(), 2,
                            "run, verify, drift, perplexity, bench, doctor, inspect, help")
        self.assert_refused(call("serve"), 2, "serve")

    def test_a_json_file_that_cannot_be_written_is_refused_before_the_work(self):
        self.assert_refused(self.run_model("-p", "x", "--json", "/no/such/folder/a.json"), 1,
                            "/no/such/folder/a.json")

    def test_bench_refuses_what_its_model_cannot_hold(self):
        self.assert_refused(call("bench", "-m", self.model, "--depths", "4000"), 2, "2048")
        self.assert_refused(call("bench", "-m", self.model, "--rows", "0"), 2, "'0'")

    def test_bench_acceptance_refuses_what_it_cannot_measure(self):
        def acceptance(*arguments):
            return call("bench", "acceptance", "-m", self.model, *arguments)
        text = self.folder / "text.txt"
        text.write_text("hello " * 50)
        self.assert_refused(acceptance(), 2, "-f FILE")
        self.assert_refused(acceptance("-f", text, "--compressor", "nope"), 2, "snapkv")
        self.assert_refused(acceptance("-f", text, "--keep", "0.5,0"), 2, "'0'", "above 0")
        self.assert_refused(acceptance("-f", text, "--bits", "5"), 2, "8, 4, 2")
        self.assert_refused(acceptance("-f", text, "-n", "4000"), 2, "2048")


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
        options = ["-p", "hello", "-n", "20", "--ignore-eos", "--seed", "5"]
        code, out, err = self.run_model(*options)
        self.assertEqual(code, 0)
        self.assertEqual(out.rstrip("\n"), self.report(*options)["text"].rstrip("\n"))
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
        self.assertEqual((report["tokens"], report["text"]), ([], ""))
        self.assertEqual(report["finish_reason"], "length")
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
        without = self.report(*options, "--logit-bias", f"{token}-inf")["tokens"]
        self.assertNotEqual(without[0], token)
        self.assertEqual(self.report(*options, "--logit-bias", "65+1000")["tokens"], [65] * 12)

    def test_an_answer_keeps_to_its_grammar_in_every_mode(self):
        schema = self.folder / "schema.json"
        schema.write_text('{"type": "array", "items": {"type": "boolean"}, "maxItems": 3}')
        grammar = self.folder / "grammar.gbnf"
        grammar.write_text('root ::= ("yes" | "no") "!"\n')
        for mode in ("full", "lossy", "verified"):
            options = ["-p", "hello", "-n", "200", "--seed", "5", "--mode", mode]
            report = self.report(*options, "--json-schema-file", schema)
            self.assertIsInstance(json.loads(report["text"]), list, report["text"])
            self.assertEqual(report["finish_reason"], "eos")
            report = self.report(*options, "--grammar-file", grammar)
            self.assertIn(report["text"], ("yes!", "no!"))
            with self.subTest("a grammar that the biases leave no way on"):
                report = self.report(*options, "--grammar", 'root ::= "!"',
                                     "--logit-bias", "33-inf")
                self.assertEqual((report["text"], report["finish_reason"]), ("", "grammar"))
        self.assert_refused(self.run_model("-p", "x", "--grammar-file", "/no/such.gbnf"), 1,
                            "/no/such.gbnf")

    def test_every_sampler_gives_the_same_answer_drafted_and_not(self):
        samplers = ["--typical 0.5", "--top-nsigma 1", "--xtc-probability 0.7 --xtc-threshold 0.01",
                    "--repeat-penalty 1.3 --repeat-last-n 9", "--presence-penalty 1",
                    "--dry-multiplier 2 --dry-allowed-length 1 --dry-sequence-breaker none"]
        options = ["-p", "hello hello hello " * 20, "-n", "40", "--ignore-eos", "--seed", "4",
                   "--top-k", "0", "--top-p", "1", "--min-p", "0"]
        plain = self.report(*options, "--mode", "full")["tokens"]
        for sampler in samplers:
            with self.subTest(sampler=sampler):
                full = self.report(*options, *sampler.split(), "--mode", "full")["tokens"]
                drafted = self.report(*options, *sampler.split(), "--draft-len", "7",
                                      "--compressor", "streaming")
                self.assertEqual(drafted["tokens"], full)
                self.assertNotEqual(full, plain)

    def test_log_probabilities_come_with_every_token(self):
        report = self.report("-p", "hello", "-n", "6", "--ignore-eos", "--temp", "0",
                             "--logprobs", "3")
        self.assertEqual([row["id"] for row in report["logprobs"]], report["tokens"])
        for row in report["logprobs"]:
            self.assertEqual(len(row["top"]), 3)
            self.assertEqual(row["top"][0]["id"], row["id"])  # temperature 0: the likeliest
            self.assertLessEqual(row["logprob"], 0)

    def test_compare_finds_the_verified_answer_identical(self):
        code, out, err = self.run_model(
            "-p", "what differs?" * 30, "-n", "40", "--ignore-eos", "--seed", "2", "--compressor",
            "streaming", "--compare", "--json", "-")
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

    def test_c4_ctrl_c_ends_the_answer_and_reports_what_is_known(self):
        process = start("run", "-m", self.model, *self.LONG)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"ended by cancelled", err)
        self.assertTrue((first + out).endswith(b"\n"))

    def test_c4_ctrl_c_leaves_a_whole_json_report(self):
        path = self.folder / "cancelled.json"
        process = start("run", "-m", self.model, *self.LONG, "--json", path)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(path.read_text())["finish_reason"], "cancelled")

    def test_c4_ctrl_c_in_a_long_prefill_ends_it(self):
        # The progress bar on a terminal says when prefill runs.
        large = self.folder / "large.gguf"
        subprocess.run([cli_case.WRITE_TINY_MODEL, large, "large"], check=True)
        terminal, other_end = os.openpty()
        process = start("run", "-m", large, "--raw", "-p", "#$" * 900, "--isa", "ref",
                        "--prefill-chunk", "16", stderr=other_end)
        os.close(other_end)
        shown = read_terminal(terminal, until=b"prefill [")
        process.send_signal(signal.SIGINT)
        shown += read_terminal(terminal)
        os.close(terminal)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, shown)
        self.assertIn(b"/1800 tokens", shown)
        self.assertIn(b"ended by cancelled", shown)

    def test_c4_ctrl_c_while_loading_ends_at_once(self):
        fifo = self.folder / "slow_prompt"
        os.mkfifo(fifo)
        process = start("run", "-m", self.model, "-f", fifo)
        writer = os.open(fifo, os.O_WRONLY)  # returns when the binary has opened its end
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        os.close(writer)
        self.assertIn(process.returncode, (130, -signal.SIGINT))

    def test_c4_a_closed_pipe_ends_quietly(self):
        process = start("run", "-m", self.model, *self.LONG)
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 141)
        self.assertNotIn(b"rror", err)

    def test_c4_output_to_a_terminal_is_the_same_text(self):
        options = ["-p", "hello", "-n", "40", "--ignore-eos", "--seed", "4"]
        expected = self.report(*options)["text"]
        terminal, other_end = os.openpty()
        process = start("run", "-m", self.model, *options, stdout=other_end)
        os.close(other_end)
        text = read_terminal(terminal)
        os.close(terminal)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(text.replace(b"\r\n", b"\n").decode().rstrip("\n"), expected.rstrip("\n"))

    def test_thinking_is_dimmed_on_a_terminal_that_wants_it(self):
        grammar = 'root ::= "<think>so</think>4"'
        plain, dimmed = b"<think>so</think>4", b"<think>\x1b[2mso</think>\x1b[0m4"
        for environment, expected in ({"TERM": "xterm"}, dimmed), ({"TERM": "dumb"}, plain), (
                {"TERM": "xterm", "NO_COLOR": "1"}, plain):
            terminal, other_end = os.openpty()
            process = start("run", "-m", self.model, "-p", "hello", "--grammar", grammar,
                            stdout=other_end, env={**os.environ, **environment})
            os.close(other_end)
            text = read_terminal(terminal)
            os.close(terminal)
            process.communicate(timeout=TIMEOUT_S)
            self.assertIn(expected, text, environment)
        code, out, _ = self.run_model("-p", "hello", "--grammar", grammar)
        self.assertEqual((code, out.strip()), (0, plain.decode()))


class OtherCommands(Folder):
    def test_inspect_shows_keys_tensors_and_what_the_kv_costs(self):
        code, out, err = call("inspect", self.model)
        self.assertEqual(code, 0, err)
        for part in ("general.architecture", '"llama"', "token_embd.weight", "q8_0", "full KV",
                     "per token"):
            self.assertIn(part, out)

    def test_bench_measures_every_row_count_at_every_depth(self):
        code, out, err = call("bench", "-m", self.model, "--depths", "300,0", "--rows", "1,8",
                              "--reps", "1", "--prefill-chunk", "64", "--json", "-")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        seen = [(result["depth"], result["rows"]) for result in report["results"]]
        self.assertEqual(seen, [(0, 64), (0, 1), (0, 8), (300, 64), (300, 1), (300, 8)])
        for result in report["results"]:
            self.assertGreater(result["tokens_per_s"], 0)
            self.assertGreater(result["read_share"], 0)

    def test_bench_acceptance_measures_every_compressor_on_every_text(self):
        texts = [self.folder / name for name in ("one.txt", "two.txt")]
        for text in texts:
            text.write_text(f"{text.name} " * 30)
        code, out, err = call("bench", "acceptance", "-m", self.model, "-f", texts[0],
                              "-f", texts[1], "--compressor", "identity", "--compressor",
                              "streaming", "--keep", "0.5", "--bits", "16,8", "--draft-len", "2,4",
                              "-n", "12", "--json", "-")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual([text["file"] for text in report["texts"]], [str(text) for text in texts])
        streaming = "streaming:keep=0.5,sinks=4,budget=uniform"
        for text in report["texts"]:
            seen = [(result["compressor"], result["draft_len"]) for result in text["results"]]
            self.assertEqual(seen, [("identity", 2), ("identity", 4), (streaming, 2),
                                    (streaming, 4), (streaming + "+kivi:bits=8", 2),
                                    (streaming + "+kivi:bits=8", 4)])
            self.assertEqual(text["results"][1]["accepted"], 4)
            self.assertEqual(text["results"][1]["agreement"], 1)
            for result in text["results"]:
                self.assertGreater(result["kept"], 0)
                self.assertGreater(result["rounds"], 0)

    def test_doctor_names_paths_speeds_and_the_self_test(self):
        code, out, err = call("doctor")
        self.assertEqual(code, 0, err)
        for part in ("cpu", "cores", "memory", "GB/s", "path       ref", "self-test", "-t "):
            self.assertIn(part, out)


if __name__ == "__main__":
    cli_case.main()
