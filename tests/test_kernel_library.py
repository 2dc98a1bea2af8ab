"""The kernel library: code that has come with mlc is used where it fits, and has the bits of the host's own."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import cache, kernel_library
from mlc.backends.cpu import runtime, targets
from mlc.backends.cpu.toolchain import Toolchain
from mlc.frontend import compiler, eager
from mlc.tools import cli
from mlc.tools.kernel_library import build

X = mlc.tensor(np.linspace(-2, 3, 30, dtype=np.float32).reshape(5, 6))


def program() -> Any:
    """An operation that no other test needs for these types."""
    return mlc.logaddexp(X, X * 2.0)


def run() -> Any:
    """Its result by kernels that this process does not have yet."""
    with eager.compiled_by(lambda module, device: compiler.compiler().compile(module, device)):
        return program().numpy()


@pytest.fixture(scope="module", autouse=True)
def few_requests() -> Iterator[None]:
    """A library has the runtime code that its process has asked for: here not that of every test before."""
    run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "REQUESTS", {what: runtime.REQUESTS[what] for what in ("support", "threads")})
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of the program for this machine, which takes seconds to compile."""
    level = targets.level_of(targets.host())
    assert level is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "PROGRAMS", {"one": program})
        modules = [*build.collected(["one"]).values()]
        entries = [*(build.entry(module, level) for module in modules), *build.runtime_of(level)]
    return kernel_library.write(tmp_path_factory.mktemp("library"), level, entries)


@pytest.fixture
def library(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library in place of that of the installation; the compile cache is empty."""
    monkeypatch.setattr(build, "PROGRAMS", {"one": program})
    path = Path(shutil.copy(built, tmp_path))
    monkeypatch.setattr(kernel_library, "FOLDER", tmp_path)
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("mlc.backends.cached_code._cache", {})
    kernel_library._opened.cache_clear()
    return path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets that code is compiled for from now on."""
    found, compile = list[str](), Toolchain.compile

    def noted(chain: Toolchain, module: Any, cache: bool) -> Any:
        found.append(chain.target.name)
        return compile(chain, module, cache)

    monkeypatch.setattr(Toolchain, "compile", noted)
    return found


def test_code_of_the_library_is_not_compiled_and_has_the_same_bits(
        library: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = run()
    store = cache.store()
    assert not compiled and store is not None and not [name for name, _ in store.entries() if "module" in name.name]
    monkeypatch.setattr("mlc.backends.cached_code._cache", {})
    monkeypatch.setenv("MLC_CACHE", "0")
    np.testing.assert_array_equal(run(), found)
    assert compiled


def test_runtime_code_comes_from_the_library(library: Path) -> None:
    for what in runtime.REQUESTS:
        found = kernel_library.lookup("runtime", [what])
        assert found is not None and found[1][:4] == b"\x7fELF"


def other_sources(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_library, "versions", lambda: {"mlc": "0" * 64})


def a_changed_byte(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def a_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(path.read_bytes()[:100])


def another_level(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_library.write(path.parent, targets.LEVELS["x86-64-v2"], [])
    path.with_name("x86-64-v2.bin").replace(path)


def no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [other_sources, a_changed_byte, a_cut, another_level, no_file])
def test_a_library_that_does_not_fit_counts_as_absent(
        change: Callable[[Path, pytest.MonkeyPatch], None], library: Path, compiled: list[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    change(library, monkeypatch)
    run()
    assert compiled


@pytest.mark.parametrize("name", targets.LEVELS)
def test_the_level_of_a_machine_has_its_machine_model_and_runs_there(name: str) -> None:
    level = targets.level_of(targets.LEVELS[name])
    assert level is not None and level.machine == targets.LEVELS[name].machine and targets.LEVELS[name].runs(level)


def test_another_machine_has_no_level() -> None:
    assert targets.level_of(targets.ARM["aarch64"]) is None


def test_warm_fills_the_cache_once(library: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    """With operations; runtime code is added whenever something asks for it first, which depends on earlier tests."""
    monkeypatch.setattr(build, "runtime_of", lambda level: [])
    library.unlink()
    assert cli.main(["cache", "warm"]) == 0
    assert " 0 entries added" not in (first := capsys.readouterr().out) and "entries added" in first
    compiled.clear()
    run()
    assert not compiled
    assert cli.main(["cache", "warm"]) == 0
    assert " 0 entries added" in capsys.readouterr().out


def test_the_build_of_a_wheel_has_its_modules_and_those_of_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip makes numpy known by PYTHONPATH in the environment that a wheel is built in."""
    commands: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", lambda cmdclass: commands.update(cmdclass))
    runpy.run_path(str(Path(mlc.__file__).parents[1] / "setup.py"))
    monkeypatch.setattr("setuptools.command.build_py.build_py.run", lambda self: None)
    given: list[str] = []

    def run(command: Any, env: dict[str, str], check: bool) -> SimpleNamespace:
        given.append(env["PYTHONPATH"])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setenv("PYTHONPATH", "/of/pip")
    command = object.__new__(commands["build_py"])
    command.editable_mode, command.build_lib = False, str(tmp_path)
    command.run()
    assert given == [f"{tmp_path}{os.pathsep}/of/pip"]
