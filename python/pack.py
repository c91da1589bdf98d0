"""Packs a `rota` that is already built, and the Python package beside this file, into a wheel.

    python3 python/pack.py target/release/rota dist

It is the wheel that `maturin build` makes, without compiling anything; needs nothing but Python. Where there is a
`strip`, the program goes in without its symbols, which is a fraction of its size.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: The licences, beside the workspace.
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
EPOCH = (1980, 1, 1, 0, 0, 0)


def field(name: str) -> str:
    """A text of the table [project] in pyproject.toml; enough of TOML for this file."""
    for line in (HERE / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() == name:
            return value.strip().strip('"')
    raise SystemExit(f"pyproject.toml has no `{name}`")


def fields(name: str) -> list[str]:
    """The texts of a list of the table [project] in pyproject.toml, one a line."""
    lines = iter((HERE / "pyproject.toml").read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.replace(" ", "") == f"{name}=[":
            found = []
            for entry in lines:
                if entry.strip() == "]":
                    return found
                found.append(entry.strip().rstrip(",").strip('"'))
    raise SystemExit(f"pyproject.toml has no list `{name}`")


def stripped(program: Path) -> bytes:
    """The program without its symbols."""
    strip = shutil.which("strip")
    if strip is None:
        return program.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / program.name
        done = subprocess.run([strip, "-o", copy, program], capture_output=True, check=False)
        return (copy if done.returncode == 0 else program).read_bytes()


def tag() -> str:
    """The platform's tag. On Linux the plain one, which is not for an index: the program needs the
    C library of the machine that built it, or a newer one."""
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def metadata() -> str:
    text = [
        "Metadata-Version: 2.4",
        f"Name: {field('name')}",
        f"Version: {field('version')}",
        f"Summary: {field('description')}",
        f"License-Expression: {field('license')}",
        *(f"License-File: {name}" for name in LICENCES),
        f"Keywords: {','.join(fields('keywords'))}",
        *(f"Classifier: {one}" for one in fields("classifiers")),
        f"Requires-Python: {field('requires-python')}",
        "Requires-Dist: numpy>=1.23",
        'Requires-Dist: tomli>=2; python_version < "3.11"',
        "Provides-Extra: torch",
        'Requires-Dist: torch>=2.0; extra == "torch"',
        "Provides-Extra: sklearn",
        'Requires-Dist: scikit-learn>=1.2; extra == "sklearn"',
        "Provides-Extra: notebooks",
        *(f'Requires-Dist: {name}; extra == "notebooks"' for name in ["pandas", "matplotlib", "jupyter"]),
        "Provides-Extra: tests",
        'Requires-Dist: pytest; extra == "tests"',
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(text)


def main(program: Path, out: Path) -> Path:
    if not program.is_file():
        raise SystemExit(f"{program} is not there: build it with `cargo build --release`")
    name, version = field("name"), field("version")
    wheel = f"Wheel-Version: 1.0\nGenerator: pack.py\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    info = f"{name}-{version}.dist-info"
    files: list[tuple[str, bytes, int]] = []
    for path in sorted((HERE / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.append((path.relative_to(HERE / "src").as_posix(), path.read_bytes(), 0o644))
    suffix = ".exe" if platform.system() == "Windows" else ""
    files.append((f"{name}-{version}.data/scripts/{name}{suffix}", stripped(program), 0o755))
    for licence in LICENCES:
        files.append((f"{info}/licenses/{licence}", (HERE.parent / licence).read_bytes(), 0o644))
    files.append((f"{info}/METADATA", metadata().encode(), 0o644))
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    record = []
    for path, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}")
    record.append(f"{info}/RECORD,,")
    files.append((f"{info}/RECORD", ("\n".join(record) + "\n").encode(), 0o644))
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{name}-{version}-{tag()}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return target


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    print(main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) == 3 else "dist")))
