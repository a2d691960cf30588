#!/usr/bin/env python3
"""Logs of answers and their verification: identical on every path, damage and other models refused.

    cli_verify_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import re
import signal
import subprocess

import cli_case
from cli_case import TIMEOUT_S, Folder, call, start

QUESTION = ["-p", "what differs? " * 20, "-n", "300", "--ignore-eos", "--seed", "7"]
HOSTILE = ["--mode", "lossy", "--compressor", "hostile", "--temp", "0"]


class Verify(Folder):
    def log(self, name, *arguments):
        path = self.folder / name
        code, _, err = self.run_model(*(arguments or QUESTION), "--log", path)
        self.assertEqual(code, 0, err)
        return path

    @staticmethod
    def seal(log):
        """Gives a changed log the checksum that fits, which verify itself says."""
        _, _, err = call("verify", log)
        right = re.search(r"that of its content ([0-9a-f]{16})", err).group(1)
        log.write_text(re.sub(r'"checksum": ".*"', f'"checksum": "{right}"', log.read_text()))

    def assert_identical(self, log, *arguments):
        code, out, err = call("verify", log, *arguments)
        self.assertEqual((code, err), (0, ""), out)
        self.assertRegex(out, r"^identical: \d+ tokens and the bits of their logits, ")
        self.assertEqual(len(out.splitlines()), 1)
        return out

    def test_an_answer_is_identical_on_every_path_and_thread_count(self):
        log = self.log("drafted.log", *QUESTION, "--draft-len", "7", "--compressor", "streaming")
        for arguments in ([], ["--isa", "ref"], ["-t", "1"], ["-t", "3", "--isa", "ref"],
                          ["-m", self.model]):
            with self.subTest(arguments):
                out = self.assert_identical(log, *arguments)
                self.assertIn("identical: 300 tokens", out)
                # The first token comes from the prompt; then 128 tokens a pass.
                self.assertRegex(out, r": the prompt, then 3 passes over drafted tokens$")

    def test_every_way_to_ask_is_replayed(self):
        text = self.report(*QUESTION, "--temp", "0")["text"]
        ways = {
            "full": ["--mode", "full"],
            "ngram": ["--drafter", "ngram"],
            "greedy": ["--temp", "0"],
            "odd": ["--temp", "0.7", "--min-p", "0.1", "--typical", "0.9"],
            "penalties": ["--repeat-penalty", "1.3", "--dry-multiplier", "2",
                          "--dry-sequence-breaker", "x", "--repeat-last-n", "-1"],
            "bias": ["--logit-bias", "65+3.25", "--logit-bias", "66-inf"],
            "xtc": ["--xtc-probability", "0.5", "--xtc-threshold", "0.01"],
            "stop": ["--temp", "0", "--stop", text[20:22]],
            "grammar": ["--grammar", 'root ::= [a-z ]+'],
            "no token": ["--grammar", 'root ::= "ab!"', "--logit-bias", "33-inf"],
            "context": ["-n", "-1", "-c", "400"],
            "raw": ["--raw"],
            "none": ["-n", "0"],
        }
        for name, arguments in ways.items():
            with self.subTest(name):
                self.assert_identical(self.log(name + ".log", *QUESTION, "-n", "120", *arguments))

    def test_an_answer_that_ends_by_itself_is_replayed_to_its_end(self):
        schema = ["-p", "x", "--seed", "3", "--json-schema", '{"type": "boolean"}']
        self.assertIn("ended by eos", self.assert_identical(self.log("eos.log", *schema)))

    def test_a_cancelled_answer_is_verified_as_far_as_it_came(self):
        path = self.folder / "cancelled.log"
        process = start("run", "-m", self.model, "-p", "hello", "-n", "-1", "--ignore-eos",
                        "--isa", "ref", "--log", path)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertIn("ended by cancelled", self.assert_identical(path))

    def test_a_lossy_answer_is_found_out(self):
        log = self.log("lossy.log", *QUESTION, *HOSTILE)
        full = self.report(*QUESTION, "--temp", "0", "--mode", "full")["tokens"]
        lossy = json.loads(log.read_text())["answer"]
        place = next(i for i, (a, b) in enumerate(zip(lossy, full)) if a != b)
        code, out, err = call("verify", log)
        self.assertEqual((code, err), (1, ""))
        self.assertIn(f"differs at token {place} of 300: the log has {lossy[place]} ", out)
        self.assertIn(f"the full KV gives {full[place]} ", out)
        self.assertIn("mode lossy", out)

    def test_the_log_says_what_was_asked_in_readable_lines(self):
        path = self.log("readable.log", *QUESTION, "--temp", "0.7")
        report = self.report(*QUESTION, "--temp", "0.7")
        text = path.read_text()
        log = json.loads(text)
        self.assertEqual(log["vericache_log"], 1)
        self.assertEqual(log["answer"], report["tokens"])
        self.assertEqual(log["text"], report["text"])
        self.assertEqual(len(log["prompt"]), report["prompt_tokens"])
        self.assertEqual(log["sampling"], report["sampling"])
        self.assertIn('\n"seed"', text.replace('"sampling": {', '"sampling":\n'))
        self.assertEqual(len(text.splitlines()), len(log) + 2)  # a line for each key

    def test_a_damaged_log_is_refused_wherever_the_damage_is(self):
        log = self.log("whole.log", "-p", "hello", "-n", "8", "--ignore-eos", "--seed", "1")
        whole = log.read_text()
        damaged = self.folder / "damaged.log"
        for name, text in {
                "empty": "", "cut": whole[:len(whole) // 2], "last byte cut": whole[:-3],
                "a digit of the seed": re.sub(r'"seed":1\b', '"seed":2', whole),
                "a token": re.sub(r'"answer": \[(\d+)', r'"answer": [1\1', whole),
                "a letter of the text": whole.replace('"text": "', '"text": "x'),
                "a key": whole.replace('"max_tokens"', '"max_token"'),
                "the checksum": re.sub(r'"checksum": "..', r'"checksum": "zz', whole),
                "no checksum": re.sub(r',\n"checksum": ".*"', "", whole)}.items():
            with self.subTest(name):
                self.assertNotEqual(text, whole)
                damaged.write_text(text)
                self.assert_refused(call("verify", damaged), 2, str(damaged))

    def test_what_is_no_log_is_refused(self):
        other = self.folder / "other"
        for text in ("a report", "[]", "{}", '{"vericache_log": 2}', "[" * 100000):
            other.write_text(text)
            self.assert_refused(call("verify", other), 2, str(other))
        self.assert_refused(call("verify", self.folder / "gone.log"), 2, "gone.log")
        self.assert_refused(call("verify"), 2, "LOG")

    def test_a_log_of_another_model_or_numerics_is_refused(self):
        log = self.log("mine.log", "-p", "hello", "-n", "8")
        large = self.folder / "large.gguf"
        subprocess.run([cli_case.WRITE_TINY_MODEL, large, "large"], check=True)
        self.assert_refused(call("verify", log, "-m", large), 2, "another model", str(large))
        self.assert_refused(call("verify", log, "-m", self.folder / "gone.gguf"), 2, "gone.gguf")
        other = self.folder / "other.log"
        other.write_text(log.read_text().replace('"numerics": 1', '"numerics": 2'))
        self.seal(other)
        self.assert_refused(call("verify", other), 2, str(other), "numerics revision 2",
                            "computes with 1")

    def test_the_log_comes_through_a_pipe_too(self):
        log = self.log("piped.log", "-p", "hello", "-n", "8", "--ignore-eos")
        code, out, err = call("verify", "-", text=log.read_bytes())
        self.assertEqual((code, err), (0, ""))
        self.assertIn("identical: 8 tokens", out)

    def test_a_log_that_cannot_be_written_is_refused_before_the_work(self):
        self.assert_refused(self.run_model("-p", "x", "--log", "/no/such/folder/a.log"), 1,
                            "/no/such/folder/a.log")
        self.assert_refused(self.run_model("-p", "x", "--log", "-"), 2, "--log")
        self.assert_refused(self.run_model("-p", "x", "--log", ""), 2, "empty")
        self.assert_refused(self.run_model("-p", "x", "--log", self.folder), 2,
                            f"'{self.folder}'", "no regular file")


if __name__ == "__main__":
    cli_case.main()
