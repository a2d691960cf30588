#!/usr/bin/env python3
"""The style as a test: limits, banned words and calls, no large files, a fragment per change.

    check_style.py [ROOT]

Prints the ten longest functions on every run. Exceptions, each with its reason, are in
tools/exceptions.txt; functions over the limit may be at most 2 % of all.
"""

import re
import sys

import checks
from source_tree import Violation, functions

MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 500
MAX_COLUMNS = 100
MAX_FILE_BYTES = 512 * 1024
MAX_LONG_SHARE = 0.02
N_LONGEST = 10

# (what, pattern, top folders). They look at code: comments and literals are blank.
BANNED_CODE = [
    ("a noun that says nothing; name the thing",
     re.compile(r"\b\w*(?:Manager|Helper|Utils?|Impl)(?![a-z])\w*\b"),
     ("src", "apps", "tests", "bench")),
    ("getenv: a setting has one home, apps", re.compile(r"\bgetenv\b"), ("src",)),
    ("rand: use a seeded generator", re.compile(r"\b(?:std::)?s?rand\s*\("),
     ("src", "apps", "tests", "bench")),
    ("sleeping in a test", re.compile(r"\b(?:sleep_for|sleep_until|u?sleep|nanosleep)\s*\("),
     ("tests",)),
    ("using namespace", re.compile(r"\busing\s+namespace\b"), ("src", "apps")),
    ("throw: return a Status", re.compile(r"\bthrow\b"), ("src",)),
]

# The pieces are joined here so that this file does not contain what it looks for.
BANNED_TEXT = [
    ("an unfinished note", re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")),
    ("fast-math changes bits", re.compile(r"-ff" r"ast-math|-Of" r"ast\b")),
    ("the address of a registry",
     re.compile(r"py" r"pi\.org|python" r"hosted\.org|hugging" r"face\.co")),
    ("a path of one machine", re.compile(r"(?<![\w.~/-])/(?:ro" r"ot|wo" r"rk|ho" r"me)/")),
]
VERBATIM = ("LICENSE", "eval/documents/", "eval/prompts/", "third_party/licences/")


def check_limits(tree):
    for path in tree.texts():
        if path.endswith(".md") or path.startswith(VERBATIM):
            continue
        lines = tree.text(path).splitlines()
        if len(lines) > MAX_FILE_LINES:
            yield Violation(path, 0, "file-length", f"{len(lines)} lines, over {MAX_FILE_LINES}")
        for number, line in enumerate(lines, start=1):
            if len(line) > MAX_COLUMNS and "#include" not in line and path != checks.EXCEPTIONS:
                yield Violation(path, number, "columns", f"{len(line)} columns, over {MAX_COLUMNS}")


def all_functions(tree):
    return [function for path in tree.cxx() for function in functions(path, tree.text(path))]


def check_function_length(tree):
    everything = all_functions(tree)
    long = [function for function in everything if function.n_lines > MAX_FUNCTION_LINES]
    for function in long:
        yield Violation(function.path, function.line, "function-length",
                        f"{function.name} has {function.n_lines} lines, over {MAX_FUNCTION_LINES}",
                        function.name)
    if len(long) > MAX_LONG_SHARE * len(everything):
        yield Violation(".", 0, "function-share",
                        f"{len(long)} of {len(everything)} functions are over the limit")


def check_banned_code(tree):
    for what, pattern, folders in BANNED_CODE:
        for path in tree.cxx(*folders):
            for number, line in tree.code_lines(path):
                match = pattern.search(line)
                if match:
                    yield Violation(path, number, "banned", f"'{match.group(0)}': {what}")


def check_banned_text(tree):
    for path in tree.texts():
        if path.startswith(VERBATIM):
            continue
        for number, line in tree.lines(path):
            for what, pattern in BANNED_TEXT:
                match = pattern.search(line)
                if match:
                    yield Violation(path, number, "banned", f"'{match.group(0)}': {what}")


def check_headers(tree):
    """A header guards itself, and opens with what it is for."""
    for path in tree.cxx("src", "apps", "tests"):
        if path.endswith(".h"):
            text = tree.text(path)
            if "#pragma once" not in text:
                yield Violation(path, 0, "header", "has no #pragma once")
            if not text.startswith("//"):
                yield Violation(path, 1, "header", "does not open with a comment on what it is for")


def check_own_header_first(tree):
    """x.cc includes x.h before anything else: a reader knows where to look. (That every header
    compiles alone is shown by the build target headers_alone.)"""
    files = set(tree.files)
    for path in tree.cxx("src"):
        header = path[:-len(".cc")] + ".h"
        if path.endswith(".cc") and header in files:
            included = re.search(r'^#include [<"](.*)[>"]', tree.text(path), re.MULTILINE)
            if not included or "src/" + included.group(1) != header:
                yield Violation(path, 0, "header", f"does not include {header} first")


def check_sizes(tree):
    for path in tree.files:
        n_bytes = (tree.root / path).stat().st_size
        if n_bytes > MAX_FILE_BYTES:
            yield Violation(path, 0, "size", f"{n_bytes} bytes, over {MAX_FILE_BYTES}")


def check_changes(tree):
    """changes/ holds one file a change, of one line that a user can read."""
    fragments = [path for path in tree.files
                 if path.startswith("changes/") and path != "changes/README.md"]
    if not fragments:
        yield Violation("changes", 0, "changes", "holds no fragment")
    for path in fragments:
        if not path.endswith(".md") or len(tree.text(path).strip().splitlines()) != 1:
            yield Violation(path, 0, "changes", "is not one line in a .md file")


def print_longest(tree):
    everything = all_functions(tree)
    longest = sorted(everything, key=lambda function: -function.n_lines)[:N_LONGEST]
    print(f"{len(everything)} functions; the longest:")
    for function in longest:
        print(f"  {function.n_lines:4} lines  {function.path}:{function.line}  {function.name}")


CHECKS = [check_limits, check_function_length, check_banned_code, check_banned_text, check_headers,
          check_own_header_first, check_sizes, check_changes]
RULES = {"file-length", "columns", "function-length", "function-share", "banned", "header", "size",
         "changes"}

if __name__ == "__main__":
    sys.exit(checks.main(CHECKS, RULES, print_longest))
