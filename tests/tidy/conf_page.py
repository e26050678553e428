#!/usr/bin/env python3
"""conf_page.py - puts the keys of stack files into docs/xseg.conf.5, and checks that they are the same.

Usage: tests/tidy/conf_page.py [--write] PROGRAM
    PROGRAM is an xseg-host, whose tables of options have the keys (`xseg-host --keys`). Without
    --write: one line for each section of the page whose keys are not those; exit 1 if there is one.

In the page, the keys of a section stand between two marks, and are replaced as a whole:

    .\\" keys of SECTION
    .\\" end

A section without keys is left alone: it is a kind of peers that this build does not have.
"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/xseg.conf.5"
MARK = re.compile(r'(\.\\" keys of (\S+)\n)(.*?)(\.\\" end\n)', re.S)


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def sentence(text):
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def key(name, arg, limits, default, flags, text):
    out = [".TP", f".BR {name} \" = \\fI{roff(arg)}\\fR\"", sentence(roff(text))]
    if limits:
        what = "One of" if "," in limits else "From" if " to " in limits else "It is"
        out.append(f"{what} {roff(limits)}.")
    if default:
        out.append(f"Without this key: {roff(default)}.")
    if "r" in flags:
        out.append("This key must be there.")
    if "m" in flags:
        out.append("It may stand several times.")
    if "l" in flags:
        out.append("Live.")
    return "\n".join(out) + "\n"


def sections(program):
    out = {}
    text = subprocess.run([program, "--keys"], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        section, *words = line.split("\t")
        out[section] = out.get(section, "") + key(*words)
    return out


def main(args):
    write = args[0] == "--write"
    keys = sections(args[-1])
    text = PAGE.read_text()
    marked = {m[2]: m[3] for m in MARK.finditer(text)}
    wrong = [s for s in keys if s not in marked]
    for section in wrong:
        print(f"{PAGE.name}: it has no place for the keys of {section}; add one")
    new = MARK.sub(lambda m: m[1] + keys.get(m[2], m[3]) + m[4], text)
    if write:
        PAGE.write_text(new)
    else:
        for section in marked:
            if section in keys and marked[section] != keys[section]:
                wrong.append(section)
                print(f"{PAGE.name}: the keys of {section} are not those of {args[-1]}; run "
                      "tests/tidy/conf_page.py --write with it")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
