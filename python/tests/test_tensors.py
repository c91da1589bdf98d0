import os

import numpy as np
import pytest

from rota import read_tensors, write_tensors


def test_what_is_written_is_read_back(tmp_path):
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([]), "ü.weight": np.float32(2.5)}
    write_tensors(tmp_path / "m.safetensors", arrays)
    for mapped in [False, True]:
        found = read_tensors(tmp_path / "m.safetensors", mapped=mapped)
        assert sorted(found) == ["a", "b", "ü.weight"]
        assert found["b"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert found["ü.weight"].shape == () and found["a"].shape == (0,)


def test_a_file_may_be_written_from_a_map_of_itself(tmp_path):
    path = tmp_path / "m.safetensors"
    write_tensors(path, {"a": np.arange(5000.0), "b": np.zeros(3)})
    for writable in (False, True):
        found = read_tensors(path, mapped=True, writable=writable)
        write_tensors(path, {"a": found["a"][::-1], "b": found["b"]})
    assert read_tensors(path)["a"].tolist() == list(range(5000))


def _rewritten(path, write):
    """Reads a small file, writes it again with `write`, in the same tick of the clock, and reads it again."""
    state = os.stat(path)
    first = read_tensors(path)["a"].tolist()
    write()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert os.stat(path).st_size == state.st_size and os.stat(path).st_ino == state.st_ino
    return first, read_tensors(path)["a"].tolist()


def test_a_file_written_twice_in_a_tick_is_read_anew(tmp_path):
    path = tmp_path / "m.safetensors"
    write_tensors(path, {"a": np.zeros(3)})
    assert _rewritten(path, lambda: write_tensors(path, {"a": np.ones(3)})) == ([0, 0, 0], [1, 1, 1])
    # Nor does it matter who writes.
    other = path.read_bytes()[:-12] + np.full(3, 2, "<f4").tobytes()

    def elsewhere():
        with path.open("r+b") as file:
            file.write(other)

    assert _rewritten(path, elsewhere) == ([1, 1, 1], [2, 2, 2])


def test_files_are_those_of_the_safetensors_library(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.ones((2, 3), np.float32), "a": np.zeros(4, np.float32)}
    write_tensors(tmp_path / "m.safetensors", arrays)
    assert (tmp_path / "m.safetensors").read_bytes() == library.save(arrays)


def test_what_is_no_safetensors_file_is_refused(tmp_path):
    for junk in [b"", b"\x01", b"junk" * 10, (2**63).to_bytes(8, "little") + b"{}"]:
        (tmp_path / "junk").write_bytes(junk)
        with pytest.raises(ValueError, match="is no safetensors file"):
            read_tensors(tmp_path / "junk")
