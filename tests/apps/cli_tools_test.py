#!/usr/bin/env python3
"""--tools: what the model is shown, and the calls found in its answer.

    cli_tools_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import re

import cli_case
from cli_case import Folder
from cli_chat_test import TURN

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

    def test_a_template_that_hides_the_tools_is_refused(self):
        self.assert_refused(self.run_model("-p", "x", "--tools", self.tools), 1, "'weather'",
                            "template")

    def test_a_control_token_in_a_tool_is_refused(self):
        # However JSON writes it: it would end the system message.
        for control in ("<|im_end|>", "<\\u007cim_end|>"):
            self.tools.write_text(json.dumps([tool("weather", "Says CONTROL.")])
                                  .replace("CONTROL", control))
            self.assert_refused(self.run_model(*self.ask), 2, "'weather'", "<|im_end|>")


WEATHER = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
CLOCK = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
WEATHER_SHOWN = r'(?m)^tool +weather \{"city": ?"Paris"\}$'
CLOCK_SHOWN = r"(?m)^tool +clock \{\}$"


class ToolsInAChat(Folder):
    def setUp(self):
        self.template = self.folder / "template.jinja"
        self.template.write_text(TEMPLATE)
        self.tools = self.folder / "tools.json"
        self.tools.write_text(json.dumps(TOOLS))

    def chat(self, answer, *lines, options=()):
        """Each answer is this text. Returns standard output, standard error, and of each turn: its
        tokens, prompt tokens and reused ones."""
        code, out, err = self.run_model(
            "-i", "--chat-template", self.template, "--tools", self.tools, "--mode", "full",
            "--temp", "0", "-t", "1", "--grammar", grammar_of(answer), *options,
            text="\n".join([*lines, ""]).encode())
        self.assertEqual(code, 0, err)
        return out, err, [tuple(map(int, turn)) for turn in TURN.findall(err)]

    def test_a_result_goes_back_and_an_answer_follows(self):
        out, err, turns = self.chat(WEATHER, "hello", "/result 7", "/result 7")
        self.assertEqual(out, (WEATHER + "\n") * 3)
        self.assertEqual(len(re.findall(WEATHER_SHOWN, err)), 3)
        self.assertEqual(err.count("/result TEXT answers weather; a message goes on without"), 3)
        self.assertEqual(len(turns), 3)
        longer = self.chat(WEATHER, "hello", "/result " + "7" * 21)[2]
        self.assertEqual(longer[1][1], turns[1][1] + 20)  # the model sees it

    def test_the_kv_of_a_call_is_reused(self):
        answer = '<tool_call>\n{"name": "7", "arguments": {}}\n</tool_call>'
        self.tools.write_text(json.dumps([tool("7")]))
        _, _, turns = self.chat(answer, "hello", "/result rain")
        # As far as "arguments", whose letters this model does not write in merged pairs.
        self.assertGreaterEqual(turns[1][2], turns[0][1] + len('<tool_call>\n{"name": "'))

    def test_several_calls_are_answered_in_order(self):
        _, err, turns = self.chat(WEATHER + "\n" + CLOCK, "hello", "/result rain", "/result noon")
        self.assertEqual(len(turns), 2)
        self.assertRegex(err, WEATHER_SHOWN)
        self.assertRegex(err, CLOCK_SHOWN)
        first = err.index("answers weather, the first of 2 calls;")
        second = err.index("answers clock;")
        self.assertLess(first, second)
        self.assertLess(second, err.rindex(" reused"))

    def test_a_message_goes_on_without_a_result(self):
        _, err, turns = self.chat(WEATHER + "\n" + CLOCK, "hello", "/result rain", "never mind",
                                  "/clear", "/result late")
        self.assertEqual(len(turns), 2)
        self.assertIn("no call waits for a result\n", err)

    def test_without_a_call_there_is_nothing_to_answer(self):
        _, err, turns = self.chat("It rains.", "hello", "/result x", "/result", "again")
        self.assertIn("no call waits for a result\n", err)
        self.assertIn("/result needs a TEXT\n", err)
        self.assertEqual(len(turns), 2)

    def test_a_call_that_breaks_off_is_none(self):
        _, err, turns = self.chat(WEATHER[:-20], "hello", "/result x", "again")
        self.assertEqual(err.count("tool     none: the answer breaks off"), 2)
        self.assertIn("no call waits", err)
        self.assertEqual(len(turns), 2)

    def test_a_saved_conversation_keeps_its_calls(self):
        path = self.folder / "calls.kv"
        both = WEATHER + "\n" + CLOCK
        _, _, whole = self.chat(both, "hello", "/result rain", f"/save {path}", "/result noon")
        _, err, turns = self.chat(both, f"/load {path}", "/result noon")
        before = err[:err.index("[")]
        self.assertIn("loaded 3 messages", before)
        self.assertRegex(before, CLOCK_SHOWN)
        self.assertNotRegex(before, WEATHER_SHOWN)
        self.assertIn("answers clock;", before)
        self.assertEqual(turns, whole[1:])

    def test_results_that_do_not_fit_are_forgotten_and_their_calls_wait_again(self):
        _, err, turns = self.chat(WEATHER + "\n" + CLOCK, "hello", "/result rain",
                                  "/result " + "7" * 500, "/result rain", "/result noon",
                                  options=["-c", "900"])
        self.assertIn("the context holds 900", err)
        self.assertEqual(err.count("answers weather, the first of 2 calls;"), 3)
        self.assertEqual(len(turns), 2)

    def test_control_text_in_results_and_calls_stays_text(self):
        # As many tokens as with a text in its place that is none.
        control, other = "<|im_end|>", "<_im_end_>"
        as_result = [self.chat(WEATHER, "hello", f"/result {text}") for text in (control, other)]
        self.assertEqual(as_result[0][2][1][1], as_result[1][2][1][1])
        as_text = self.chat(WEATHER.replace("Paris", control), "hello", "/result rain")
        as_call = self.chat(WEATHER.replace("Paris", other), "hello", "/result rain")
        self.assertIn(f'tool     weather {{"city": "{control}"}}', as_text[1])
        self.assertEqual(as_text[2][1][1], as_call[2][1][1] - len("\n"))  # the template's


if __name__ == "__main__":
    cli_case.main()
