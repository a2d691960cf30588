#!/usr/bin/env python3
"""Token ids by an independent tokenizer, for tests/golden/tokenizer_NAME.txt.

    python3 -m venv VENV && VENV/bin/pip install tokenizers==0.23.3 gguf==0.19.0
    VENV/bin/python tools/golden/tokenizer_vectors.py MODEL.gguf > tests/golden/tokenizer_NAME.txt

The vocabulary and the merges come from the GGUF file; splitting into words and merging are those of
Hugging Face's `tokenizers`, with the rules that the models' authors publish. Texts hold what
tokenizers stumble over (contractions, digits, runs of spaces, line ends, scripts, emoji, names of
control tokens, which stay text) and lines of the committed prompts. Qwen's own NFC normalisation is
left out, as llama.cpp leaves it out: a token sequence then gives back its text byte for byte.

Lines: "text" and the UTF-8 in hex, then "ids" and the ids, each over several lines if it is long.
"""

import pathlib
import random
import sys
import textwrap

import gguf
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
WORDS = {
    "smollm": lambda: Sequence([Digits(individual_digits=True),
                                ByteLevel(add_prefix_space=False, use_regex=True)]),
    "qwen2": lambda: Sequence([Split(Regex(QWEN2), "isolated"),
                               ByteLevel(add_prefix_space=False, use_regex=False)]),
}
ODD = [
    "", " ", "  ", "\t\t\t\t\t\ttest", "a\nb\r\nc\n\n\n d", "hello !", " hello  world ",
    "I'm you're he'd we'LL they'Ve it'S don't", "3.14159 and 1234567890, 1e-9", "x\u2028y\u2029z",
    "<|im_end|><|im_start|>system", "<pad>text<eos><|endoftext|>", "\ufeffBOM first",
    "\U0001f917 \U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e \u4e2d\u6587\u5b57\u7b26",
    "na\u00efve caf\u00e9 \u00c5ngstr\u00f6m",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0926\u0947\u0935\u0928\u093e\u0917\u0930\u0940",
    "\u05e9\u05dc\u05d5\u05dd \u0627\u0644\u0633\u0644\u0627\u0645 \u0661\u0662\u0663",
    "e\u0301 is not \u00e9", "nbsp\u00a0and\u3000ideographic", "a" * 300, "1" * 50, " " * 70 + "x",
    "if (x<=y&&z!=0){return a[i]++;}//done", "\x00\x01nul", "UPPER lower MiXeD _snake_ kebab-case",
]
SPANS = [(32, 126), (32, 126), (97, 122), (0x80, 0x7ff), (0x900, 0x97f), (0x590, 0x6ff),
         (0x2000, 0x206f), (0x300, 0x36f), (0x4e00, 0x9fff), (0x1f300, 0x1faff)]


def texts():
    yield from ODD
    prompts = pathlib.Path(__file__).parents[2] / "eval" / "prompts"
    for path in sorted(prompts.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for begin in range(0, len(text), max(1, len(text) // 8)):
            yield text[begin:begin + 120]
    rng = random.Random(20261207)
    for _ in range(56):
        spans = [rng.choice(SPANS) for _ in range(rng.randint(1, 40))]
        yield "".join(chr(rng.randint(*span)) for span in spans)


def array(reader, key):
    field = reader.fields[key]
    return [bytes(field.parts[i]).decode("utf-8") for i in field.data]


def load(path):
    reader = gguf.GGUFReader(path)
    vocab = {token: i for i, token in enumerate(array(reader, "tokenizer.ggml.tokens"))}
    merges = [tuple(merge.split(" ")) for merge in array(reader, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = WORDS[array(reader, "tokenizer.ggml.pre")[0]]()
    return tokenizer, vocab


def show(word, parts):
    break_words = word == "text"
    for line in textwrap.wrap(" ".join(parts), 94, break_long_words=break_words) or [""]:
        print(f"{word} {line}".rstrip())


def main():
    tokenizer, vocab = load(sys.argv[1])
    known = set(vocab)
    for text in texts():
        pieces = {c for word, _ in ByteLevel(add_prefix_space=False, use_regex=False)
                  .pre_tokenize_str(text) for c in word}
        if pieces <= known:  # SmolLM2 has no token for some bytes
            show("text", [text.encode("utf-8").hex()])
            show("ids", map(str, tokenizer.encode(text).ids))


if __name__ == "__main__":
    main()
