#!/usr/bin/env python3
"""The manual page, completions and the file of defaults: the same options everywhere.

    cli_help_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import os
import re
import subprocess

import cli_case
from cli_case import BINARY, Folder, call

COMMANDS = ["run", "verify", "drift", "perplexity", "bench", "bench acceptance", "doctor",
            "inspect", "help"]


def flags_of(command):
    """Every name that a command's --help offers."""
    _, text, _ = call(*command, "--help")
    entries = re.findall(r"(?m)^  (-\S+)", text)
    return [name for entry in entries for name in entry.split(",")]


class Help(Folder):
    def test_help_of_a_command_is_its_own_help(self):
        for command in COMMANDS:
            self.assertEqual(call("help", *command.split()), call(*command.split(), "--help"))
        self.assertEqual(call("help"), call("--help"))
        self.assert_refused(call("help", "serve"), 2, "'serve'", "run, verify")
        self.assert_refused(call("help", "bench", "speed"), 2, "'bench speed'")

    def test_the_manual_page_has_every_command_and_flag(self):
        code, page, err = call("help", "--man")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(page.startswith(".TH VERICACHE 1 "))
        plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for command in COMMANDS:
            begin = plain.index(f'.SH "VERICACHE {command.upper()}"')
            section = plain[begin:plain.find("\n.SH", begin + 1)]
            flags = flags_of(command.split())
            self.assertIn("--help", flags)
            for flag in flags:
                with self.subTest(command=command, flag=flag):
                    self.assertRegex(section, rf"(?m)^\.TP\n(\S+, )*{flag}[ ,\n]")
        for flag in flags_of([]):
            self.assertIn(flag, plain)
        # A line that begins with a dot is roff's own: nothing of ours may.
        for line in page.splitlines():
            if line.startswith((".", "'")):
                self.assertRegex(line, r"^\.(TH|SH|TP|PP|br|nf|fi|B)\b")

    def complete(self, *words):
        script = (f"source <('{BINARY}' help --completion bash)\n"
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vericache\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "-", "vericache", *words], check=True,
                              capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completions_have_every_command_and_flag(self):
        for command in COMMANDS:
            *before, last = words = command.split()
            self.assertIn(last, self.complete(*before, ""))
            self.assertEqual(sorted(self.complete(*words, "-")), sorted(flags_of(words)))
        self.assertNotIn("acceptance", self.complete(""))
        self.assertEqual(self.complete("ver"), ["verify"])
        self.assertEqual(sorted(self.complete("-")), sorted(flags_of([])))

    def test_completions_know_what_follows_a_flag(self):
        (self.folder / "a file.txt").write_text("")
        self.assertEqual(self.complete("run", "--mode", ""), ["full", "lossy", "verified"])
        self.assertEqual(self.complete("run", "--mode", "v"), ["verified"])
        self.assertEqual(self.complete("bench", "--isa", "avx2"), ["avx2"])
        self.assertEqual(self.complete("bench", "acceptance", "--isa", "avx2"), ["avx2"])
        for words in (["run", "-f", "a"], ["run", "--file", "a"], ["verify", "a"],
                      ["run", "-p", "x", "--log", "a"]):
            self.assertEqual(self.complete(*words), ["a", "file.txt"], words)  # one name, split
        self.assertEqual(self.complete("run", "-p", ""), [])
        self.assertIn("--compressor", self.complete("run", "--raw", "--comp"))


class Config(Folder):
    def setUp(self):
        self.home = self.folder / "home"
        self.config = self.home / "vericache" / "config.toml"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.env = {**os.environ, "XDG_CONFIG_HOME": str(self.home)}

    def held(self, text, *arguments, **options):
        self.config.write_text(text)
        return self.report("-p", "x", "-n", "3", *arguments, env=self.env, **options)

    def test_a_default_holds_until_the_command_line_says_otherwise(self):
        text = '[run]\ntemp = 0.25\nseed = 7\nmode = "full"\nignore-eos = true\ntop-k = 5\n'
        report = self.held(text)
        self.assertEqual(report["sampling"]["temperature"], 0.25)
        self.assertEqual((report["sampling"]["seed"], report["sampling"]["top_k"]), (7, 5))
        self.assertEqual(report["mode"], "full")
        self.assertEqual(len(report["tokens"]), 3)
        report = self.held(text, "--temp", "0.5", "--mode", "lossy")
        self.assertEqual((report["sampling"]["temperature"], report["mode"]), (0.5, "lossy"))
        self.assertEqual(report["sampling"]["seed"], 7)

    def test_keys_before_the_tables_are_for_every_command_that_has_them(self):
        text = "threads = 1\ntemp = 0.5\n[drift]\nthreads = 3\n[run]\ntemp = 0.25\n"
        report = self.held(text)
        self.assertEqual((report["threads"], report["sampling"]["temperature"]), (1, 0.25))

    def test_texts_are_taken_as_they_are(self):
        text = ('[run]\ncompressor = "snapkv:keep=0.5,window=32+kivi:bits=4"\n'
                'stop = ["no # comment", "a, b"] # but this is one\n'
                'logit-bias = ["65+1000"]\nsystem-prompt = """Be\nbrief."""\n')
        report = self.held(text)
        self.assertIn("window=32", report["compressor"])
        self.assertEqual(report["tokens"], [65] * 3)
        self.assertEqual(report["sampling"]["logit_bias"], [[65, 1000.0]])

    def test_the_file_may_be_named_before_or_behind_the_command(self):
        other = self.folder / "other.toml"
        other.write_text("[run]\nseed = 99\n")
        seed = self.held("[run]\nseed = 7\n", "--config", other)["sampling"]["seed"]
        self.assertEqual(seed, 99)
        code, _, err = call("--config", other, "run", "-m", self.model, "-p", "x", "-n", "1",
                            env=self.env)
        self.assertEqual(code, 0)
        self.assertIn("seed 99", err)

    def test_a_command_of_a_command_has_a_table_too(self):
        self.config.write_text("n = 500\n[bench.acceptance]\nn = 5\nkeep = \"0.5\"\n")
        text = self.folder / "text.txt"
        text.write_text("hello " * 40)
        code, out, err = call("bench", "acceptance", "-m", self.model, "-f", text, "--compressor",
                              "streaming", "--bits", "16", "--json", "-", env=self.env)
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual(report["predict"], 5)
        self.assertEqual([result["compressor"] for result in report["texts"][0]["results"]],
                         ["streaming:keep=0.5,sinks=4,budget=uniform"])

    def test_a_file_that_is_there_and_cannot_be_read_is_an_error(self):
        self.config.unlink(missing_ok=True)
        self.config.mkdir()
        self.addCleanup(self.config.rmdir)
        self.assert_refused(call("run", "-m", self.model, "-p", "x", env=self.env), 2,
                            str(self.config), "Is a directory")
        code, out, _ = call("run", "--help", env=self.env)  # which asks for no defaults
        self.assertEqual(code, 0)
        self.assertIn("--config", call("--help", env=self.env)[1])

    def test_without_a_file_nothing_is_set(self):
        self.config.unlink(missing_ok=True)
        report = self.report("-p", "x", "-n", "1", env=self.env)
        self.assertEqual(report["sampling"]["temperature"], 0.8)

    def test_home_is_where_the_file_lies_without_xdg(self):
        config = self.home / ".config" / "vericache" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("[run]\nseed = 5\n")
        env = {**self.env, "HOME": str(self.home)}
        del env["XDG_CONFIG_HOME"]
        self.assertEqual(self.report("-p", "x", "-n", "1", env=env)["sampling"]["seed"], 5)

    def test_what_is_wrong_in_the_file_is_refused_by_name(self):
        for text, *parts in [
                ("[run]\ntemprature = 1\n", "'run.temprature'"),
                ("[rum]\ntemp = 1\n", "'rum.temp'"),
                ("no-such = 1\n", "'no-such'"),
                ("[run]\nseed = [1, 2]\n", "line 2", "'seed'", "one value"),
                ("[run]\nignore-eos = \"maybe\"\n", "line 2", "--ignore-eos"),
                ("[bench.acceptance]\ndraft-len = \"many\"\n", "line 2", "'many'"),
                ("[run]\nhelp = true\n", "'run.help'"),
                ("[run]\ntemp = 'hot'\n", "--temp", "'hot'"),
                ("[run]\nmode = \"fast\"\n", "--mode", "'fast'"),
                ("[run]\ntemp 0.5\n", "line 2"),
                ("[run]\ntemp = 1\ntemp = 2\n", "line 3"),
                ("[run]\nseed = 1979-05-27\n", "line 2", "'seed'"),
                ("[run.deep]\ntemp = 1\n", "'run.deep.temp'")]:
            with self.subTest(text):
                self.config.write_text(text)
                self.assert_refused(call("run", "-m", self.model, "-p", "x", env=self.env), 2,
                                    f"'{self.config}'", *parts)
        self.config.unlink()
        self.assert_refused(call("run", "--config", "/no/such.toml", "-p", "x"), 2,
                            "/no/such.toml")


if __name__ == "__main__":
    cli_case.main()
