"""The folder of the cache: where it is, what it is said to hold, and what clearing it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from st_paragram.core import cache
from st_paragram.core.encoding.find import homes
from st_paragram.core.files import cache_folder, locked, writable_cache
from st_paragram.core.known_files import KnownDigest, known_content_digest
from st_paragram.errors import ParagramError

ID = "0123456789abcdef"
OURS = {
    f"stores/en-es-{ID}.h5": "stores",
    f"tasks/qa/es-{ID}.h5": "tasks",
    f"tasks/qa/es-{ID}.contexts.h5": "tasks",
    "built-in-40000.en-es.tsv": "built-in",
    "stores/.en-es-1.h5.0123456789ab.part": "unfinished",
    f"store-digests/{ID}": "digests",
    f"models/{ID}": "digests",
    f"embeddings/{ID}": "digests",
    "lid/lid.176.ftz": "lid",
}
OTHERS = ("notes.txt", "stores/mine.h5", f"stores/deep/en-es-{ID}.h5", f"tasks/es-{ID}.h5", "lid/mine", "p-sp-xx/model")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with a file of each kind, a model, and files that this package has not made."""
    root = tmp_path / "cache"
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(root))
    for name in (*OURS, *OTHERS, "p-sp-es/st_paragram.json", "stores/.en-es-2.h5.work/read/1"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"12345")
    return root


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_one_variable_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "st_paragram"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ST_PARAGRAM_CACHE", "~/kept")
    assert cache_folder() == tmp_path / "home" / "kept"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ST_PARAGRAM_CACHE", "here")
    assert cache_folder() == tmp_path / "here"
    monkeypatch.setenv("ST_PARAGRAM_CACHE", "")
    assert cache_folder() == tmp_path / "st_paragram"


def test_a_user_without_a_home_folder(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(ParagramError, match="set ST_PARAGRAM_CACHE to a folder"):
        writable_cache("stores")
    (tmp_path / "file").write_bytes(b"one")
    KnownDigest("models", [tmp_path / "file"]).write("0" * 64)
    assert KnownDigest("models", [tmp_path / "file"]).read() is None
    assert len(known_content_digest("models", tmp_path / "file")) == 64
    assert homes() == []


def test_a_cache_that_cannot_be_written_is_refused_with_the_variable(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        ParagramError, match="stores: the cache is not writable; set ST_PARAGRAM_CACHE to a writable folder"
    ):
        writable_cache("stores")
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "new"))
    assert writable_cache("stores") == tmp_path / "new" / "stores" and writable_cache() == tmp_path / "new"
    assert not (tmp_path / "new").exists()


def test_entries_have_kinds_and_sizes(folder):
    found = {each.path.relative_to(folder).as_posix(): each for each in cache.entries()}
    model, work = "p-sp-es", "stores/.en-es-2.h5.work"
    assert {name: each.kind for name, each in found.items()} == {**OURS, model: "models", work: "unfinished"}
    assert {each.size for each in found.values()} == {5}
    assert found[f"tasks/qa/es-{ID}.h5"].made_from() == "qa, es"
    assert found[f"stores/en-es-{ID}.h5"].made_from() == ""  # damaged
    assert abs(found[model].used - time.time()) < 60


def test_what_is_made_again_is_cleared_and_nothing_else(folder):
    assert all(cache.clear(each) for each in cache.chosen())
    left = files(folder) - {"stores/in-use.lock", "tasks/qa/in-use.lock"}
    assert left == {*OTHERS, "p-sp-es/st_paragram.json", "lid/lid.176.ftz"}


def test_kinds_and_ages(folder):
    assert {each.kind for each in cache.chosen(["lid", "digests"])} == {"lid", "digests"}
    assert cache.chosen(older_than=1) == []
    old = folder / f"stores/en-es-{ID}.h5"
    os.utime(old, (time.time() - 3 * 86_400,) * 2)
    assert [each.path for each in cache.chosen(older_than=2)] == [old]
    assert cache.chosen(older_than=4) == []


def test_links_are_neither_followed_nor_removed(folder, tmp_path):
    outside = tmp_path / "outside"
    for name in (f"en-es-{ID}.h5", f"sub/en-es-{ID}.h5"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_bytes(b"precious")
    (folder / f"stores/en-de-{ID}.h5").symlink_to(outside / f"en-es-{ID}.h5")
    (folder / "tasks" / "nli").symlink_to(outside / "sub", target_is_directory=True)
    (folder / "stores/.en-es-2.h5.work/link").symlink_to(outside, target_is_directory=True)
    found = cache.chosen()
    assert not any("en-de" in str(each.path) or "nli" in str(each.path) for each in found)
    assert all(cache.clear(each) for each in found)
    assert files(outside) == {f"en-es-{ID}.h5", f"sub/en-es-{ID}.h5"}
    assert (folder / f"stores/en-de-{ID}.h5").is_symlink()


def test_a_folder_that_became_a_link_is_left_alone(folder, tmp_path):
    (entry,) = cache.chosen(["built-in"])
    (store,) = cache.chosen(["stores"])
    (folder / "stores").rename(tmp_path / "moved")
    (folder / "stores").symlink_to(tmp_path / "moved", target_is_directory=True)
    assert not cache.clear(store) and (tmp_path / "moved" / store.path.name).exists()
    assert cache.clear(entry)


NAMES = r"((stores|tasks|lid|models|x)/)?[a-z.-]{1,4}[0-9a-f]{0,3}(\.h5|\.tsv)?"
HOLD = """
import sys
from pathlib import Path
from st_paragram.core.cache import keep_in_use
keep_in_use(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(cache.fcntl is None, reason="Windows keeps open files by itself")
def test_what_another_process_reads_or_makes_stays(folder):
    (store,) = cache.chosen(["stores"])
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    assert not cache.clear(store) and store.path.exists()
    process.communicate("")
    with locked(folder / "stores"):
        assert [cache.clear(each) for each in cache.chosen(["stores", "unfinished", "built-in"])] == [False] * 4
    assert cache.clear(store) and cache.clear(store)  # gone is gone


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.lists(st.from_regex(r"((stores|tasks|lid|models|x)/)?[a-z.-]{1,4}[0-9a-f]{0,3}(\.h5|\.tsv)?", fullmatch=True))
)
def test_files_with_other_names_stay(tmp_path, monkeypatch, names):
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path))
    for name in names:
        if not name.rpartition("/")[2].strip(".") or (tmp_path / name).exists():
            continue
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    before = files(tmp_path)
    assert cache.chosen(cache.KINDS) == [] and files(tmp_path) == before
