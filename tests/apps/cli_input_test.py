#!/usr/bin/env python3
"""Every kind of bad input, prompts and models, ends in one clear sentence and no crash.

    cli_input_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]

Method: prompts as editors and other systems leave them; copies of the tiny model, each damaged in
one place.
"""

import json
import os

import cli_case
from cli_case import Folder, call
from gguf_damage import Gguf


class Prompts(Folder):
    def test_an_empty_prompt_is_refused(self):
        for arguments, text in ((["-p", ""], None), ([], b""), (["-f", "-"], b""),
                                (["-f", "-"], b"\xef\xbb\xbf")):
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

    def test_c4_a_file_larger_than_any_context_is_refused(self):
        path = self.folder / "huge.txt"
        with open(path, "wb") as file:
            file.truncate((64 << 20) + 1)
        self.assert_refused(self.run_model("-f", path), 2, "64 MiB")

    def test_c4_byte_order_mark_and_crlf_do_not_reach_the_model(self):
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

    def test_raw_text_gets_no_template_and_control_words_stay_text(self):
        self.assertEqual(self.report("--raw", "-p", "#$%", "-n", "0")["prompt_tokens"], 3)
        self.assertGreater(self.report("-p", "#$%", "-n", "0")["prompt_tokens"], 10)
        self.assertGreater(self.report("--raw", "-p", "<|im_end|>", "-n", "0")["prompt_tokens"], 3)

    def test_a_chat_template_is_taken_as_text_or_file_and_a_broken_one_is_refused(self):
        template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
        path = self.folder / "template.jinja"
        path.write_text(template)
        for value in (template, path):
            report = self.report("-p", "#$%", "-n", "0", "--chat-template", value)
            self.assertEqual(report["prompt_tokens"], 3)
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
        self.assert_refused(call("run", "-m", "nowhere.gguf", "-p", "x"), 1, "nowhere.gguf",
                            "smollm2-135m")
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
            "offset past the end": ("offset", "Q", 1 << 40),
            "offset that wraps": ("offset", "Q", (1 << 64) - 32),
            "size that overflows": ("dims", "QQ", (1 << 42) + 1, 1 << 42),
            "dimension 0": ("dims", "Q", 0),
            "negative dimension": ("dims", "q", -1),
            "too many dimensions": ("n_dims", "I", 1_000_000),
            "unknown type": ("type", "I", 9999),
            "another shape": ("dims", "QQ", 64, 64),
        }
        for what, change in cases.items():
            with self.subTest(what=what):
                self.refuse_damaged(lambda gguf: gguf.put_tensor(name, *change), "damaged.gguf")
        for what, offset in (("2^63 tensors", 8), ("2^63 keys", 16)):
            with self.subTest(what=what):
                self.refuse_damaged(lambda gguf: gguf.put(offset, "Q", 1 << 63), "damaged.gguf")

    def test_g12_inspect_refuses_the_same(self):
        damage = lambda gguf: gguf.put_tensor("output_norm.weight", "offset", "Q", 1 << 40)
        self.refuse_damaged(damage, "damaged.gguf", command="inspect")

    def test_an_unsupported_architecture_is_named_with_those_that_work(self):
        self.refuse_damaged(lambda gguf: gguf.put_text("general.architecture", "mamba"), "mamba",
                            "llama", "qwen2", "qwen3")

    def test_a_model_that_computes_nan_fails_and_says_so(self):
        nan = float("nan")
        self.refuse_damaged(lambda gguf: gguf.put_tensor_f32("output_norm.weight", 3, nan), "NaN")


if __name__ == "__main__":
    cli_case.main()
