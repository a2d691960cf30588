#!/usr/bin/env python3
"""Each check is shown to fail: a small healthy tree is broken in one way, and the rule says so."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import check_architecture
import check_style
import checks
from source_tree import SourceTree, functions, strip_cxx

HEALTHY = {
    "CMakeLists.txt": "vericache_room(base)\nvericache_room(kernels DEPS base)\n"
                      "vericache_room(model DEPS base kernels LIBS vericache_llama)\n",
    "ARCHITECTURE.md": "`src/` `src/base/` `src/kernels/` `src/model/` `tests/` `apps/` "
                       "`changes/`\n",
    "changes/first.md": "The first change.\n",
    "src/layers.txt": "base:\nkernels: base\nmodel: base kernels\nsched: base\n",
    "src/base/word.h": "// A word.\n#pragma once\nint Word();\n",
    "src/base/word.cc": '#include "base/word.h"\nint Word() { return 1; }\n',
    "src/kernels/dot.h": '// A dot.\n#pragma once\n#include "base/word.h"\n',
    "src/kernels/dot_avx2.cc": '#include "kernels/dot.h"\n#include <immintrin.h>\n',
    "src/model/file.cc": '#include "kernels/dot.h"\n#include "ggml.h"\n',
    "apps/main.cc": "int main() { return 0; }\n",
    "tests/base/word_test.cc": "TEST(Word, IsOne) { EXPECT_EQ(Word(), 1); }\n",
    "tests/kernels/dot_test.cc": "\n",
    "tests/model/file_test.cc": "\n",
}
LONG_FUNCTION = "void Long() {\n" + "  Work();\n" * 80 + "}\n"


def violations(changes):
    """What both programs say about the healthy tree with some files replaced, added or, by None,
    removed."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**HEALTHY, **changes}.items():
            if text is not None:
                file = pathlib.Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        tree = SourceTree(root)
        return (checks.find_violations(tree, check_architecture.CHECKS, check_architecture.RULES)
                + checks.find_violations(tree, check_style.CHECKS, check_style.RULES))


class ChecksTest(unittest.TestCase):
    def assert_caught(self, rule, changes, fragment=""):
        found = [str(violation) for violation in violations(changes)]
        self.assertTrue(any(f"[{rule}]" in text and fragment in text for text in found),
                        f"expected [{rule}] {fragment}, found {found}")

    def test_accepts_a_healthy_tree(self):
        self.assertEqual(violations({}), [])

    def test_layers(self):
        up = '// Up.\n#pragma once\n#include "model/file.h"\n'
        self.assert_caught("layers", {"src/base/up.h": up}, "base may not include model")
        self.assert_caught("layers", {"src/base/up.h": up.replace("model/", "")}, "names no room")
        self.assert_caught("layers", {"src/base/up.h": up.replace("model/", "base/")}, "there is")
        self.assert_caught("layers", {"src/new/new.h": "// New.\n#pragma once\n"}, "says nothing")
        self.assert_caught("layers", {"src/layers.txt": "base: kernels\nkernels: base\n"}, "cycle")

    def test_cmake(self):
        text = HEALTHY["CMakeLists.txt"]
        self.assert_caught("cmake", {"CMakeLists.txt": text.replace("kernels DEPS", "kernels # ")})
        self.assert_caught("cmake", {"CMakeLists.txt": text.replace("(base)", "(base DEPS model)")})
        self.assert_caught("cmake", {"CMakeLists.txt": "vericache_room(base)\n"}, "is not built")

    def test_reserved_headers(self):
        for header in ("<immintrin.h>", "<cpuid.h>", '"ggml.h"', "<llama-cpp.h>", '"chat.h"',
                       "<nlohmann/json.hpp>", "<httplib.h>"):
            self.assert_caught("headers", {"src/base/word.cc": f"#include {header}\n"})
        self.assert_caught("headers", {"apps/main.cc": '#include "llama.h"\n'})

    def test_mirror(self):
        self.assert_caught("mirror", {"tests/base/word_test.cc": None}, "src/base/word.cc")
        self.assert_caught("mirror", {"tests/kernels/dot_test.cc": None}, "src/kernels/dot_avx2.cc")

    def test_map(self):
        text = HEALTHY["ARCHITECTURE.md"]
        self.assert_caught("map", {"ARCHITECTURE.md": None}, "missing")
        self.assert_caught("map", {"ARCHITECTURE.md": text.replace("`src/base/`", "")})
        self.assert_caught("map", {"ARCHITECTURE.md": text.replace("`apps/`", "")})
        self.assert_caught("map", {"ARCHITECTURE.md": text + "`src/gone/`"}, "does not exist")

    def test_limits(self):
        self.assert_caught("function-length", {"apps/main.cc": LONG_FUNCTION}, "Long has 82 lines")
        self.assert_caught("function-share", {"apps/main.cc": LONG_FUNCTION})
        self.assert_caught("file-length", {"apps/main.cc": "\n" * 501})
        self.assert_caught("columns", {"apps/main.cc": "//" + "x" * 99})
        self.assert_caught("size", {"tests/data.bin": "x" * (512 * 1024 + 1)})

    def test_banned_code(self):
        for code in ("class KvManager;", "struct ParseHelper;", "int StringUtil();",
                     "class FooImpl {};", 'auto v = std::getenv("A");', "int x = std::rand();",
                     "using namespace std;", "throw 1;"):
            self.assert_caught("banned", {"src/base/word.cc": code + "\n"})
        for code in ("std::this_thread::sleep_for(x);", "usleep(5);"):
            self.assert_caught("banned", {"tests/base/word_test.cc": code + "\n"})
        harmless = '// the KvManager of others\nauto s = "getenv";\nint Implement(int utility);\n'
        self.assertEqual(violations({"apps/main.cc": harmless}), [])

    def test_banned_text(self):
        for text in ("TO" "DO: later", "FIX" "ME", "-ff" "ast-math", "from py" "pi.org",
                     "cd /ro" "ot/x", "see hugging" "face.co/model"):
            self.assert_caught("banned", {"ARCHITECTURE.md": HEALTHY["ARCHITECTURE.md"] + text})
            self.assert_caught("banned", {"src/base/word.cc": f"// {text}\n"})

    def test_headers(self):
        self.assert_caught("header", {"src/base/word.h": "// A word.\nint Word();\n"}, "pragma")
        self.assert_caught("header", {"src/base/word.h": "#pragma once\nint Word();\n"}, "comment")
        late = '#include <vector>\n#include "base/word.h"\n'
        self.assert_caught("header", {"src/base/word.cc": late}, "first")

    def test_changes(self):
        self.assert_caught("changes", {"changes/first.md": None}, "no fragment")
        self.assert_caught("changes", {"changes/first.md": "Two\nlines.\n"})

    def test_exceptions(self):
        allow = {checks.EXCEPTIONS: "mirror src/base/word.cc Its test is elsewhere.\n",
                 "ARCHITECTURE.md": HEALTHY["ARCHITECTURE.md"] + "`tools/`"}
        self.assertEqual(violations({**allow, "tests/base/word_test.cc": None}), [])
        self.assert_caught("exceptions", allow, "excuses nothing")
        allow = {checks.EXCEPTIONS: "mirror src/base/word.cc\n"}
        self.assert_caught("exceptions", allow, "no reason")

    def test_the_longest_functions_are_printed(self):
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(out):
            (pathlib.Path(root) / "a.cc").write_text(LONG_FUNCTION)
            check_style.print_longest(SourceTree(root))
        self.assertIn("82 lines  a.cc:1  Long", out.getvalue())


class SourceTest(unittest.TestCase):
    def test_literals_and_comments_are_blank(self):
        text = 'int a = 1\'000; // "x"\nauto s = "/*"; char c = \'"\'; auto r = R"(}\n)";\nint b;'
        code = strip_cxx(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertNotIn("}", code)
        self.assertIn("int a = 1'000;", code)
        self.assertIn("int b;", code)

    def test_functions_are_found_with_their_lengths(self):
        text = """
namespace a {
struct alignas(64) S : Base<int> {
 public:
  S() : x_{1}, y_(2) {}
  int Get() const { return x_; }
  int x_ = 0;
  int table[2] = {1, 2};
};
enum class E : int { kA, kB };
template <typename T>
T Twice(T value,
        T other = T{}) {
  auto f = [&](int i) {
    if (i) { return 1; }
    return 2;
  };
  return value;
}
#define MACRO(x) \\
  { x }
std::vector<int> operator+(A a, B b) { return {1, 2}; }
}  // namespace a
"""
        found = [(f.name, f.line, f.n_lines) for f in functions("x.cc", text)]
        self.assertEqual(found, [("S", 5, 1), ("Get", 6, 1), ("Twice", 11, 9),
                                 ("operator+", 22, 1)])


if __name__ == "__main__":
    unittest.main()
