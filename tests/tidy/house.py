#!/usr/bin/env python3
"""house.py - the shape of the tree: cycles of files and of rooms, structures and folders that are
too large. It uses ctags, and looks for calls.

Usage: tests/tidy/house.py [--edges FROM TO] ROOT
    prints one line a finding: the check (folder, structure, cycle, rooms or floor), a tab, the
    fault; and nothing if all is well

--edges lists, in place of that, the calls from one folder or file to another.

A file uses another if one of its functions names an external function that the other defines. A
header's inline functions count for its folder. Functions that a table names count, too: a call
through a table is a use all the same.
"""
import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys

FOLDERS = ("xtypes", "xseg", "peers", "tools", "bench", "tests")
MEMBERS_MAX = 40
FILES_MAX = 20
# Tables of options have one member an option, all filled in before the program begins its work.
# Groups in them would say nothing that the names do not say.
OPTION_TABLES = {"xb_options"}
# What is larger today than it should be. Each of these may only shrink, and go.
FILES_TODAY = {"xseg": 31}
# Files of one room that use each other.
CYCLE_MAX = {"peers/cached": 4}


def run_ctags(files):
    """All functions and members, as ctags knows them."""
    out = subprocess.run(
        ["ctags", "--languages=C", "--langmap=C:.c.h", "--c-kinds=fsmu", "--fields=+neKSZ",
         "--output-format=json", "-f", "-", "-L", "-"],
        input="\n".join(files), capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def strip(text):
    """The text without comments and without what stands in quotes; line numbers stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


CALL = re.compile(r"(?<![.>\w])([a-z]\w+)\s*\(")


def functions_named(text):
    """The names that may be those of functions: called, or a value; no member, label or field. All
    names of a file at once, since a search for each of them takes a hundred times as long."""
    values = re.findall(r"[=,(&?:]\s*([a-z]\w+)\b", text)
    no_labels = re.findall(r"(?<![.>\w])([a-z]\w+)\b(?!\s*[:=])", text)
    return (set(CALL.findall(text)) | set(values)).intersection(no_labels)


def called_inline(text):
    """What a header calls within braces, and not only declares."""
    depth = 0
    inside = []
    for part in re.split(r"([{}])", text):
        if part in ("{", "}"):
            depth += 1 if part == "{" else -1
        elif depth > 0:
            inside.append(part)
    return set(CALL.findall(" ".join(inside)))


def is_test(path):
    return path.startswith("tests/")


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = sorted(str(p.relative_to(root)) for f in FOLDERS
                            for p in (root / f).rglob("*.[ch]"))
        self.text = {f: strip((root / f).read_text()) for f in self.files if not is_test(f)}
        self.tags = run_ctags([str(root / f) for f in self.text])
        self.static = collections.defaultdict(set)      # by file
        self.external = collections.defaultdict(list)   # function: files
        for t in self.tags:
            if t["kind"] != "function":
                continue
            f = str(pathlib.Path(t["path"]).relative_to(root))
            if "file" in t or re.search(r"\bstatic\b", t["pattern"]) or f.endswith(".h"):
                self.static[f].add(t["name"])
            if f.endswith(".h") or "file" not in t:
                self.external[t["name"]].append(f)
        self.uses = self.find_uses()
        self.drop_upcalls()

    def drop_upcalls(self):
        """What a room's header declares for a room above to define, that room may call, and so may
        the rooms between the two."""
        floors, _, upcalls = read_floors(self.root)
        for header in upcalls:
            floor = floor_of(header, floors)[1]
            names = set(re.findall(r"^[a-z][^\n(;]*?\b(\w+)\(", self.text.get(header, ""), re.M))
            for (user, used), called in list(self.uses.items()):
                if owner(user) == owner(header) and called & names and \
                        floor <= floor_of(user, floors)[1] < floor_of(used, floors)[1]:
                    called -= names
                    if not called:
                        del self.uses[user, used]

    def find_uses(self):
        """(user, used): the functions that user names."""
        uses = collections.defaultdict(set)
        for f, text in self.text.items():
            names = functions_named(text)
            if f.endswith(".h"):
                names &= called_inline(text)
            for name in names:
                to = next((t for t in self.external.get(name, ()) if may_see(f, t)), None)
                if not to or to == f or name in self.static[f]:
                    continue
                uses[f, to].add(name)
        return uses


def cycles(edges):
    """The strongly connected components of more than one (Tarjan)."""
    graph = collections.defaultdict(set)
    for a, b in edges:
        graph[a].add(b)
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                out.append(sorted(part))
    sys.setrecursionlimit(10000)
    for v in list(graph):
        if v not in index:
            visit(v)
    return out


def may_see(user, used):
    """Whether it is the same program or library, or a library of all; others share names only."""
    return owner(used) == owner(user) or used.startswith(
        ("xtypes/", "xseg/", "peers/common/", "bench/common/"))


def owner(path):
    """The peer, tool or library that a file belongs to."""
    part = path.split("/")
    return "/".join(part[:2]) if part[0] in ("peers", "tools", "bench") else part[0]


def read_floors(root):
    """The floor of each folder, the exceptions (from, to), and the headers of upcalls."""
    floors, excepted, upcalls = {}, set(), set()
    for line in (root / "tests/tidy/floors").read_text().splitlines():
        part = line.split(None, 3)
        if not part or part[0] == "#" or line.startswith("#"):
            continue
        if part[0] == "except":
            excepted.add((part[1], part[2]))
        elif part[0] == "upcalls":
            upcalls.add(part[1])
        else:
            floors[part[1]] = int(part[0])
    return floors, excepted, upcalls


def floor_of(path, floors):
    """The floor of a file's folder, or of the nearest folder above it that has one."""
    folder = path.rsplit("/", 1)[0]
    while folder not in floors and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder, floors.get(folder)


def find_includes(tree):
    """(user, used, "") for each header of ours that a file includes."""
    known = set(tree.files)
    for f in tree.files:
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', (tree.root / f).read_text(), re.M):
            beside = f.rsplit("/", 1)[0] + "/" + name
            yield f, beside if beside in known else name, "includes"


def check_rooms(tree, floors):
    """Each folder with sources has a line of its own, or is below one that has."""
    for room in sorted({f.rsplit("/", 1)[0] for f in tree.files}):
        if floor_of(room + "/", floors)[1] is None:
            yield "floor", (f"{room} is not in tests/tidy/floors: add a line of its floor, its "
                            "name and its subject, then run tests/tidy/tables.py --write")


def check_floors(tree):
    floors, excepted, _ = read_floors(tree.root)
    yield from check_rooms(tree, floors)
    needed = set()
    calls = ((a, b, "calls " + " ".join(sorted(n)) + " of") for (a, b), n in tree.uses.items())
    for user, used, how in itertools.chain(find_includes(tree), calls):
        (a, low), (b, high) = floor_of(user, floors), floor_of(used, floors)
        if low is None or high is None:
            continue
        if a != b and low <= high:
            needed.add((a, b))
            if (a, b) not in excepted:
                yield "floor", (f"{user} {how} {used}, which is not on a lower floor: {a} has "
                                f"floor {low}, {b} {high}; see tests/tidy/floors")
    for a, b in sorted(excepted - needed):
        yield "floor", f"the exception of {a} {b} is not needed any more: take it out"


def findings(tree):
    files = collections.Counter(f.rsplit("/", 1)[0] for f in tree.files if f.endswith(".c"))
    for folder, nr in sorted(files.items()):
        if nr > FILES_TODAY.get(folder, FILES_MAX):
            yield "folder", f"{folder} has {nr} .c files; {FILES_MAX} are the most"
    members = collections.Counter()
    for t in tree.tags:
        if t["kind"] == "member" and t.get("scopeKind") == "struct":
            f = str(pathlib.Path(t["path"]).relative_to(tree.root))
            members[f, t["scope"]] += 1
    for (f, name), nr in sorted(members.items()):
        if name not in OPTION_TABLES and nr > MEMBERS_MAX:
            yield "structure", f"{f}: struct {name} has {nr} members; {MEMBERS_MAX} are the most"
    source = [(a, b) for a, b in tree.uses if a.endswith(".c") and b.endswith(".c")
              and owner(a) == owner(b)]
    for part in cycles(source):
        whose = owner(part[0])
        most = CYCLE_MAX.get(whose, 1)
        if whose.startswith(("peers/", "bench/xbench")) and len(part) > most:
            yield "cycle", f"{whose}: {len(part)} files are one cycle: {' '.join(part)}"
    rooms = [(a.rsplit("/", 1)[0], b.rsplit("/", 1)[0]) for a, b in tree.uses
             if a.rsplit("/", 1)[0] != b.rsplit("/", 1)[0]]
    for part in cycles(rooms):
        if len(part) > 1:
            yield "rooms", f"{len(part)} rooms are one cycle: {' '.join(part)}"
    yield from check_floors(tree)


def main(args):
    edges = args[:1] == ["--edges"]
    tree = Tree(pathlib.Path(args[-1]).resolve())
    if edges:
        for (a, b), names in sorted(tree.uses.items()):
            if a.startswith(args[1]) and b.startswith(args[2]):
                print(f"{a} -> {b}: {' '.join(sorted(names))}")
        return 0
    for check, text in findings(tree):
        print(f"{check}\t{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
