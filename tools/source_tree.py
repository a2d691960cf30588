"""What the checks know about the tree: its files, their text, and the functions in a C++ file."""

import dataclasses
import os
import pathlib
import re
import subprocess

CXX_SUFFIXES = (".h", ".cc", ".inl", ".cu")
TEXT_SUFFIXES = CXX_SUFFIXES + (".py", ".cmake", ".txt", ".md", ".json", ".sh")
TEXT_NAMES = ("dev", "run", "NOTICE", ".clang-format", ".clang-tidy", ".gitignore")
BUILD_FOLDERS = ("build", "out", ".git", "__pycache__")


@dataclasses.dataclass(frozen=True)
class Violation:
    path: str
    line: int  # from 1; 0 for the file as a whole
    rule: str
    message: str
    function: str = ""

    @property
    def subject(self):
        """What an exception names: the path, or path:Function."""
        return f"{self.path}:{self.function}" if self.function else self.path

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


@dataclasses.dataclass(frozen=True)
class Function:
    path: str
    line: int
    name: str
    n_lines: int


def list_files(root):
    """Files that are, or would be, committed; relative paths, sorted."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                   "--exclude-standard"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return sorted(name for name in output.split("\0") if name and (root / name).is_file())
    names = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in BUILD_FOLDERS]
        names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(names)


class SourceTree:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = list_files(self.root)
        self._text = {}

    def text(self, path):
        if path not in self._text:
            self._text[path] = (self.root / path).read_text(errors="replace")
        return self._text[path]

    def lines(self, path):
        """(number from 1, line) of a file."""
        return enumerate(self.text(path).splitlines(), start=1)

    def code_lines(self, path):
        """The same for C++ without comments and the insides of literals."""
        return enumerate(strip_cxx(self.text(path)).splitlines(), start=1)

    def texts(self):
        return [path for path in self.files
                if path.endswith(TEXT_SUFFIXES) or path.rsplit("/", 1)[-1] in TEXT_NAMES]

    def cxx(self, *folders):
        """C++ files, of the given top folders only if any are given."""
        return [path for path in self.files if path.endswith(CXX_SUFFIXES)
                and (not folders or path.split("/")[0] in folders)]

    def rooms(self):
        """Folders of src/ that hold something."""
        return sorted({path.split("/")[1] for path in self.files
                       if path.startswith("src/") and path.count("/") >= 2})


_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"                                 # comments
    r'|R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"'             # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                               # strings
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.DOTALL)   # characters, but not the 1'000 of numbers


def strip_cxx(text):
    """Blanks comments and literals; what is left keeps its line."""
    def blank(match):
        literal = "" if match.group(0).startswith("/") else '""'
        return literal + "\n" * match.group(0).count("\n")
    return _TOKEN.sub(blank, text)


_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_ACCESS = re.compile(r"^\s*(?:(?:public|private|protected)\s*:\s*)+")
_SCOPE = re.compile(r"^(?:template\s*<.*?>\s*)?"
                    r"(?:(?:class|struct|union|enum|namespace)\b|extern\s)", re.DOTALL)
_NAME = re.compile(r"([~\w:]+|operator\s*\S+?)\s*\(")


def _scope_kind(header):
    if _SCOPE.match(header):
        return "scope"
    return "function" if "(" in header else "other"


def functions(path, text):
    """The outermost functions of a C++ file, found by their braces. It relies on our formatting: a
    space precedes the brace of a body, and not that of an initialiser."""
    code = _PREPROCESSOR.sub(lambda match: "\n" * match.group(0).count("\n"), strip_cxx(text))
    found, open_scopes, line, header_start = [], [], 1, 0
    for index, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            header = _ACCESS.sub("", code[header_start:index]).lstrip()
            is_initialiser = code[index - 1:index] not in (" ", "\n", "")
            is_inside = any(kind == "function" for kind, _, _ in open_scopes)
            kind = "other" if is_initialiser or is_inside else _scope_kind(header)
            open_scopes.append((kind, line - header.count("\n"), header))
            if not is_initialiser:
                header_start = index + 1
        elif char == "}":
            kind, first_line, header = open_scopes.pop() if open_scopes else ("other", line, "")
            if kind == "function":
                name = _NAME.search(header)
                found.append(Function(path, first_line, name.group(1) if name else "?",
                                      line - first_line + 1))
            if kind != "other":
                header_start = index + 1
        elif char == ";":
            header_start = index + 1
    return found
