#!/usr/bin/env python3
"""The chat as a user meets it: on a terminal, and in a pipe.

    cli_chat_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import fcntl
import os
import re
import signal
import termios
import time

import cli_case
from cli_case import TIMEOUT_S, start

TURN = re.compile(r"\[(\d+) tokens, [^\]]*prompt (\d+) tokens, (\d+) reused[^\]]*\]")
END_OF_TURN = b" reused, "
PROMPT = b"\r\n> "
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
OPTIONS = ["-n", "12", "--temp", "0", "--ignore-eos", "-t", "1"]


class Terminal:
    """A chat on a terminal of its own."""

    def __init__(self, model, *arguments):
        self.terminal, other_end = os.openpty()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.alarm(TIMEOUT_S)  # a chat that hangs is not waited for

        self.process = start("run", "-m", model, *arguments, stdin=other_end, stdout=other_end,
                             stderr=other_end, preexec_fn=take_terminal,
                             env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        os.close(other_end)
        self.until(b"> ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def until(self, *parts):
        """What is shown until all parts were, one behind the other."""
        text, at = b"", 0
        for part in parts:
            while text.find(part, at) < 0:
                try:
                    text += os.read(self.terminal, 1) or b""
                except OSError as error:
                    raise AssertionError(f"ended before {part}: {text.decode()}") from error
            at = text.find(part, at) + len(part)
        return text.decode(errors="replace").replace("\r\n", "\n")

    def edit(self, text):
        """Types when the editor has taken the terminal over, as nobody types faster."""
        while termios.tcgetattr(self.terminal)[3] & termios.ICANON:
            time.sleep(0.001)
        self.type(text)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def ask(self, text):
        """Types a message. Returns what is shown, and tokens, prompt tokens and reused ones."""
        self.edit(text + "\r")
        shown = self.until(END_OF_TURN, b"]", PROMPT)
        return shown, tuple(map(int, TURN.search(shown).groups()))

    def command(self, text):
        self.edit(text + "\r")
        return self.until(b"\n", b"> ")

    def leave(self, how=CTRL_D):
        self.edit(how)
        try:
            while os.read(self.terminal, 4096):
                pass
        except OSError:
            pass
        return self.process.wait(timeout=TIMEOUT_S)


class OnATerminal(cli_case.Folder):
    def chat(self, *arguments):
        return Terminal(self.model, *OPTIONS, *arguments)

    def test_a_turn_reuses_the_kv_of_all_earlier_ones(self):
        with self.chat("--mode", "full", "--system-prompt", "be brief") as chat:
            _, (n_tokens, n_prompt, n_reused) = chat.ask("first message")
            self.assertEqual((n_tokens, n_reused), (12, 0))
            n_before = n_prompt
            for message in ("second", "third"):
                _, (_, n_prompt, n_reused) = chat.ask(message)
                self.assertGreaterEqual(n_reused, n_before)
                n_before = n_prompt
            self.assertEqual(chat.leave(), 0)

    def test_the_answer_is_that_of_a_run(self):
        expected = self.report("-p", "hello", *OPTIONS)["text"]
        with self.chat() as chat:
            shown, _ = chat.ask("hello")
            self.assertIn(f"hello\n{expected}", shown)

    def test_ctrl_c_ends_the_answer_and_not_the_program(self):
        with self.chat("-n", "-1", "--isa", "ref") as chat:
            chat.edit("hello\r")
            chat.until(b"hello\r\n")
            chat.until(b"e")  # some text of the answer
            chat.type(CTRL_C)
            self.assertIn("ended by cancelled", chat.until(END_OF_TURN, b"]", PROMPT))
            self.assertIn("ended by cancelled", chat.command("/stats"))
            self.assertEqual(chat.leave(), 0)

    def test_ctrl_c_discards_a_line_and_what_it_goes_on_from(self):
        with self.chat() as chat:
            _, (_, n_expected, _) = chat.ask("hello")
            chat.command("/clear")
            chat.edit("never \\\r")
            chat.until(b"\r\n  ")
            chat.edit("asked")
            chat.until(b"asked")
            chat.type(CTRL_C)
            chat.until(PROMPT)
            shown, (_, n_prompt, _) = chat.ask("hello")
            self.assertEqual(n_prompt, n_expected)

    def test_a_backslash_continues_a_message(self):
        with self.chat() as chat:
            _, (_, one, _) = chat.ask("aXb")
            chat.command("/clear")
            _, (_, two, _) = chat.ask("a\\\rb")
            self.assertEqual(one, two)  # a line's end in place of the X

    def test_lines_can_be_edited_and_come_back(self):
        with self.chat() as chat:
            first, (_, n_prompt, _) = chat.ask("hé\x7f\x7fhello")
            self.assertIn(self.report("-p", "hello", *OPTIONS)["text"], first)
            chat.command("/clear")
            _, (_, again, _) = chat.ask(UP + UP)
            self.assertEqual(again, n_prompt)

    def test_commands_change_what_they_say(self):
        with self.chat() as chat:
            self.assertIn("no answer yet", chat.command("/stats"))
            self.assertIn("/compressor SPEC", chat.command("/help"))
            self.assertIn("no /nope", chat.command("/nope"))
            self.assertIn("'fast'", chat.command("/mode fast"))
            self.assertIn("nothing to save", chat.command("/save x.kv"))
            self.assertIn("drafted accepted", chat.ask("a")[0])
            chat.command("/mode lossy")
            self.assertIn("lossy: may differ", chat.ask("b")[0])
            chat.command("/mode full")
            self.assertNotIn("drafted", chat.ask("c")[0])
            _, before = chat.ask("d")
            chat.command("/clear")
            _, after = chat.ask("d")
            self.assertLess(after[1], before[1])
            self.assertEqual(chat.leave("/exit\r"), 0)

    def test_a_message_too_long_for_the_context_is_refused_and_forgotten(self):
        with self.chat("-c", "128") as chat:
            chat.ask("hello")
            self.assertIn("the context holds 128; /clear", chat.command("x y " * 60))
            chat.ask("short")

    def test_without_a_prompt_a_chat_begins(self):
        with Terminal(self.model) as chat:
            self.assertEqual(chat.leave(), 0)


class Sessions(cli_case.Folder):
    def chat(self, text, *arguments):
        """Returns answers and figures of a chat in a pipe."""
        code, out, err = self.run_model("-i", *OPTIONS, *arguments, text=text.encode())
        self.assertEqual(code, 0, err)
        return out, err, [tuple(map(int, turn)) for turn in TURN.findall(err)]

    def test_a_pipe_shows_answers_alone_on_standard_output(self):
        for mode in ("full", "verified"):
            out, err, turns = self.chat("hello\n\n/stats\nmore\n", "--mode", mode)
            first = self.report("-p", "hello", *OPTIONS)["text"]
            self.assertTrue(out.startswith(first.rstrip("\n") + "\n"), out)
            self.assertEqual(len(turns), 2)
            self.assertNotIn("> ", out[:2])
            self.assertNotIn("\x1b", out + err)
            if mode == "full":
                expected = out
        self.assertEqual(out, expected)

    def test_a_prompt_is_the_first_message(self):
        self.assertEqual(self.chat("two\n", "-p", "one")[0], self.chat("one\ntwo\n")[0])

    def test_a_saved_conversation_goes_on_in_another_process(self):
        path = self.folder / "session.kv"
        whole, _, whole_turns = self.chat("one\ntwo\nthree\n", "--mode", "full")
        first, _, _ = self.chat(f"one\ntwo\n/save {path}\n", "--mode", "full")
        last, err, turns = self.chat(f"/load {path}\nthree\n", "--mode", "full")
        self.assertEqual(first + last, whole)
        self.assertIn("loaded 4 messages", err)
        self.assertEqual(turns[0], whole_turns[2])

    def test_what_cannot_be_loaded_leaves_the_conversation_as_it_is(self):
        path = self.folder / "damaged.kv"
        whole, _, _ = self.chat(f"one\n/save {path}\ntwo\n")
        path.write_bytes(path.read_bytes()[:-100])
        report = self.folder / "report.txt"
        report.write_text("a report")
        for other, what in ((path, "is damaged"), (report, "no KV file"),
                            (self.folder / "absent", "No such file")):
            with self.subTest(what):
                out, err, _ = self.chat(f"one\n/load {other}\ntwo\n")
                self.assertIn(what, err)
                self.assertEqual(out, whole)
        prompt = self.folder / "prompt.kv"
        self.report("-p", "x", *OPTIONS, "--prompt-cache", prompt)
        self.assertIn("holds a prompt", self.chat(f"/load {prompt}\n")[1])
        self.assertIn("cannot write", self.chat("one\n/save /no/folder/x\n")[1])
        self.assertIn("no KV file", self.chat(f"one\n/save {report}\n")[1])
        self.assertEqual(report.read_text(), "a report")

    def test_options_without_a_use_are_refused(self):
        for arguments, part in ((["--json", "-"], "--json"), (["--raw"], "--raw"),
                                (["--compare"], "--compare"),
                                (["--prompt-cache", "x"], "--prompt-cache")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_model("-i", *arguments), 2, part)

    def test_bytes_that_are_no_text_are_refused_and_the_chat_goes_on(self):
        code, out, err = self.run_model("-i", *OPTIONS, text=b"\xff\xfe\nhello\n")
        self.assertEqual(code, 0)
        self.assertIn("not valid UTF-8", err)
        self.assertEqual(len(TURN.findall(err)), 1)


if __name__ == "__main__":
    cli_case.main()
