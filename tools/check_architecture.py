#!/usr/bin/env python3
"""The architecture as a test: who includes whom, which headers are reserved, what mirrors what.

    check_architecture.py [ROOT]

src/layers.txt is the one list of who may include whom. Exceptions, each with its reason, are in
tools/exceptions.txt.
"""

import re
import sys

import checks
from source_tree import Violation

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
NAMED_PATH = re.compile(r"`((?:src|tests|apps|bench|tools|docs|eval)/[\w./-]*)`")
ISA_SUFFIX = re.compile(r"_(ref|avx2|avx512|avx512_vnni)$")
ROOM_CALL = re.compile(r"^vericache_room\((\w+)([^)]*)\)", re.MULTILINE)

# Header patterns that belong to one place: (what, pattern, folders that may include it).
RESERVED_HEADERS = [
    ("instruction-set header",
     re.compile(r"^(\w*mmintrin|\w*intrin|arm_neon|arm_sve|cpuid)\.h$"), ("src/kernels/",)),
    ("ggml or llama.cpp header",
     re.compile(r"^(ggml|gguf|llama)[\w-]*\.h$|^(common|chat|sampling|json-schema-to-grammar)\.h$"),
     ("src/model/",)),
    ("JSON or HTTP header",
     re.compile(r"^nlohmann/|^httplib\.h$"), ("src/model/", "src/server/", "apps/")),
]


def read_layers(tree):
    """{room: rooms it may include}, from src/layers.txt."""
    layers = {}
    for _, line in tree.lines("src/layers.txt"):
        if line.strip() and not line.startswith("#"):
            room, _, allowed = line.partition(":")
            layers[room.strip()] = set(allowed.split())
    return layers


def includes(tree, path):
    for number, line in tree.lines(path):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_layers(tree):
    """An include of ours names a file by its path from src/, in a room that layers.txt allows."""
    layers = read_layers(tree)
    for room in tree.rooms():
        if room not in layers:
            yield Violation("src/layers.txt", 0, "layers", f"says nothing about src/{room}")
    for path in tree.cxx("src"):
        room = path.split("/")[1]
        for number, quote, header in includes(tree, path):
            target = header.split("/")[0]
            if quote != '"' or path.count("/") < 2:
                continue
            if target not in layers or "/" not in header:
                if room != "model":  # the one room that quotes headers of others
                    yield Violation(path, number, "layers", f'"{header}" names no room')
            elif target != room and target not in layers.get(room, ()):
                yield Violation(path, number, "layers", f"{room} may not include {target}")
            elif f"src/{header}" not in tree.files:
                yield Violation(path, number, "layers", f"there is no src/{header}")


def check_no_cycles(tree):
    layers = read_layers(tree)
    done = set()
    while ready := [room for room in layers if room not in done and layers[room] <= done]:
        done.update(ready)
    for room in sorted(set(layers) - done):
        yield Violation("src/layers.txt", 0, "layers", f"{room}: a cycle, or an unknown room")


def check_cmake(tree):
    """DEPS of vericache_room() say the same as layers.txt, for the rooms that CMake knows."""
    layers = read_layers(tree)
    rooms = {name: arguments for name, arguments in ROOM_CALL.findall(tree.text("CMakeLists.txt"))}
    for name in tree.rooms():
        if name not in rooms:
            yield Violation("CMakeLists.txt", 0, "cmake", f"src/{name} is not built")
    for name, arguments in rooms.items():
        match = re.search(r"\bDEPS\s+([\w\s]*?)(?:\bLIBS\b|$)", arguments)
        deps = set(match.group(1).split()) if match else set()
        expected = layers.get(name, set()) & set(rooms)
        if deps != expected:
            yield Violation("CMakeLists.txt", 0, "cmake", f"DEPS of {name} are {sorted(deps)}, "
                            f"src/layers.txt says {sorted(expected)}")


def check_reserved_headers(tree):
    for path in tree.cxx("src", "apps"):
        for number, _, header in includes(tree, path):
            for what, pattern, folders in RESERVED_HEADERS:
                if pattern.search(header) and not path.startswith(folders):
                    yield Violation(path, number, "headers", f"{what} outside {', '.join(folders)}")


def check_mirror(tree):
    """src/x/y.cc has tests/x/y_test.cc; the instruction sets of one operation share the test that
    compares them with the reference."""
    files = set(tree.files)
    for path in tree.cxx("src"):
        if path.endswith(".cc"):
            name = ISA_SUFFIX.sub("", path[len("src/"):-len(".cc")])
            if f"tests/{name}_test.cc" not in files:
                yield Violation(path, 0, "mirror", f"there is no tests/{name}_test.cc")


def check_map(tree):
    """ARCHITECTURE.md names every room and every top folder, and no room that does not exist."""
    if "ARCHITECTURE.md" not in tree.files:
        yield Violation("ARCHITECTURE.md", 0, "map", "is missing")
        return
    text = tree.text("ARCHITECTURE.md")
    tops = {path.split("/")[0] for path in tree.files if "/" in path and not path.startswith(".")}
    for name in sorted(tops) + [f"src/{room}" for room in tree.rooms()]:
        if f"`{name}/`" not in text:
            yield Violation("ARCHITECTURE.md", 0, "map", f"does not mention `{name}/`")
    for number, line in tree.lines("ARCHITECTURE.md"):
        for name in NAMED_PATH.findall(line):
            if not any(path == name or path.startswith(name.rstrip("/") + "/")
                       for path in tree.files):
                yield Violation("ARCHITECTURE.md", number, "map", f"`{name}` does not exist")


CHECKS = [check_layers, check_no_cycles, check_cmake, check_reserved_headers, check_mirror,
          check_map]
RULES = {"layers", "cmake", "headers", "mirror", "map"}

if __name__ == "__main__":
    sys.exit(checks.main(CHECKS, RULES))
