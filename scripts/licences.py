#!/usr/bin/env python3
"""Prints the licences of everything that a binary is linked from: each crate, then each text once.

usage: licences.py PACKAGE TARGET

The crates are those that `cargo metadata` resolves for the target, without what only builds or tests need. Texts are the files
that each crate ships, those of bundled C sources among them. Fails if a crate names no licence, or names one and ships no text
where no other crate ships that text either.
"""

import collections
import json
import pathlib
import subprocess
import sys

TEXT_NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")
# Folders of a crate that are not linked.
SKIPPED = {"tests", "benches", "examples", "target"}


def metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(graph, root):
    """The ids of the packages that `root` links: normal dependencies, all the way down."""
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    seen, waiting = set(), [root]
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return seen


def texts(package):
    """The licence files of a package: (name, text)."""
    folder = pathlib.Path(package["manifest_path"]).parent
    found = []
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder)
        if not path.is_file() or SKIPPED & set(below.parts[:-1]):
            continue
        is_text = path.suffix.lower() in ("", ".md", ".txt", ".rst") or path.name.lower().startswith("license")
        if is_text and path.name.lower().startswith(TEXT_NAMES) and path.suffix not in (".rs", ".py", ".html"):
            found.append((str(below), path.read_text(encoding="utf-8", errors="replace").strip()))
    return found


def main():
    name, target = sys.argv[1:]
    graph = metadata(target)
    packages = {package["id"]: package for package in graph["packages"]}
    root = next(id for id in graph["workspace_members"] if packages[id]["name"] == name)
    own = set(graph["workspace_members"])
    foreign = sorted(
        (packages[id] for id in linked(graph, root) - own), key=lambda package: (package["name"], package["version"])
    )
    unnamed = [package["name"] for package in foreign if not package["license"] and not package["license_file"]]
    if unnamed:
        sys.exit(f"error: no licence is named by {', '.join(unnamed)}; look at them before they are shipped")

    print(f"{name} is linked from the crates below and from Rust's standard library (MIT OR Apache-2.0,")
    print("https://www.rust-lang.org). Each is followed by the numbers of its texts, which come after the list.\n")
    numbers, names, without = {}, collections.defaultdict(list), []
    for package in foreign:
        title = f"{package['name']} {package['version']}"
        mine = []
        for path, text in texts(package):
            if text:
                number = numbers.setdefault(text, len(numbers) + 1)
                names[number].append(f"{title}: {path}")
                mine.append(number)
        licence = package["license"] or f"see {package['license_file']}"
        if mine:
            shown = ", ".join(str(number) for number in sorted(set(mine)))
        else:
            shown = "no text of its own: the text of its licence is among those of the others"
            without.append((title, licence))
        print(f"{title}  {licence}  [{shown}]")
        if package["repository"]:
            print(f"    {package['repository']}")

    everything = "\n".join(numbers)
    known = {
        "MIT": "Permission is hereby granted, free of charge",
        "Apache-2.0": "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
        "BSD-3-Clause": "Redistributions of source code must retain",
        "BSD-2-Clause": "Redistributions of source code must retain",
        "ISC": "Permission to use, copy, modify, and",
        "Zlib": "This software is provided 'as-is'",
        "0BSD": "Permission to use, copy, modify, and",
        "MIT-0": "Permission is hereby granted, free of charge",
    }
    for title, licence in without:
        choices = [choice.strip(" ()") for choice in licence.replace("/", " OR ").split(" OR ")]
        if not any(known.get(choice, "\0") in everything for choice in choices):
            sys.exit(f"error: {title} ({licence}) ships no licence text, and no other crate ships that text")

    for text, number in numbers.items():
        print(f"\n{'=' * 100}\n[{number}] of " + "\n    ".join(names[number]) + f"\n{'-' * 100}\n{text}")


if __name__ == "__main__":
    main()
