"""Files that only their owner may change: the folder of the cache, and the key that authenticates its entries."""
from __future__ import annotations

import grp
import os
import pwd
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlc.backends import cache, private
from mlc.backends.cache import Store
from mlc.backends.private import Exposed, exposed, make_folder, secret

NAME = "0" * 64


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(cache, "_warned", False)
    monkeypatch.setattr(cache, "changed_since_start", lambda: False)
    yield Store(tmp_path / "cache", 1 << 20, tmp_path / "config" / "key")


def again(store: Store) -> Store:
    """The same folder in another process."""
    return Store(store.folder, store.limit, store.secret_file)


# -- entries ----------------------------------------------------------------------------------------------------------
def test_entries_written_with_another_key_are_not_believed(store: Store, tmp_path: Path) -> None:
    """As in a folder that was copied from somebody, or that a pull request's build has filled."""
    store.put("module", NAME, {}, {"code": b"x"})
    assert again(store).get("module", NAME) is not None
    other = Store(store.folder, store.limit, tmp_path / "config" / "another")
    assert other.get("module", NAME) is None and not list(store.entries())
    other.put("module", NAME, {}, {"code": b"y"})
    (name, why), = store.verify()
    assert name == f"module-{NAME}" and "another key" in why


def test_without_a_place_for_the_key_nothing_is_believed(tmp_path: Path, store: Store) -> None:
    store.put("module", NAME, {}, {})
    with pytest.warns(RuntimeWarning, match="HOME is not set.*MLC_CACHE_KEY"):
        assert Store(store.folder, store.limit, None).get("module", NAME) is None


def test_a_key_that_others_may_read_is_not_used(store: Store) -> None:
    store.put("module", NAME, {}, {})
    assert store.secret_file is not None
    store.secret_file.chmod(0o640)
    with pytest.warns(RuntimeWarning, match="others may read it; chmod 600"):
        assert again(store).get("module", NAME) is None


# -- the key ----------------------------------------------------------------------------------------------------------
def test_the_key_is_drawn_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "config" / "mlc" / "key"
    key = secret(path)
    assert len(key) == 32 and secret(path) == key and secret(tmp_path / "other") != key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", bytes(64), b"half of a key"])
def test_a_key_whose_writer_was_interrupted_is_drawn_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_bytes(content)
    key = secret(path)
    assert key != content[:32] and secret(path) == key


def test_a_key_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    secret(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    with pytest.raises(OSError, match="symbolic links"):
        secret(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(Exposed, match="not a regular file"):
        secret(tmp_path / "pipe")


def test_processes_that_start_at_once_get_one_key(tmp_path: Path) -> None:
    path, (start, go), (answers, answer) = tmp_path / "new" / "key", os.pipe(), os.pipe()
    children = list[int]()
    for _ in range(8):
        if (process := os.fork()) == 0:
            os.close(go)
            os.read(start, 1)                              # all go on when the other end is closed
            os.write(answer, secret(path))
            os._exit(0)
        children.append(process)
    os.close(go)
    assert [os.waitpid(process, 0)[1] for process in children] == [0] * 8
    assert os.read(answers, 4096) == secret(path) * 8
    for descriptor in (start, answers, answer):
        os.close(descriptor)


# -- folders ----------------------------------------------------------------------------------------------------------
def test_folders_are_made_for_their_owner_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    mask = os.umask(0)
    try:
        make_folder(folder)
    finally:
        os.umask(mask)
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o700 for p in (folder, folder.parent, folder.parent.parent))
    assert exposed(folder) is None


def test_a_parent_that_a_group_may_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "team" / "cache"
    make_folder(folder)
    folder.parent.chmod(0o770)
    monkeypatch.setattr(private, "_is_own_group", lambda gid: False)
    assert f"they may write to {folder.parent}" in str(exposed(folder))
    monkeypatch.setattr(private, "_is_own_group", lambda gid: True)     # of one user, as many systems make them
    assert exposed(folder) is None
    folder.chmod(0o770)
    assert exposed(folder) == "others may write to it"


def test_which_groups_are_of_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def group(name: str, members: list[str]) -> None:
        monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, members)))

    me = pwd.getpwuid(os.geteuid())
    group(me.pw_name, [])
    assert private._is_own_group(me.pw_gid) and not private._is_own_group(me.pw_gid + 1)
    group(me.pw_name, [me.pw_name, "somebody"])
    assert not private._is_own_group(me.pw_gid)
    group("staff", [])
    assert not private._is_own_group(me.pw_gid)


def test_links_of_others_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder(tmp_path / "there")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert exposed(tmp_path / "link") is None
    if os.geteuid():
        pytest.skip("only root gives files away")
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    assert exposed(tmp_path / "link") == f"{tmp_path / 'link'} is a link of user 12345"


def test_a_sound_cache_says_nothing(store: Store) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put("module", NAME, {"a": 1}, {"code": b"x"})
        found = again(store).get("module", NAME)
    assert found is not None and bytes(found[1]["code"]) == b"x"
