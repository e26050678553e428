#!/usr/bin/env python3
"""tables.py - puts tables from the sources into the documents, and checks that they are the same.

Usage: tests/tidy/tables.py [--write]
    Without --write: one line for each table in docs that is not its source's; exit 1 if there is one.

In a document, a table stands between two marks, and is replaced as a whole:

    <!-- states from PATH -->     the table of states in the head of that file: from the line with
                                  "from" and "to" on to the next empty line
    <!-- floors -->               the rooms of tests/tidy/floors
    <!-- end -->
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"(<!-- (states from \S+|floors) -->\n).*?(<!-- end -->\n)", re.S)


def states_of(path):
    lines = (ROOT / path).read_text().splitlines()
    out = []
    for line in lines[:200]:
        text = re.sub(r"^ \* ?", "", line).expandtabs(8)
        if not out and not re.match(r"\s+from\s+to\b", text):
            continue
        if out and not text.strip(" *"):
            break
        out.append(text.rstrip())
    if not out:
        raise SystemExit(f"tables.py: {path} has no table of states")
    indent = min(len(t) - len(t.lstrip()) for t in out)
    return "```\n" + "".join(t[indent:] + "\n" for t in out) + "```\n"


def floors():
    out = ["| floor | room | subject |", "|---|---|---|"]
    for line in (ROOT / "tests/tidy/floors").read_text().splitlines():
        part = line.split("\t")
        if re.match(r"\d+\t", line):
            out.append(f"| {part[0]} | `{part[1]}/` | {line.split(None, 2)[2]} |")
    return "\n".join(out) + "\n"


def table(what):
    return floors() if what == "floors" else states_of(what.split()[-1])


def main(args):
    wrong = 0
    for path in sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/design").glob("*.md")]):
        text = path.read_text()
        new = MARK.sub(lambda m: m[1] + table(m[2]) + m[3], text)
        if new == text:
            continue
        if args == ["--write"]:
            path.write_text(new)
        else:
            wrong += 1
            print(f"{path.relative_to(ROOT)}: a table is not that of its source; run "
                  "tests/tidy/tables.py --write")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
