"""The files of the page on many runs, as they stand there."""

import os
import re
import subprocess
import sys

import pytest

import rota

from conftest import ROOT

TEXT = (ROOT / "docs" / "many-runs.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.DOTALL))
SHELL = re.search(r"```sh\n(.*?)```", TEXT, re.DOTALL).group(1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("ROTA_BIN", rota.binary())
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def whole(folder):
    """What one process gives."""
    text = "import rota\nfrom wards import *\nprint(rota.compare(scenario, strategies=['fedavg, by rows', 'local'], seeds=4, learner=learner, tuned=False))"
    return ran(folder, [sys.executable, "-c", text])


def ran(folder, command):
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix")
@pytest.mark.parametrize("how", ["processes.py", "with_joblib.py", "shell"])
def test_parts_of_the_page_are_the_whole(how, folder):
    if how == "with_joblib.py":
        pytest.importorskip("joblib")
    command = ["bash", "-ec", SHELL] if how == "shell" else [sys.executable, how]
    found = ran(folder, command)
    assert "fedavg" in found and found == whole(folder)
