"""What a run measures. Depths are tokens of KV before the rows that are timed."""

import dataclasses

DEFAULT_MODELS = ["smollm2-135m", "qwen2.5-coder-1.5b"]
QUICK_MODELS = ["smollm2-135m"]
PREFILL_ROWS = 512
DEPTHS = [0, 2048, 7500, 16000, 32000]
DEEP = 7500          # verifies and sessions are measured here, "8k" in the summary
PEER_DEPTH_MAX = 16000
VERIFY_ROWS = [8, 16, 32, 64]
SESSIONS = [4, 8]
DRAFT_LENS = ["4", "8", "16", "32"]
EDITS = [("code_edit", 5), ("edit_python", 3), ("edit_header", 3)]  # and turns of each
COMPRESSED = ["snapkv:keep=0.5+kivi:bits=4", "snapkv:keep=0.25+kivi:bits=4", "kivi:bits=4",
              "streaming:keep=0.25+kivi:bits=4"]


@dataclasses.dataclass(frozen=True)
class Pass:
    kind: str    # prefill, decode, verify
    rows: int    # of each session
    logits: str  # last, all


@dataclasses.dataclass(frozen=True)
class Group:
    """Passes over sequences of one depth."""
    sessions: int
    depth: int
    room: int  # tokens of each session; what has it already need not be made anew
    passes: tuple
    parts: tuple = ()  # rows of the passes that are taken apart


@dataclasses.dataclass(frozen=True)
class Choice:
    mode: str
    drafter: str = "kv"
    compressor: str = "identity"
    draft_len: str = "auto"

    @property
    def name(self):
        if self.mode == "full":
            return "full"
        drafter = {"kv": self.compressor, "ngram": "ngram", "both": f"{self.compressor} + ngram"}
        length = "" if self.draft_len == "auto" else f", drafts of {self.draft_len}"
        return f"{self.mode} {drafter[self.drafter]}{length}"


@dataclasses.dataclass(frozen=True)
class Answers:
    """Prompts answered in full mode and in each of these, in turn."""
    prompts: int
    prompt_tokens: int  # 0: the text is one prompt, as it is
    text: str           # a file of eval/, or "documents"
    tokens: int
    turns: int
    choices: tuple


def groups(context, depths=None, is_quick=False):
    """The passes that fit the context, in ascending depth."""
    depths = [depth for depth in sorted(depths or DEPTHS) if depth + PREFILL_ROWS <= context]
    if is_quick:
        depths = [depth for depth in depths if depth <= DEEP]
    planned = []
    for depth in depths:
        passes = [Pass("decode", 1, "all")]
        if depth in (0, DEEP):
            passes.append(Pass("prefill", PREFILL_ROWS, "last"))
        if depth == DEEP:
            passes += [Pass("verify", rows, "all") for rows in VERIFY_ROWS]
        planned.append(Group(1, depth, depths[-1] + PREFILL_ROWS, tuple(passes), (1, 32)))
    if DEEP in depths:
        planned += [Group(n, DEEP, DEEP + PREFILL_ROWS, (Pass("decode", 1, "all"),))
                    for n in SESSIONS]
    return planned


def answers(context, model, is_quick=False):
    verified = tuple(Choice("verified", "kv", spec) for spec in COMPRESSED)
    ngram, both = Choice("verified", "ngram"), Choice("verified", "both", COMPRESSED[0])
    lossy = Choice("lossy", "kv", COMPRESSED[0])
    lengths = tuple(Choice("verified", "kv", COMPRESSED[0], length) for length in DRAFT_LENS)
    if is_quick:
        tokens = min(7000, context - 512)
        return [Answers(1, tokens, "documents", 64, 2, (lossy, verified[0], verified[2], ngram))]
    deep = Answers(1, min(7000, context - 512), "documents", 256, 5,
                   (lossy, *verified, ngram, both))
    edits = [Answers(1, 0, f"eval/prompts/{name}.txt", 300, turns, (verified[0], ngram, both))
             for name, turns in EDITS]
    if "smollm2" in model:
        return [deep, Answers(1, 7000, "documents", 256, 2, lengths), edits[0],
                Answers(1, 2000, "documents", 256, 5, (verified[0], ngram)),
                Answers(8, 7000, "documents", 256, 2, verified)]
    return [*edits, Answers(4, min(16000, context - 512), "documents", 256, 1, verified)]
