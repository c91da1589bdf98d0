"""The package itself: what a wheel and its metadata have, and that it works where it is not installed by the system."""

import importlib.util
import os
import struct
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import rota

from conftest import ROOT

spec = importlib.util.spec_from_file_location("pack", ROOT / "python" / "pack.py")
pack = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pack)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return pack.main(Path(rota.binary()), tmp_path_factory.mktemp("dist"))


def test_a_wheel_has_its_licences_and_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        said = Parser().parsestr(archive.read("rota-0.1.0.dist-info/METADATA").decode())
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert f"rota-0.1.0.dist-info/licenses/{name}" in names
    assert said["License-Expression"] == "MIT OR Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE-APACHE", "LICENSE-MIT"]
    assert "Typing :: Typed" in said.get_all("Classifier") and "rota/py.typed" in names
    assert said["Version"] == rota.__version__
    assert said.get_payload().startswith("# Rota from Python")


def test_metadata_and_pyproject_say_the_same():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    said = Parser().parsestr(pack.metadata())
    assert said.get_all("Classifier") == project["classifiers"]
    required = [one for one in said.get_all("Requires-Dist") if "extra ==" not in one]
    assert len(required) == len(project["dependencies"])
    assert set(said.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    for name in project["license-files"]:
        assert (ROOT / "python" / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="symbols of Linux")
def test_the_program_goes_in_without_its_symbols(wheel):
    with zipfile.ZipFile(wheel) as archive:
        program = archive.read("rota-0.1.0.data/scripts/rota")
    if pack.shutil.which("strip") is None:
        pytest.skip("there is no `strip`")
    assert program[:6] == b"\x7fELF\x02\x01", "a program of 64 bits, as this test reads it"
    found = kinds_of_sections(program)
    assert found and TABLE_OF_SYMBOLS not in found


#: `SHT_SYMTAB` of ELF.
TABLE_OF_SYMBOLS = 2


def kinds_of_sections(program):
    """The kinds (`sh_type`) of the sections of a program in ELF."""
    (start,) = struct.unpack_from("<Q", program, 0x28)
    size, count = struct.unpack_from("<HH", program, 0x3A)
    return {struct.unpack_from("<I", program, start + at * size + 4)[0] for at in range(count)}


def test_a_package_in_a_folder_of_its_own_finds_its_program(wheel, tmp_path):
    """As `pip install --target` lays it: programs are in the folder `bin` beside the package."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    scripts = tmp_path / "rota-0.1.0.data" / "scripts"
    (tmp_path / "bin").mkdir()
    (scripts / "rota").rename(tmp_path / "bin" / "rota")
    (tmp_path / "bin" / "rota").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("ROTA_BIN", "PATH")}
    code = "import rota; print(rota.binary())"
    # Without what the environment of these tests has: no program of its own is on the path.
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | {"PYTHONPATH": str(tmp_path), "PATH": "/nowhere"},
        capture_output=True, text=True, check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "bin" / "rota")


def test_pip_installs_into_a_folder_and_runs_where_none_may_write(wheel, tmp_path):
    folder = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder), str(wheel)]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no pip")
    subprocess.run(pip, check=True, capture_output=True, text=True)
    # A folder in which not even the administrator of the system may write.
    here = "/proc" if Path("/proc/self").exists() else "/"
    environment = {name: value for name, value in os.environ.items() if name not in ("ROTA_BIN", "PATH", "PYTHONPATH")}
    code = (
        "import rota\n"
        "made = rota.FunctionLearner({'w': (2,)}, lambda model, how: rota.Update(model, {'loss': 0.5}), lambda model, split: {'loss': 0.5}, rota.Rows(4, test=2))\n"
        "summary = rota.simulate({'name': 'here', 'rounds': 1, 'silos': 2, 'task': rota.task(made), 'strategy': {'name': 'fedavg',\n"
        "    'training': {'epochs': 1, 'batch': 0, 'optimiser': {'name': 'sgd', 'rate': 0.1}}}}, learner=made, references=False)\n"
        "print(rota.binary(), len(summary['training_failed']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, env=environment | {"PYTHONPATH": str(folder), "PATH": "/nowhere"},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / "bin" / "rota"), "0"]


def test_the_citation_has_the_version():
    cff = (ROOT / "CITATION.cff").read_text()
    assert f"version: {rota.__version__}" in cff
