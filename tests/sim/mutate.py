#!/usr/bin/env python3
"""mutate.py - puts the bug that a mutant describes into a tree.

Usage: tests/sim/mutate.py [--check] TREE MUTANT...

A mutant names functions, not files, so that it survives when code moves to another file. Its text:

    The sentence that says what the bug is.
    test: unit/NAME                     (optional: this test must fail, in place of a seed)
    sim: --OPTION ...                   (in its place, optional: with these options of the simulator)
    seed: N                             (optional: a seed that failed once, and is tried first)
    @@ FUNCTION
     a line of the function, for context
    -a line that goes
    +a line that comes

The context and removed lines of a hunk must stand in a row in FUNCTION. The place must be the only
one in all functions of that name in xtypes, xseg and peers. Space at the beginning of a line does
not count in that search. FUNCTION may also be a macro, a structure, or the variable of a table.

--check changes nothing. It gives the reason for each mutant that does not fit, and ends with 1.
"""
import pathlib
import re
import sys

ROOMS = ("xtypes", "xseg", "peers")


class Misfit(Exception):
    """A mutant that does not fit the code."""


def read_sources(tree):
    """The lines of each source, by path."""
    paths = (p for room in ROOMS for p in sorted((tree / room).rglob("*.[ch]")))
    return {path: path.read_text().split("\n") for path in paths}


def find_definitions(sources):
    """By name, all definitions: (path, first line, line after the last)."""
    found = {}
    begin = re.compile(r"^(?![\s*/}#]|typedef\b)[^;]*?\b(\w+)(?:\([^;]*|(?:\[[^]]*\])* = \{)$")
    structure = re.compile(r"^(?:struct|union|enum) (\w+) \{$")
    macro = re.compile(r"^#\s*define (\w+)")
    for path, lines in sources.items():
        for nr, line in enumerate(lines):
            if match := macro.match(line):
                end = nr
                while lines[end].endswith("\\"):
                    end += 1
            elif match := structure.match(line) or begin.match(line):
                end = nr
                while end < len(lines) - 1 and not lines[end].startswith("}"):
                    if end > nr and begin.match(lines[end]):
                        break       # the first was a declaration of several lines
                    end += 1
                if not lines[end].startswith("}"):
                    continue
            else:
                continue
            found.setdefault(match[1], []).append((path, nr, end + 1))
    return found


def read_mutant(path):
    """Its hunks: (function, lines), where a line begins with ' ', '-' or '+'."""
    hunks = []
    for line in path.read_text().splitlines()[1:]:
        if line.startswith("@@ "):
            hunks.append((line[3:].strip(), []))
        elif hunks and line[:1] in ("", " ", "-", "+"):
            hunks[-1][1].append(line or " ")
        elif hunks or not re.match(r"test: unit/\w+$|sim: --|seed: \d+$", line):
            raise Misfit(f"neither a test, options, a seed, nor a line of a hunk: {line}")
    if not hunks:
        raise Misfit("no hunk")
    return hunks


def check_test(path, tree):
    """The test that it names is there."""
    named = re.search(r"^test: unit/(\w+)$", path.read_text(), re.MULTILINE)
    if named and not any(tree.glob(f"tests/unit/*/{named[1]}.c")):
        raise Misfit(f"there is no unit/{named[1]}")


def place_of(hunk, sources, definitions):
    """The one place that fits: (path, line)."""
    name, lines = hunk
    wanted = [line[1:].strip() for line in lines if line[:1] in (" ", "-")]
    if not wanted:
        raise Misfit(f"{name}: the hunk has no line that stands or goes")
    if name not in definitions:
        raise Misfit(f"there is no {name}")
    places = []
    for path, first, end in definitions[name]:
        body = [line.strip() for line in sources[path][first:end]]
        places += [(path, first + at) for at in range(len(body) - len(wanted) + 1)
                   if body[at:at + len(wanted)] == wanted]
    if len(places) != 1:
        raise Misfit(f"{name}: its lines stand there {len(places)} times")
    return places[0]


def mutate(path, sources, definitions):
    """The changed sources of one mutant, by path."""
    changed, moved = {}, {}
    for hunk in read_mutant(path):
        source, at = place_of(hunk, sources, definitions)
        lines = changed.setdefault(source, list(sources[source]))
        at += sum(by for after, by in moved.get(source, []) if after < at)
        first = at
        for line in hunk[1]:
            if line[:1] == "+":
                lines.insert(at, line[1:])
                at += 1
            elif line[:1] == "-":
                del lines[at]
            else:
                at += 1
        gone = sum(line[:1] in (" ", "-") for line in hunk[1])
        moved.setdefault(source, []).append((first, at - first - gone))
    return changed


def main(args):
    check = args[:1] == ["--check"]
    tree, *mutants = map(pathlib.Path, args[check:])
    sources = read_sources(tree)
    definitions = find_definitions(sources)
    failed = False
    for path in mutants:
        try:
            changed = mutate(path, sources, definitions)
            if check:
                check_test(path, tree)
        except Misfit as why:
            print(f"{path}: {why}")
            failed = True
            continue
        if not check:
            for source, lines in changed.items():
                source.write_text("\n".join(lines))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
