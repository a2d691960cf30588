#!/usr/bin/env python3
"""perplexity and drift: against what run itself gives, and against what must hold by definition.

    cli_measure_test.py VERICACHE WRITE_TINY_MODEL [unittest arguments]
"""

import json
import math

import cli_case
from cli_case import Folder, call
from gguf_damage import Gguf

BYTES = "#$@@^&%$#^^&@$#%&^@#$&%^%$#@&^#$^@%&#$%^@&"  # each is a token
TEXT = "The quick brown fox jumps over the lazy dog; what it does then is not known to anybody."


class Measure(Folder):
    def measured(self, command, *arguments, **options):
        code, out, err = call(command, "-m", self.model, *arguments, "--json", "-", **options)
        self.assertEqual(code, 0, err)
        return json.loads(out)


class Perplexity(Measure):
    def surprise(self, before, token, *arguments):
        """Of `token` behind a text, by plain decoding: forced by a bias, which log probabilities
        do not see."""
        report = self.report("--raw", *arguments, "-p", before, "-n", "1", "--temp", "0",
                             "--ignore-eos", "--logit-bias", f"{token}+1000", "--logprobs", "0")
        self.assertEqual(report["tokens"], [token])
        return -report["logprobs"][0]["logprob"]

    def test_it_is_what_plain_decoding_gives_each_token(self):
        report = self.measured("perplexity", "-p", BYTES, "-c", "10")
        self.assertEqual((report["chunks"], report["scored_tokens"]), (4, 16))
        surprises = [self.surprise(BYTES[10 * chunk:10 * chunk + place],
                                   ord(BYTES[10 * chunk + place]))
                     for chunk in range(4) for place in range(6, 10)]
        mean = sum(surprises) / len(surprises)
        variance = sum((x - mean) ** 2 for x in surprises) / (len(surprises) - 1)
        error = math.sqrt(variance / len(surprises))
        self.assertAlmostEqual(report["nll"], mean, 4)
        self.assertAlmostEqual(report["nll_error"], error, 4)
        self.assertAlmostEqual(report["perplexity"], math.exp(report["nll"]), 6)
        self.assertAlmostEqual(report["perplexity_error"],
                               report["perplexity"] * report["nll_error"], 6)

    def test_a_model_that_begins_texts_with_a_token_has_it_before_every_chunk(self):
        begins = self.folder / "begins.gguf"
        gguf = Gguf(self.model)
        gguf.put(gguf.values["tokenizer.ggml.add_bos_token"][1], "?", True)
        begins.write_bytes(gguf.bytes)
        # It stands before the text, and in the place of every other chunk's first token.
        chunks = [BYTES[:9], *(BYTES[at + 1:at + 10] for at in (9, 19, 29))]
        surprises = [self.surprise(chunk[:place], ord(chunk[place]), "-m", begins)
                     for chunk in chunks for place in range(5, 9)]
        code, out, err = call("perplexity", "-m", begins, "-p", BYTES, "-c", "10", "--json", "-")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual((report["chunks"], report["scored_tokens"]), (4, 16))
        self.assertAlmostEqual(report["nll"], sum(surprises) / 16, 4)
        plain = self.measured("perplexity", "-p", BYTES, "-c", "10")
        self.assertNotAlmostEqual(report["nll"], plain["nll"], 3)

    def test_chunks_longer_than_a_pass_and_fewer_of_them(self):
        text = self.folder / "text"
        text.write_text(BYTES * 30)
        whole = self.measured("perplexity", "-f", text, "-c", "600")
        self.assertEqual((whole["chunks"], whole["scored_tokens"]), (2, 2 * 299))
        first = self.measured("perplexity", "-f", text, "-c", "600", "--chunks", "1")
        self.assertEqual((first["chunks"], first["scored_tokens"]), (1, 299))
        self.assertNotEqual(first["nll"], whole["nll"])
        again = self.measured("perplexity", "-c", "600", "--isa", "ref", "-t", "1", "--chunks",
                              "1", text=(BYTES * 30).encode())
        self.assertEqual(again["nll"], first["nll"])  # to the bit: I3

    def test_the_figures_are_readable(self):
        code, out, err = call("perplexity", "-m", self.model, "-p", TEXT, "-c", "20")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^perplexity \d+\.\d+ ± \d+\.\d+$")
        self.assertRegex(out, r"(?m)^nll +\d+\.\d+ ± \d+\.\d+ per token$")

    def test_what_cannot_be_scored_is_refused(self):
        ask = ["perplexity", "-m", self.model]
        self.assert_refused(call(*ask, "-p", "short"), 2, "4 tokens", "512", "-c")
        self.assert_refused(call(*ask, "-p", TEXT, "-c", "4000"), 2, "4000", "2048")
        self.assert_refused(call(*ask, "-p", TEXT, "-c", "2"), 2, "'2'")
        self.assert_refused(call(*ask, "-f", "/no/such/text"), 1, "/no/such/text")
        self.assert_refused(call(*ask, text=b""), 2, "empty")


class Drift(Measure):
    QUESTION = ["-p", "what differs? " * 30, "-n", "60", "--ignore-eos"]

    def test_the_identity_drifts_nowhere_and_noise_drifts_far(self):
        report = self.measured("drift", *self.QUESTION, "--compressor", "identity",
                               "--compressor", "hostile")
        full = self.report(*self.QUESTION, "--temp", "0", "--mode", "full")
        self.assertEqual(report["full"]["tokens"], full["tokens"])
        self.assertEqual(report["full"]["text"], full["text"])
        identity, hostile = report["methods"]
        self.assertEqual(identity["compressor"], "identity")
        self.assertEqual(identity["kl"], [0] * 60)
        self.assertEqual((identity["top_agreement"], identity["edit_distance"]), (1, 0))
        self.assertIsNone(identity["first_difference"])
        self.assertEqual(identity["tokens"], full["tokens"])
        self.assertEqual(hostile["kl"][0], 0)  # the first token comes from the full KV
        self.assertGreater(hostile["kl_mean"], 1e-3)
        self.assertLess(hostile["top_agreement"], 1)
        self.assertGreater(hostile["edit_distance"], 0)

    def test_the_lossy_answer_is_the_one_that_run_gives(self):
        for sampling in (["--temp", "0"], ["--temp", "0.8", "--seed", "3"]):
            options = [*self.QUESTION, *sampling, "--compressor", "streaming"]
            method = self.measured("drift", *options)["methods"][0]
            self.assertEqual(method["tokens"], self.report(*options, "--mode", "lossy")["tokens"])

    def test_steps_agree_with_the_answers_up_to_their_first_difference(self):
        # Until then both are behind the same tokens, and greedy takes the likeliest.
        report = self.measured("drift", *self.QUESTION, "--compressor", "hostile")
        method = report["methods"][0]
        place = method["first_difference"]
        full, lossy = report["full"]["tokens"], method["tokens"]
        self.assertEqual(full[:place], lossy[:place])
        self.assertNotEqual(full[place], lossy[place])
        self.assertEqual(method["top_same"][:place + 1], [True] * place + [False])
        self.assertEqual(len(method["kl"]), len(full))
        # The first step is of the full KV for all, and in no figure.
        self.assertAlmostEqual(method["kl_mean"], sum(method["kl"][1:]) / (len(full) - 1), 9)
        self.assertAlmostEqual(method["top_agreement"],
                               method["top_same"][1:].count(True) / (len(full) - 1), 9)
        self.assertEqual(method["kl_max"], max(method["kl"]))

    def test_steps_follow_the_full_answer(self):
        # A bias leads run's answers where drift leads its steps; log probabilities do not see it.
        options = [*self.QUESTION, "--temp", "0", "--seed", "9", "--logit-bias", "65+1000"]
        method = self.measured("drift", *options, "--compressor", "streaming")["methods"][0]
        self.assertEqual(method["tokens"], [65] * 60)
        full, lossy = ([row["top"][0]["id"] for row in self.report(
            *options, "--compressor", "streaming", "--mode", mode, "--logprobs", "1")["logprobs"]]
            for mode in ("full", "lossy"))
        same = [a == b for a, b in zip(full, lossy)]
        self.assertEqual(method["top_same"], same)
        self.assertIn(False, same)
        self.assertIn(True, same[1:])

    def test_the_table_has_a_line_for_each_compressor(self):
        code, out, err = call("drift", "-m", self.model, *self.QUESTION, "--compressor",
                              "identity", "--compressor", "streaming")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^compressor +KV +KL mean ")
        self.assertRegex(out, r"(?m)^identity .* 0\.00000 .* 100\.0 % +none +0 \(0 %\)$")
        self.assertRegex(out, r"(?m)^streaming\S* .* \d+ \(\d+ %\)$")

    def test_an_answer_that_ends_early_and_a_short_prompt(self):
        report = self.measured("drift", "-p", "x", "--json-schema", '{"type": "boolean"}')
        self.assertEqual(report["full"]["finish_reason"], "eos")
        method = report["methods"][0]
        self.assertEqual(len(method["kl"]), len(report["full"]["tokens"]))
        self.assertIsNone(method["first_difference"])  # too short to compress

    def test_what_is_wrong_is_refused(self):
        ask = ["drift", "-m", self.model, "-p", "x"]
        self.assert_refused(call(*ask, "--compressor", "zip"), 2, "zip", "kivi")
        self.assert_refused(call(*ask, "--mirostat", "1"), 2, "mirostat")
        self.assert_refused(call("drift", "-m", self.model, "-p", "x " * 3000), 2, "2048")


if __name__ == "__main__":
    cli_case.main()
