#!/usr/bin/env python3
"""--prompt-cache as a user meets it: the same answers, sooner; damage costs time, other files live.

    cli_cache_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import resource
import signal
import subprocess

import cli_case

DOCUMENT = "".join(chr(97 + i * i % 23) for i in range(700))
OPTIONS = ["--raw", "-n", "30", "--ignore-eos", "--seed", "6", "-t", "1"]


class PromptCache(cli_case.Folder):
    def setUp(self):
        self.cache = self.folder / f"{self.id().split('.')[-1]}.kv"

    def ask(self, question, *arguments, **options):
        return self.report("-p", DOCUMENT + question, *OPTIONS, *arguments, **options)

    def cached(self, question, *arguments):
        return self.ask(question, "--prompt-cache", self.cache, *arguments)

    def test_the_second_run_prefills_what_differs_and_answers_the_same(self):
        for arguments in ([], ["--mode", "full", "--temp", "0"], ["--mode", "lossy"]):
            with self.subTest(arguments=arguments):
                self.cache.unlink(missing_ok=True)
                expected = self.ask("first?", *arguments)
                cold = self.cached("first?", *arguments)
                warm = self.cached("first?", *arguments)
                self.assertEqual(cold["tokens"], expected["tokens"])
                self.assertEqual(warm["tokens"], expected["tokens"])
                self.assertEqual(cold["reused_tokens"], 0)
                self.assertGreater(warm["reused_tokens"], 600)
                other = self.cached("another one", *arguments)
                self.assertEqual(other["tokens"], self.ask("another one", *arguments)["tokens"])
                self.assertGreater(other["reused_tokens"], 600)

    def test_the_summary_says_what_was_reused(self):
        self.cached("?")
        code, _, err = self.run_model("-p", DOCUMENT + "?", *OPTIONS, "--prompt-cache", self.cache)
        self.assertEqual(code, 0)
        self.assertRegex(err, r"(?m)^prompt .*; 6\d\d reused$")

    def test_the_file_is_written_when_it_has_not_the_prompt_yet(self):
        self.cached("a")
        before = self.cache.stat()
        self.cached("a")
        self.assertEqual(self.cache.stat().st_mtime_ns, before.st_mtime_ns)
        self.cached("abc")
        self.assertNotEqual(self.cache.stat().st_ino, before.st_ino)
        self.assertEqual(sorted(self.folder.glob(self.cache.name + "*")), [self.cache])

    def test_a_comparison_computes_everything_itself(self):
        self.cached("?")
        report = self.cached("?", "--compare")
        self.assertGreater(report["reused_tokens"], 0)
        self.assertIs(report["compare"]["identical"], True)

    def test_damage_costs_time_only_and_is_repaired(self):
        expected = self.cached("?")["tokens"]
        whole = self.cache.read_bytes()
        for name, damaged in {
                "empty": b"", "cut in the head": whole[:50], "cut": whole[:-1],
                "flipped": whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:]}.items():
            with self.subTest(name):
                self.cache.write_bytes(damaged)
                code, out, err = self.run_model("-p", DOCUMENT + "?", *OPTIONS, "--prompt-cache",
                                                self.cache)
                self.assertEqual(code, 0)
                self.assertIn(f"'{self.cache}' is damaged", err)
                self.assertIn("prefilled anew", err)
                self.assertEqual(self.cache.read_bytes(), whole)
                self.assertEqual(self.cached("?")["tokens"], expected)

    def test_other_files_are_refused_and_left_alone(self):
        large = self.folder / "large.gguf"
        subprocess.run([cli_case.WRITE_TINY_MODEL, large, "large"], check=True)
        self.cached("?")
        whole = self.cache.read_bytes()
        self.assert_refused(cli_case.call("run", "-m", large, "-p", "x", "--prompt-cache",
                                          self.cache), 2, "another model", str(self.cache))
        self.assertEqual(self.cache.read_bytes(), whole)
        self.cache.write_text("a report")
        self.assert_refused(self.run_model("-p", "x", "--prompt-cache", self.cache), 2,
                            "no KV file", str(self.cache))
        self.assertEqual(self.cache.read_text(), "a report")
        self.assert_refused(self.run_model("-p", "x", "--prompt-cache", "/no/folder/x.kv"), 1,
                            "/no/folder/x.kv")
        self.assert_refused(self.run_model("-p", "x", "--prompt-cache", self.folder), 2,
                            "no regular file")

    def test_a_full_disk_is_an_error_behind_the_answer_and_keeps_the_old_file(self):
        expected = self.cached("a")["text"]
        whole = self.cache.read_bytes()

        def small_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        code, out, err = self.run_model("-p", DOCUMENT + "b", *OPTIONS, "--prompt-cache",
                                        self.cache, preexec_fn=small_disk)
        self.assertEqual(code, 1)
        self.assertEqual(out.rstrip("\n"), self.ask("b")["text"].rstrip("\n"))
        self.assertIn(f"cannot write '{self.cache}'", err)
        self.assertEqual(self.cache.read_bytes(), whole)
        self.assertEqual(sorted(self.folder.glob(self.cache.name + "*")), [self.cache])
        self.assertEqual(self.cached("a")["text"], expected)

    def test_a_file_too_large_for_the_budget_is_as_good_as_none(self):
        self.ask("", "--prompt-cache", self.cache, "-n", "0")
        options = ["-p", "short", *OPTIONS, "--prompt-cache", self.cache, "--fast-kv", "300K"]
        code, _, err = self.run_model(*options)
        self.assertEqual(code, 0, err)
        self.assertIn("prefilled anew", err)


if __name__ == "__main__":
    cli_case.main()
