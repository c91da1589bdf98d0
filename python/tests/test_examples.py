"""The notebooks and the examples of the book."""

import re

import pytest

import rota

from conftest import EXAMPLES, ROOT

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    for module in ["ipykernel", "pandas", "matplotlib", "sklearn"]:
        pytest.importorskip(module)
    monkeypatch.setenv("ROTA_BIN", rota.binary())
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


def test_names_that_the_book_uses_exist():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"rota\.([A-Za-z_]+)\b", text)) - {"torch", "sklearn", "flower", "flare", "py"}:
        assert hasattr(rota, name), name
