#!/usr/bin/env python3
"""What commands print: a full disk is an error that names it, a reader that went away is none, and
names that are no UTF-8 break nothing.

    cli_output_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import os
import shutil

import cli_case
from cli_case import TIMEOUT_S, Folder, call, start

TEXT = "what does it say? " * 40


class Output(Folder):
    def setUp(self):
        self.log = self.folder / "answer.log"
        if not self.log.exists():
            code, _, err = self.run_model("-p", "hello", "-n", "6", "--ignore-eos", "--log",
                                          self.log)
            self.assertEqual(code, 0, err)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def commands(self, model):
        bench = ["bench", "-m", model, "--depths", "0", "--rows", "1", "--reps", "1"]
        return {
            "run": ["run", "-m", model, "-p", "hello", "-n", "8", "--ignore-eos"],
            "chat": ["run", "-m", model, "-i", "-p", "hello", "-n", "8", "--ignore-eos"],
            "verify": ["verify", self.log, "-m", model],
            "drift": ["drift", "-m", model, "-p", "hello", "-n", "3"],
            "perplexity": ["perplexity", "-m", model, "-f", self.text, "-c", "20"],
            "bench": bench,
            "breakdown": [*bench, "--breakdown"],
            "commands": ["bench", "-m", model, "--commands"],
            "acceptance": ["bench", "acceptance", "-m", model, "-f", self.text, "-n", "4",
                           "--compressor", "identity"],
            "doctor": ["doctor"],
            "inspect": ["inspect", model],
            "help": ["help"],
            "manual": ["help", "--man"],
            "--help": ["--help"],
            "run --help": ["run", "--help"],
            "--version": ["--version"],
        }

    def test_a_full_disk_is_an_error_that_says_so(self):
        for name, arguments in self.commands(self.model).items():
            with self.subTest(name), open("/dev/full", "wb") as full:
                code, _, err = call(*arguments, stdout=full)
                # verify keeps 1 for an answer that differs.
                self.assertEqual(code, 2 if name == "verify" else 1, err)
                last = err.strip().splitlines()[-1]
                self.assertTrue(last.startswith("vericache"), err)
                self.assertIn("cannot write standard output: No space left on device", last)

    def test_a_reader_that_went_away_is_told_nothing(self):
        for name, arguments in self.commands(self.model).items():
            with self.subTest(name):
                ours, theirs = os.pipe()
                os.close(ours)
                code, _, err = call(*arguments, stdout=theirs)
                os.close(theirs)
                self.assertEqual(code, 141, err)
                self.assertNotIn("cannot write", err)

    def test_c4_a_closed_stream_is_no_place_for_what_was_to_go_there(self):
        def call_without(stream, *arguments):
            process = start(*arguments, preexec_fn=lambda: os.close(stream))
            out, err = process.communicate(timeout=TIMEOUT_S)
            return process.returncode, out.decode(), err.decode()

        run = ["run", "-m", self.model, "-p", "hello", "-n", "8", "--ignore-eos"]
        log = self.folder / "closed.log"
        expected = call(*run, "--seed", "1")[1]
        code, _, err = call_without(1, *run, "--seed", "1", "--log", log)
        self.assertEqual(code, 1)
        self.assertIn("cannot write standard output: Bad file descriptor", err)
        self.assertTrue(expected.startswith(json.loads(log.read_text())["text"].rstrip("\n")))
        code, out, _ = call_without(2, *run, "--seed", "1")
        self.assertEqual((code, out), (0, expected))
        code, _, err = call_without(0, "run", "-m", self.model)
        self.assertEqual(code, 1)
        self.assertIn("cannot read standard input: Bad file descriptor", err)

    def test_files_are_written_before_anything_is_printed(self):
        for name in ("drift", "perplexity"):
            path = self.folder / f"{name}.json"
            with self.subTest(name), open("/dev/full", "wb") as full:
                code, _, _ = call(*self.commands(self.model)[name], "--json", path, stdout=full)
                self.assertEqual(code, 1)
                self.assertEqual(json.loads(path.read_text())["model"], str(self.model))

    def test_a_name_that_is_no_utf_8_is_shown_as_far_as_it_is(self):
        odd = self.folder / os.fsdecode(b"odd\xff.gguf")
        shutil.copyfile(self.model, odd)
        commands = self.commands(odd)
        for name in ("run", "drift", "perplexity", "bench", "acceptance"):
            with self.subTest(name):
                process = start(*commands[name], "--json", "-")  # figures on stderr name it too
                out, err = process.communicate(timeout=TIMEOUT_S)
                self.assertEqual(process.returncode, 0, err)
                self.assertTrue(json.loads(out)["model"].endswith("odd\ufffd.gguf"), out)
        code, out, err = call(*commands["commands"], text=b"prompts 1 9 /\xff\n")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\ufffd", json.loads(out.splitlines()[1])["error"])


if __name__ == "__main__":
    cli_case.main()
