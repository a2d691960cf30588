"""What the command-line tests share: calling the binary, and a folder with a tiny model.

Each test file is called as  FILE VERICACHE WRITE_TINY_MODEL [unittest arguments].
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BINARY, WRITE_TINY_MODEL = sys.argv[1], sys.argv[2]
TIMEOUT_S = 60


def start(*arguments, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               # A test runner in the background ignores SIGINT, and its children would too.
               "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
               # Whoever runs the tests may have defaults of his own.
               "env": {**os.environ, "XDG_CONFIG_HOME": os.devnull},
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
        """One clear sentence on standard error, nothing on standard output; no crash."""
        actual, out, err = result
        self.assertEqual(actual, code, err)
        self.assertEqual(out, "")
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertTrue(err.startswith("vericache"), err)
        for part in parts:
            self.assertIn(part, err)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
