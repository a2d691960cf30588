#!/usr/bin/env python3
"""--tools: what the model is shown, and the calls found in its answer.

    cli_tools_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json

import cli_case
from cli_case import Folder, call

TEMPLATE = r"""{%- if tools %}
    {{- '[tools]' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
    {{- 'Call as <tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '[' + message.role + ']' }}
    {%- if message.content %}
        {{- message.content }}
    {%- endif %}
    {%- for tool_call in message.tool_calls or [] %}
        {{- '\n<tool_call>\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
        {{- tool_call.function.arguments | tojson }}
        {{- '}\n</tool_call>' }}
    {%- endfor %}
    {{- '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '[assistant]\n' }}
{%- endif %}"""


def tool(name, description="Says how it is.", **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description,
                                             "parameters": parameters}}


TOOLS = [tool("weather", city={"type": "string"}), tool("clock")]


def grammar_of(text):
    """Leads the answer: it is this text."""
    return "root ::= " + json.dumps(text)


class Tools(Folder):
    def setUp(self):
        self.template = self.folder / "template.jinja"
        self.template.write_text(TEMPLATE)
        self.tools = self.folder / "tools.json"
        self.tools.write_text(json.dumps(TOOLS))
        self.ask = ["-p", "hello", "--chat-template", self.template, "--tools", self.tools]

    def answered(self, text, *arguments):
        return self.report(*self.ask, "--grammar", grammar_of(text), *arguments)

    def test_a_call_is_found_in_the_answer(self):
        text = ('<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>')
        for mode in ("full", "lossy", "verified"):
            report = self.answered(text, "--mode", mode)
            self.assertEqual(report["text"], text)
            self.assertEqual(report["tool_calls"],
                             [{"name": "weather", "arguments": {"city": "Paris"}}])
            self.assertEqual(report["content"], "")
        code, out, err = self.run_model(*self.ask, "--grammar", grammar_of(text))
        self.assertEqual((code, out), (0, text + "\n"))
        self.assertRegex(err, r'(?m)^tool +weather \{"city": ?"Paris"\}$')

    def test_text_without_a_call_is_content(self):
        report = self.answered("It rains.")
        self.assertEqual((report["tool_calls"], report["content"]), ([], "It rains."))

    def test_a_call_that_breaks_off_is_none_and_no_failure(self):
        text = '<tool_call>\n{"name": "weather", "arguments": {"ci'
        report = self.answered(text)
        self.assertEqual((report["tool_calls"], report["text"]), ([], text))

    def test_the_model_is_shown_the_tools_and_only_if_asked(self):
        with_tools = self.report(*self.ask, "-n", "0")["prompt_tokens"]
        without = self.report(*self.ask[:4], "-n", "0")
        self.assertGreater(with_tools, without["prompt_tokens"] + 50)
        self.assertNotIn("tool_calls", without)

    def test_what_are_no_tools_is_refused(self):
        for text, *parts in [("", "tools"), ("[", "tools"), ("{}", "array"), ("[]", "no tools"),
                             ("[" * 1000, "1000 deep"),
                             ('[{"type": "function"}]', "function"),
                             (json.dumps([tool("")]), "''")]:
            with self.subTest(text):
                self.tools.write_text(text)
                code, out, err = self.run_model(*self.ask)
                self.assertIn(code, (1, 2), err)
                self.assertEqual(out, "")
                for part in parts:
                    self.assertIn(part, err)
        self.assert_refused(self.run_model("-p", "x", "--tools", "/no/such.json"), 1,
                            "/no/such.json")
        self.assert_refused(self.run_model("-p", "x", "--raw", "--tools", self.tools), 2,
                            "--tools")
        self.assert_refused(self.run_model("-p", "x", "-i", "--tools", self.tools), 2, "--tools")

    def test_a_template_that_hides_the_tools_is_refused(self):
        self.assert_refused(self.run_model("-p", "x", "--tools", self.tools), 1, "'weather'",
                            "template")

    def test_a_control_token_in_a_tool_is_refused(self):
        # However JSON writes it: it would end the system message.
        for control in ("<|im_end|>", "<\\u007cim_end|>"):
            self.tools.write_text(json.dumps([tool("weather", "Says CONTROL.")])
                                  .replace("CONTROL", control))
            self.assert_refused(self.run_model(*self.ask), 2, "'weather'", "<|im_end|>")


if __name__ == "__main__":
    cli_case.main()
