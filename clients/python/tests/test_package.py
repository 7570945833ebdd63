"""The wheel as it was installed: typed, and its notebook runs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import kith
from cluster import KITH, TIMEOUT

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def test_the_installed_wheel_is_what_is_tested() -> None:
    assert "site-packages" in str(Path(kith.__file__))
    wheel = metadata.distribution("kith").read_text("WHEEL")
    assert wheel is not None and "cp311-abi3" in wheel
    assert resources.files("kith").joinpath("py.typed").is_file()
    assert resources.files("kith").joinpath("_kith.pyi").is_file()


def test_the_stubs_name_what_there_is() -> None:
    from kith import _kith

    stub = resources.files("kith").joinpath("_kith.pyi").read_text()
    for name, thing in vars(_kith).items():
        if name.startswith("__") or not isinstance(thing, type):
            continue
        assert f"class {name}" in stub, name
        for member in vars(thing):
            public = not member.startswith("_") or member in ("__getitem__", "__len__")
            assert not public or f"def {member}(" in stub, f"{name}.{member}"


USES = """
import kith
from typing import assert_type

async def use() -> None:
    client = kith.connect("h:1", deadline=0.1)
    assert_type(client.get_many("s", [1], partial=True), kith.Batch)
    assert_type(client.graph("g").network_size(1), int)
    with client.stream("s", [1], partial=True) as stream:
        for entry in stream:
            assert_type(entry, kith.Entry)
        assert_type([piece for piece in stream.pieces()], list[kith.Batch])
        assert_type(stream.footer, kith.StreamFooter)
    assert_type(kith.build_store("s", "out", {1: "x"}, key="id", partitions=4), kith.BuiltStore)
    assert_type(kith.build_graph("g", "out", edges=[(1, 2)], partitions=4).components, list[kith.BuiltComponent])
    slow = await kith.aio.connect(tls_ca="ca.pem", token_file="token")
    async for other in slow.stream("s", [1]):
        assert_type(other, kith.Entry)
    assert_type(await slow.compute("s").dot("f", [1.0]).top_k("dot_f", 3).execute([1]), kith.Batch)
"""
MISUSES = 'import kith\nkith.connect("h:1").get_many("s", [1], dealine=1)\n'


def test_types_are_checked(tmp_path: Path) -> None:
    uses, misuses = tmp_path / "uses.py", tmp_path / "misuses.py"
    uses.write_text(USES)
    misuses.write_text(MISUSES)

    def mypy(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=5 * TIMEOUT)

    right = mypy(str(uses))
    assert right.returncode == 0, right.stdout + right.stderr
    package = mypy("-p", "kith")
    assert package.returncode == 0, package.stdout + package.stderr
    wrong = mypy(str(misuses))
    assert wrong.returncode == 1 and "dealine" in wrong.stdout


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.path.dirname(os.path.realpath(KITH)) if os.path.sep in KITH else ""
    monkeypatch.setenv("PATH", os.pathsep.join(filter(None, [folder, os.environ["PATH"]])))
    notebook = nbformat.read(NOTEBOOKS / "pages.ipynb", as_version=4)
    # A cell that raises fails the run; a cell that shows nothing where it should fails here.
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert 6 <= len(shown)
