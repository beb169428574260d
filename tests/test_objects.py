"""The object store on a local folder: pointers that can be trusted, paths that stay inside."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from infra.objects import BlobError, Objects, file_digest, job_key


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects((tmp_path / "objects").as_uri())


def test_tensors_come_back_as_they_were(objects: Objects) -> None:
    frames = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)[:, ::2]
    blob = objects.put_tensors(job_key("j", "frames", "0-1"), {"frames": frames, "us": np.arange(2)}, "frames")
    assert (blob.shape, blob.dtype) == ((2, 2, 6, 3), "uint8")
    assert np.array_equal(objects.get_tensors(blob)["frames"], frames)


def test_a_changed_object_is_refused(objects: Objects, tmp_path: Path) -> None:
    blob = objects.put_bytes("jobs/j/a", b"abc", "text/plain")
    assert objects.get_bytes(blob) == b"abc"
    assert objects.get_file(blob, tmp_path).read_bytes() == b"abc"
    (tmp_path / "objects/jobs/j/a").write_bytes(b"abd")
    for read in (lambda: objects.get_bytes(blob), lambda: objects.get_file(blob, tmp_path)):
        with pytest.raises(BlobError, match="digest"):
            read()


def test_a_missing_object_says_its_name(objects: Objects, tmp_path: Path) -> None:
    blob = replace(objects.put_bytes("jobs/j/a", b"abc", "text/plain"), uri=f"{objects.url}/jobs/j/b")
    for read in (lambda: objects.get_bytes(blob), lambda: objects.get_file(blob, tmp_path)):
        with pytest.raises(BlobError, match="jobs/j/b: not there"):
            read()


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/jobs/../../x",
        "/jobs/%2e%2e/x",
        "x/jobs/j/a",
        "",
        "/jobs/" + "a" * 251,
        "/jobs" + "/a" * 2000,
    ],
)
def test_a_pointer_out_of_the_store_is_refused(objects: Objects, path: str) -> None:
    blob = replace(objects.put_bytes("jobs/j/a", b"abc", "text/plain"), uri=objects.url + path)
    with pytest.raises(BlobError, match="outside"):
        objects.get_bytes(blob)


@pytest.mark.parametrize("job_id", ["..", "a/../../b", "a//b", "/etc", "a\0b", ""])
def test_a_job_id_with_a_path_in_it_makes_no_key(job_id: str) -> None:
    with pytest.raises(ValueError, match="not an object key"):
        job_key(job_id, "frames", "0-1")


def test_a_file_is_stored_with_its_sha256(objects: Objects, tmp_path: Path) -> None:
    source = tmp_path / "v.mp4"
    source.write_bytes(b"video")
    blob = objects.put_file("jobs/j/v.mp4", source, "video/mp4", algorithm="sha256")
    assert blob.digest == file_digest(source, "sha256")
    assert blob.digest.startswith("sha256:")
    assert objects.get_bytes(blob) == b"video"


def test_done_work_is_remembered(objects: Objects) -> None:
    assert objects.get_manifest("ab12") is None
    objects.put_manifest("ab12", b"event")
    assert Objects(objects.url).get_manifest("ab12") == b"event"
