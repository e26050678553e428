#!/usr/bin/env python3
"""prose.py - how plain the prose of the project is: lengths of sentences, bare relative clauses, words
that only this project would use.

Usage: tests/tidy/prose.py [--by-file] [--show] [FILE...]
    prints a line of figures for prose, and one for messages: sentences, the median of their words,
    the part with 30 words or fewer, and "who", "what" and "whose" without a noun before them in
    1,000 words; then a line for each forbidden word. Without FILE: README.md, all of docs, manual
    pages and the heads of sources; and the messages of all programs.
    --by-file: the same for each file. --show: the longest sentences, and where bare words are.

Only sentences count: no code, tables, lists of options, headings or links' targets. A line that has
to stay as it is stands in tests/tidy/prose.except, with its reason.

Messages are errors, log lines, usage and help texts. The rule that finds them: in C each string,
but for those of includes and asserts; in Python each string that documents nothing; in a script the
words behind echo, fail, die and the like. Pieces of a string are joined, a conversion or variable
counts as a word, a command in quotes as one. Each part up to a colon, semicolon or line end is a
sentence, if it has four words or more. Other strings (names, keys, formats) have fewer.
"""
import ast
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The word, and what to write in its place.
FORBIDDEN = {
    "how manieth": "which pass",
    "in the hands of": "held by",
    "is home": "is back at its origin",
    "is at home": "is back at its origin",
    "goes under": "fails",
    "made of nothing": "new",
    "needs not": "need not",
    "as ever": "as before",
    "nobody's": "unowned",
    "somebody's": "another's",
    "whoever": "the one that",
    "whomever": "the one that",
    "whom": "name the person or thing",
    "lends itself": "borrows",
}
# Where messages are, and how a script prints one.
MESSAGES = ("xseg/", "xtypes/", "peers/", "tools/", "bench/", "tests/lib/deps.sh")
ECHO = r"(?:^|[;&|{(]|\bthen|\belse|\bdo)\s*(?:echo|fail|die|give_up|skip_all|note)\s+\"((?:[^\"\\]|\\.)*)\""
C_STRING = r"\"(?:\\.|[^\"\\\n])*\""
C_TOKEN = re.compile(
    r"/\*.*?\*/|^\s*#\s*include[^\n]*|\b(?:_Static_)?assert\s*\([^;]*;|'(?:\\.|[^'\\])'|"
    r"(?P<text>%s(?:[\s\\]*(?:PRI\w+|%s))*)" % (C_STRING, C_STRING), re.S | re.M)

# A "who" or a "whose" after one of these has no noun: the clause stands for the thing.
BARE_AFTER = set("""of to for by with and or that as if says say tells tell asks ask knows know from in
on at is are was than when but so where while because until unless before after finds find sees see
into about it""".split())


def of_roff(text):
    """The sentences of a manual page: lines that are no requests, without fonts."""
    lines = []
    for line in text.splitlines():
        if line.startswith((".", "'")):
            lines.append("" if not re.match(r"\.[BI]R? ", line) else re.sub(r"^\.\w+ ", "", line))
        else:
            lines.append(line)
    return re.sub(r"\\f.|\\&|\\", "", "\n".join(lines))


def of_source(text):
    """The first comment of a source or a script."""
    if text.startswith("/*"):
        head = text[2:text.find("*/")]
        return "\n".join(re.sub(r"^ ?\*? ?", "", line) for line in head.splitlines())
    lines = []
    for line in text.splitlines():
        if line.startswith("#!"):
            continue
        if not line.startswith("#"):
            break
        lines.append(line[1:].lstrip(" "))
    return "\n".join(lines)


def of_markdown(text):
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"^#.*$", "", text, flags=re.M)


def strings_of_c(text):
    for match in C_TOKEN.finditer(text):
        if match.group("text"):
            pieces = re.findall(C_STRING + r"|PRI\w+", match.group("text"))
            yield "".join(piece[1:-1] if piece[0] == '"' else "s" for piece in pieces)


def strings_of_python(text):
    tree, skipped = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            yield "".join(v.value if isinstance(v, ast.Constant) else "%s" for v in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value


def of_messages(path):
    """The messages of a file, a sentence each."""
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h"):
        strings = strings_of_c(text)
    elif path.suffix == ".py":
        strings = strings_of_python(text)
    else:
        strings = re.findall(ECHO, text, re.M)
    for string in strings:
        string = re.sub(r"\\[nt]|\t", "\n", string)
        string = re.sub(r"'[a-z-]+ [^']*'|`[^`]*`|\$\{?\w+\}?|%[-.*0-9]*[a-z]+", "X", string)
        for part in re.split(r"[.:;?]\s|[.:;?]*\n", string):
            words = re.findall(r"[A-Za-z][A-Za-z'-]*|\d+", part)
            if len(words) >= 4 and re.search(r"[a-z]{2,} [a-z]{2,}", part):
                yield len(words), " ".join(part.split())


def sentences(text):
    """Paragraphs, cut into sentences; tables and indented blocks are left out."""
    out = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = []
        for line in paragraph.splitlines():
            if line.startswith("|") or re.search(r"\S {3,}\S|\t\S", line):
                continue
            if re.match(r"\s*([-*]|\d+\.)\s", line):
                lines.append("\0")
            lines.append(line.strip(" *"))
        for part in " ".join(lines).split("\0"):
            part = re.sub(r"`[^`]*`", "X", part)
            for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z(`\"X'])|(?<=[.:;])\s+(?=\*)", part):
                words = re.findall(r"[A-Za-z][A-Za-z'-]*|\d+", sentence)
                if len(words) >= 4 and re.search(r"[.!?:;,)]$", sentence.strip()):
                    out.append((len(words), " ".join(sentence.split())))
    return out


def name_of(path):
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def bare(sentence):
    words = re.findall(r"[A-Za-z'-]+|[,;:.(]", sentence)
    found = []
    for i, word in enumerate(words):
        before = words[i - 1].lower() if i else "."
        if word.lower() == "what" and not (i + 1 < len(words) and words[i + 1] == "to"):
            found.append(word)
        elif word.lower() in ("who", "whose") and (before in BARE_AFTER or before in ".;:("):
            found.append(word)
    return found


def read(path):
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return of_markdown(text)
    if re.fullmatch(r"\.[1-8]", path.suffix):
        return of_roff(text)
    return of_source(text)


def has_messages(path):
    name = str(name_of(path))
    return name.startswith(("/",) + MESSAGES) and path.suffix in (".c", ".h", ".py", ".sh")


def all_files():
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    names = out.split() or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    for name in names:
        if name.startswith(("build", "tests/fuzz/corpus", "docs/bench/")):
            continue
        if re.search(r"\.(md|[1-8]|[ch]|sh|py)$", name):
            yield ROOT / name


def all_exceptions():
    path = ROOT / "tests/tidy/prose.except"
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split("\t")[0] for line in lines if "\t" in line}


def figures(files, messages):
    """The sentences of the files, their bare words, and the forbidden ones."""
    excepted, found, hits, words = all_exceptions(), [], [], []
    for path in files:
        text = "" if messages else read(path)
        some = [s for s in (of_messages(path) if messages else sentences(text))
                if not any(e in s[1] for e in excepted)]
        found += [(nr, sentence, path) for nr, sentence in some]
        hits += [(w, sentence, path) for _, sentence in some for w in bare(sentence)]
        flat = "\n".join(s for _, s in some) if messages else " ".join(text.split())
        for word in FORBIDDEN:
            words += [(word, path) for _ in re.finditer(r"\b%s\b" % re.escape(word), flat, re.I)]
    return found, hits, words


def show_figures(name, found, hits):
    """True: within the limits."""
    if not found:
        return True
    nr = sum(n for n, *_ in found)
    median = statistics.median(n for n, *_ in found)
    short = 100 * sum(n <= 30 for n, *_ in found) / len(found)
    per = 1000 * len(hits) / nr
    print(f"{name}: {len(found)} sentences, median {median:g} words, {short:.1f} % within 30, "
          f"bare who/what/whose {per:.1f} in 1,000 words")
    return median <= 16 and short >= 95 and per <= 3


def measure(kind, files, options):
    """Prints what is to be said of prose, or of messages; true: all is well."""
    messages = kind == "messages"
    if "--by-file" in options:
        for path in files:
            found, hits, _ = figures([path], messages)
            show_figures(f"{name_of(path)}, {kind}", found, hits)
    found, hits, words = figures(files, messages)
    good = show_figures(kind, found, hits)
    for word, path in words:
        print(f"forbidden: {name_of(path)}: \"{word}\"; write: {FORBIDDEN[word]}")
    if "--show" in options:
        for nr, sentence, path in sorted(found, reverse=True)[:40]:
            print(f"{nr} words: {name_of(path)}: {sentence}")
        for word, sentence, path in hits:
            print(f"bare {word}: {name_of(path)}: {sentence}")
    return good and not words


def main(args):
    options = {a for a in args if a.startswith("--")}
    files = [pathlib.Path(a).resolve() for a in args if a not in options] or list(all_files())
    good = [measure("prose", files, options),
            measure("messages", [f for f in files if has_messages(f)], options)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
