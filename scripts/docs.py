#!/usr/bin/env python3
"""Runs every code block of the documents, in order, each document in a fresh folder. CONTRIBUTING.md says how to write one.

    scripts/docs.py [FILE…]      these documents; without any, all of them

`KITH_BIN` is the binary that blocks call as `kith`, `KITH_PYTHON` a Python that has the client. The first block that fails ends it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 600
"""Seconds that the commands of a document may take; far above what they take."""
USUAL_PORTS = {"router": 7000, "http": 7080, "resp": 7379, "gremlin": 7182}
"""Where `kith dev` serves while they are free, by their names in the ready file. Documents name these."""
NO_CODE = {"text": "figures, formulas, what programs print", "record": "bytes, which the tests of crates/words/kith-schema read"}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)(?P<attributes>.*)$")
HIDDEN = "<!-- sh"


class BlockFailed(Exception):
    """A block failed: line, command, and what it printed."""

    def __init__(self, line: int, command: str, output: str) -> None:
        super().__init__(output)
        self.line, self.command, self.output = line, command, output


@dataclasses.dataclass
class Block:
    """A code block, or a comment with commands that readers do not see."""

    language: str
    attributes: dict[str, str]
    line: int
    """Of its first line, from 1."""
    text: str
    hidden: bool = False


def blocks(document: str) -> Iterator[Block]:
    """The blocks of a document, in order."""
    lines = document.splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None and lines[at] != HIDDEN:
            at += 1
            continue
        end = "-->" if fence is None else fence["indent"] + "```"
        last = next((i for i in range(at + 1, len(lines)) if lines[i] == end), None)
        if last is None:
            raise BlockFailed(at + 1, lines[at], f"the block has no end: no line is {end!r}")
        body = "\n".join(lines[at + 1 : last]) + "\n"
        if fence is None:
            yield Block("sh", {}, at + 2, body, hidden=True)
        else:
            yield Block(fence["language"], attributes(fence["attributes"], at + 1), at + 2, body)
        at = last + 1


def attributes(text: str, line: int) -> dict[str, str]:
    """What follows the language: `skip="why"`, `file="name"`."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if name not in ("skip", "file") or not equals or not value.strip():
            reason = 'after the language there is skip="why it cannot run" or file="name", and nothing else'
            raise BlockFailed(line, text.strip(), reason)
        found[name] = value
    return found


class Shell:
    """One bash for all commands of a document: what a block sets, the next one has."""

    LOOP = """
    set -euo pipefail
    trap 'kill $(jobs -p) 2>/dev/null && wait || true' EXIT
    trap 'printf "%s\\n%s\\n" "$LINENO" "$BASH_COMMAND" >"$block.failed"' ERR
    while IFS= read -r block; do
      source "$block" >"$block.out" 2>&1 </dev/null
      echo done
    done
    """

    def __init__(self, folder: Path, work: Path, environment: dict[str, str]) -> None:
        self._work, self._count = work, 0
        self._bash = subprocess.Popen(
            ["timeout", "--foreground", str(TIMEOUT), "bash", "-c", self.LOOP],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def run(self, commands: str, line: int) -> str:
        """What the commands print; they must succeed."""
        self._count += 1
        block = self._work / f"{self._count}.sh"
        block.write_text(commands)
        assert self._bash.stdin and self._bash.stdout
        self._bash.stdin.write(f"{block}\n")
        self._bash.stdin.flush()
        succeeded = self._bash.stdout.readline() == "done\n"
        output = Path(f"{block}.out").read_text(errors="replace")
        if succeeded:
            return output
        failed = Path(f"{block}.failed")
        at, _, command = failed.read_text().partition("\n") if failed.exists() else ("1", "", commands)
        raise BlockFailed(line + max(int(at), 1) - 1, command.strip(), f"{output}\nexit code {self._bash.wait()}")

    def close(self) -> None:
        """Ends it."""
        assert self._bash.stdin
        self._bash.stdin.close()
        self._bash.wait(TIMEOUT)


class Python:
    """One interpreter for all Python of a document."""

    LOOP = """
import ast, sys, traceback
names = {"__name__": "__main__"}
for path in sys.stdin:
    path = path.strip()
    try:
        exec(compile(open(path).read(), path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        print("\\0", flush=True)
    except BaseException:
        print(traceback.format_exc() + "\\0failed", flush=True)
"""

    def __init__(self, folder: Path, work: Path, environment: dict[str, str]) -> None:
        self._work, self._count = work, 0
        self._python = subprocess.Popen(
            ["timeout", "--foreground", str(TIMEOUT), environment["KITH_PYTHON"], "-c", self.LOOP],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )

    def run(self, text: str, line: int) -> None:
        """Runs a block."""
        self._count += 1
        block = self._work / f"{self._count}.py"
        # Tracebacks then have the lines of the document.
        block.write_text("\n" * (line - 1) + text)
        assert self._python.stdin and self._python.stdout
        self._python.stdin.write(f"{block}\n")
        self._python.stdin.flush()
        output = []
        for printed in self._python.stdout:
            if "\0" in printed:
                if printed.rstrip() != "\0":
                    break
                return
            output.append(printed)
        lines = [int(at) for at in re.findall(rf'{re.escape(str(block))}", line (\d+)', "".join(output))]
        at = lines[-1] if lines else line
        command = block.read_text().splitlines()[at - 1].strip()
        raise BlockFailed(at, command, "".join(output))

    def close(self) -> None:
        """Ends it."""
        assert self._python.stdin
        self._python.stdin.close()
        self._python.wait(TIMEOUT)


class Document:
    """One document, and the folder in which its blocks run."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.path, self._work = path, Path(tempfile.mkdtemp(prefix="kith-docs-"))
        self.folder = self._work / "folder"
        self.folder.mkdir()
        # As in a fresh clone, without what was built.
        for entry in ("Makefile", "scripts", "testdata", "clients", "docs", "spark"):
            (self.folder / entry).symlink_to(ROOT / entry)
        self._environment = environment | {"TMPDIR": str(self._work)}
        self._shell = Shell(self.folder, self._work, self._environment)
        self._python: Python | None = None

    def run(self, block: Block) -> None:
        """Runs a block as what it is."""
        text = self._here(block.text)
        if "file" in block.attributes:
            file = self.folder / block.attributes["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        match block.language:
            case "sh":
                self._shell.run(text, block.line)
            case "console":
                self._console(block.text, block.line)
            case "python":
                self._python = self._python or Python(self.folder, self._work, self._environment)
                self._python.run(text, block.line)
            case "json":
                self._json(text, block.line)
            case "toml":
                checked(block.line, text, tomllib.loads)
            case other:
                reason = f"nothing runs blocks of language {other!r}: mark it `text` if it is no code, or say why: skip=\"…\""
                raise BlockFailed(block.line - 1, f"```{other}", reason)

    def _here(self, text: str) -> str:
        """With what is here in the place of what a reader has. Where the usual ports are taken by others, `kith dev` serves elsewhere, as
        the ready file says. Lines of `stand-ins` name what stands for addresses and folders of other machines."""
        ready = self.folder / ".kith/ready.json"
        there = json.loads(ready.read_text()) if ready.exists() else {}
        for name in there.keys() & USUAL_PORTS.keys():
            text = re.sub(rf"\b{USUAL_PORTS[name]}\b", there[name].rpartition(":")[2], text)
        stand_ins = self.folder / "stand-ins"
        for line in stand_ins.read_text().splitlines() if stand_ins.exists() else ():
            text = text.replace(*line.split("\t"))
        return text

    def _console(self, text: str, line: int) -> None:
        """Commands after `$`, continued after `>`; other lines are what the command before prints."""
        command, at, expected = "", line, []
        for number, given in enumerate([*text.splitlines(), "$ "], start=line):
            if given.startswith("$ "):
                if command:
                    compare(at, command, expected, self._shell.run(self._here(command) + "\n", at))
                command, at, expected = given[2:], number, []
            elif given.startswith("> ") and not expected:
                command += "\n" + given[2:]
            else:
                expected.append(given)

    def _json(self, text: str, line: int) -> None:
        """Requests, each with its answer, are asked; anything else is only read."""
        lines = text.splitlines()
        if not lines[0].startswith('{"op":'):
            checked(line, text, json.loads)
            return
        for number, given in enumerate(lines):
            value = checked(line + number, given, json.loads)
            if "op" in value:
                request = given
                continue
            asked = f"kith run --input - <<'REQUEST'\n{request}\nREQUEST\n"
            answer = checked(line + number, self._shell.run(asked, line + number), json.loads)
            if without_versions(answer) != without_versions(value):
                raise BlockFailed(line + number, request, f"the document says {given}\nthe answer is {json.dumps(answer)}")

    def close(self) -> None:
        """Ends what its blocks left running, and removes the folder."""
        if self._python:
            self._python.close()
        self._shell.close()
        for ready in self.folder.glob(".kith/*.json"):
            subprocess.run(["kith", "dev", "--stop", "--ready-file", str(ready)], env=self._environment,
                           capture_output=True, timeout=TIMEOUT, check=False)
        shutil.rmtree(self._work, ignore_errors=True)


def checked(line: int, text: str, parse: Any) -> Any:
    """What a text is, if it is well formed."""
    try:
        return parse(text)
    except ValueError as error:
        raise BlockFailed(line, text, str(error)) from error


def without_versions(value: Any) -> Any:
    """Versions are times."""
    if isinstance(value, dict):
        return {key: without_versions(part) for key, part in value.items() if key != "versions"}
    return value


def compare(line: int, command: str, expected: list[str], output: str) -> None:
    """Whether a command prints what is said. Numbers may be others, spaces more or fewer; … stands for anything."""
    def shape(text: str) -> str:
        return " ".join(re.sub(r"\d[\d,.]*", "0", text).split())

    pattern = ".*".join(re.escape(part) for part in shape("\n".join(expected)).split("…"))
    if expected and not re.fullmatch(pattern, shape(output), re.DOTALL):
        documented = "\n".join(expected)
        raise BlockFailed(line, command, f"it prints\n{output}\nand the document says\n{documented}")


def documents() -> list[Path]:
    """All of them: the first that a newcomer reads comes first."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [ROOT / line for line in listed.stdout.splitlines() if line != "CHANGELOG.md"]
    return sorted(paths, key=lambda path: (path != ROOT / "README.md", path))


def environment(work: Path) -> dict[str, str]:
    """What blocks see: `kith` is the one of KITH_BIN."""
    if not os.access(os.environ.get("KITH_BIN", ""), os.X_OK):
        sys.exit("error: KITH_BIN names no binary of kith; scripts/docs.sh builds one")
    binary = Path(os.environ["KITH_BIN"]).resolve()
    (work / "kith").symlink_to(binary)
    inherited = {key: value for key, value in os.environ.items() if key not in ("KITH_ROUTER", "XDG_RUNTIME_DIR")}
    # A link of a virtual environment must not be followed: it is what has the client.
    python = str(Path(os.environ.get("KITH_PYTHON", sys.executable)).absolute())
    return inherited | {"PATH": f"{work}:{os.environ['PATH']}", "KITH": str(binary), "KITH_PYTHON": python}


def run(path: Path, seen: dict[str, str], counts: dict[str, int], skipped: list[str]) -> None:
    """Runs the blocks of a document."""
    name = os.path.relpath(path, ROOT)
    document = Document(path, seen)
    try:
        for block in blocks(path.read_text()):
            if "skip" in block.attributes:
                skipped.append(f"{name}:{block.line - 1}: {block.attributes['skip']}")
            elif block.language in NO_CODE:
                counts["no code"] += 1
            else:
                document.run(block)
                counts["set-up" if block.hidden else "run"] += 1
    except BlockFailed as failed:
        print(f"{name}:{failed.line}: failed: {failed.command}\n{failed.output}", file=sys.stderr)
        counts["failed"] += 1
    finally:
        document.close()


def main() -> int:
    """Exit code 1 if a block failed."""
    paths = [Path(argument).resolve() for argument in sys.argv[1:]] or documents()
    counts = {"run": 0, "set-up": 0, "no code": 0, "failed": 0}
    skipped: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kith-docs-bin-") as work:
        seen = environment(Path(work))
        for path in paths:
            run(path, seen, counts, skipped)
            if counts["failed"]:
                break
    for block in skipped:
        print(f"skipped: {block}")
    print(f"{counts['run']} blocks run ({counts['set-up']} more that readers do not see), {len(skipped)} skipped, "
          f"{counts['no code']} without code, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
