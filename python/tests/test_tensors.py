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
