"""Versions that compiled code depends on besides the program."""
from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mlc.backends import versions


def test_what_is_told() -> None:
    found = versions.versions.__wrapped__()
    assert not found or (list(found) == ["mlc", "llvmlite", "numpy", "ml_dtypes", "python"] and all(found.values()))
    assert {"code.py", "passes/pipeline.py", "backends/link.py"} <= {name for name, _ in versions._sources()}


def test_packages_are_told_by_their_file() -> None:
    assert versions._installed("ml_dtypes") and not versions._installed("there_is_no_such_package")


def test_sources_that_came_after_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("")
    os.utime(source, (1000, 1000))                                      # installed files may keep their old times
    monkeypatch.setattr(versions, "_sources", lambda: [("a.py", str(source))])
    monkeypatch.setattr(versions, "_STARTED", time.time() + 1000)
    monkeypatch.setattr(versions, "UNCHANGED_FOR", 0.0)
    assert not versions.changed_since_start() and versions.versions.__wrapped__()
    monkeypatch.setattr(versions, "_STARTED", time.time() - 1000)
    assert versions.changed_since_start() and versions.versions.__wrapped__() == {}


def test_sources_are_not_looked_at_for_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def sources() -> list[tuple[str, str]]:
        looked.append(1)
        return []
    monkeypatch.setattr(versions, "_sources", sources)
    monkeypatch.setattr(versions, "_unchanged_at", float("-inf"))
    monkeypatch.setattr(versions, "UNCHANGED_FOR", 1000.0)
    assert not any(versions.changed_since_start() for _ in range(3)) and len(looked) == 1
