#!/usr/bin/env python3
"""prose.py - how plain the prose of the project is: lengths of sentences, bare relative clauses, words
that only this project would use.

Usage: tests/tidy/prose.py [--by-file] [--show] [FILE...]
    prints one line of figures: sentences, the median of their words, the part with 30 words or
    fewer, and "who", "what" and "whose" without a noun before them in 1,000 words; then a line for
    each forbidden word. Without FILE: README.md, all of docs, manual pages and the heads of sources.
    --by-file: the same for each file. --show: the longest sentences, and where bare words are.

Only sentences count: no code, tables, lists of options, headings or links' targets. A line that has
to stay as it is stands in tests/tidy/prose.except, with its reason.
"""
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


def all_files():
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    names = out.split() or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    for name in names:
        if name.startswith(("build", "tests/fuzz/corpus", "docs/bench/")):
            continue
        if re.search(r"\.(md|[1-8]|[ch]|sh|py)$", name):
            yield ROOT / name


def figures(files):
    excepted = {line.split("\t")[0] for line in
                (ROOT / "tests/tidy/prose.except").read_text().splitlines() if "\t" in line} \
        if (ROOT / "tests/tidy/prose.except").exists() else set()
    found, hits, words = [], [], []
    for path in files:
        text = read(path)
        for nr, sentence in sentences(text):
            if any(e in sentence for e in excepted):
                continue
            found.append((nr, sentence, path))
            hits += [(w, sentence, path) for w in bare(sentence)]
        flat = " ".join(text.split())
        for word in FORBIDDEN:
            for _ in re.finditer(r"\b%s\b" % re.escape(word), flat, re.I):
                words.append((word, path))
    return found, hits, words


def show_figures(name, found, hits):
    if not found:
        return None
    nr = sum(n for n, *_ in found)
    median = statistics.median(n for n, *_ in found)
    short = 100 * sum(n <= 30 for n, *_ in found) / len(found)
    per = 1000 * len(hits) / nr
    print(f"{name}: {len(found)} sentences, median {median:g} words, {short:.1f} % within 30, "
          f"bare who/what/whose {per:.1f} in 1,000 words")
    return median, short, per


def main(args):
    options = {a for a in args if a.startswith("--")}
    files = [pathlib.Path(a).resolve() for a in args if a not in options] or list(all_files())
    if "--by-file" in options:
        for path in files:
            found, hits, _ = figures([path])
            show_figures(name_of(path), found, hits)
    found, hits, words = figures(files)
    result = show_figures("all", found, hits)
    for word, path in words:
        print(f"forbidden: {name_of(path)}: \"{word}\"; write: {FORBIDDEN[word]}")
    if "--show" in options:
        for nr, sentence, path in sorted(found, reverse=True)[:40]:
            print(f"{nr} words: {name_of(path)}: {sentence}")
        for word, sentence, path in hits:
            print(f"bare {word}: {name_of(path)}: {sentence}")
    return 0 if result and result[0] <= 16 and result[1] >= 95 and result[2] <= 3 and not words else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
