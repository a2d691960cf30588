"""Running checks: a check is a generator of violations over a tree; exceptions carry their reason.

tools/exceptions.txt holds one exception a line: RULE  PATH[:FUNCTION]  REASON. One that excuses
nothing fails too, so that the list only shrinks by itself.
"""

import dataclasses
import pathlib
import sys

from source_tree import SourceTree, Violation

EXCEPTIONS = "tools/exceptions.txt"


@dataclasses.dataclass
class Exemption:
    line: int
    rule: str
    what: str
    is_used: bool = False


def read_exceptions(tree):
    """Returns (exemptions, violations): a line without a reason is a violation."""
    exemptions, violations = [], []
    if EXCEPTIONS in tree.files:
        for number, line in tree.lines(EXCEPTIONS):
            words = line.split(None, 2)
            if not words or line.startswith("#"):
                continue
            if len(words) == 3:
                exemptions.append(Exemption(number, words[0], words[1]))
            else:
                violations.append(Violation(EXCEPTIONS, number, "exceptions", "no reason given"))
    return exemptions, violations


def find_violations(tree, checks, rules):
    """What the checks find in the tree, less what is exempted. `rules` are the names they use."""
    exemptions, violations = read_exceptions(tree)
    for check in checks:
        for violation in check(tree):
            assert violation.rule in rules, violation.rule
            covering = [exemption for exemption in exemptions
                        if (exemption.rule, exemption.what) == (violation.rule, violation.subject)]
            for exemption in covering:
                exemption.is_used = True
            if not covering:
                violations.append(violation)
    for exemption in exemptions:
        if exemption.rule in rules and not exemption.is_used:
            violations.append(Violation(EXCEPTIONS, exemption.line, "exceptions",
                                        f"excuses nothing: {exemption.rule} {exemption.what}"))
    return violations


def main(checks, rules, summary=lambda tree: None):
    """Checks the tree named on the command line, or this one. Returns the exit status."""
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    tree = SourceTree(root)
    violations = find_violations(tree, checks, rules)
    summary(tree)
    for violation in violations:
        print(violation)
    print(f"{len(tree.files)} files, {len(checks)} checks, {len(violations)} violations")
    return 1 if violations else 0
