"""The table of error codes: complete, without entries that nothing raises, and its examples do raise them."""
from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from mlc.frontend.language import ProgramError, load
from mlc.ir.diag import BackendError, Error
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.verify import verify
from mlc.tools import codes
from mlc.tools.cli import main

ROOT = Path(__file__).parent.parent
FOLDERS = ("ir", "dialects", "passes", "backends", "frontend", "mlc", "tools")
TABLE = codes.load()


@cache
def raised() -> dict[str, list[str]]:
    """The codes in the sources, with the files that name them; the table itself does not count."""
    found = dict[str, list[str]]()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            if name.parts[:2] == ("tools", "codes") or any(p.is_symlink() for p in path.parents):
                continue
            for code in re.findall(r'"(MLC\d{4})"', path.read_text(encoding="utf-8")):
                found.setdefault(code, []).append(name.as_posix())
    return found


def test_every_code_is_explained() -> None:
    missing = {code: files for code, files in raised().items() if code not in TABLE}
    assert not missing, f"add them to tools/codes: {missing}"


def test_every_entry_is_raised() -> None:
    assert not TABLE.keys() - raised().keys(), "nothing raises them; remove them from tools/codes"


def test_codes_are_unique_and_whole() -> None:
    names = list[str]()
    for path in sorted((ROOT / "tools" / "codes").glob("*.py")):
        names += re.findall(r"(?m)^(MLC\d{4}) ", path.read_text(encoding="utf-8")) if path.stem != "__init__" else []
    assert sorted(names) == sorted(set(names)) == sorted(TABLE)
    for code in TABLE.values():
        assert code.kind in ("mlir", "python", "mlc", "shell", "text"), code.name
        assert code.title.endswith(".") and code.example.strip() and code.fix.endswith("."), code.name


def codes_of(kind: str) -> list[codes.Code]:
    return [code for code in TABLE.values() if code.kind == kind]


@pytest.mark.parametrize("code", codes_of("mlir"), ids=lambda c: c.name)
def test_mlir_examples(code: codes.Code) -> None:
    with pytest.raises(Error) as caught:
        module = parse_module(code.example, "example.mlir")
        verify(module)
        Pipeline(parse_pipeline(code.passes)).run(module)
    assert caught.value.code == code.name, str(caught.value)
    assert caught.value.loc.line or isinstance(caught.value, BackendError), "the message names no line"


@pytest.mark.parametrize("code", codes_of("python"), ids=lambda c: c.name)
def test_python_examples(code: codes.Code, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(code.example)
    with pytest.raises(Error) as caught:
        runpy.run_path(str(program))
    assert caught.value.code == code.name, str(caught.value)


@pytest.mark.parametrize("code", codes_of("mlc"), ids=lambda c: c.name)
def test_language_examples(code: codes.Code, tmp_path: Path) -> None:
    program = tmp_path / "example.mlc"
    program.write_text(code.example)
    with pytest.raises(ProgramError) as caught:
        load(program)
    assert [e.code for e in caught.value.diagnostics] == [code.name], str(caught.value)


@pytest.mark.parametrize("code", codes_of("shell"), ids=lambda c: c.name)
def test_shell_examples(code: codes.Code, sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = code.example.split()
    assert program == "mlc"
    status = main([w.strip("'") for w in words])
    assert f"error[{code.name}]" in capsys.readouterr().err
    assert status in (1, 2)


def test_the_text_of_an_entry() -> None:
    text = TABLE["MLC0114"].text()
    assert text.startswith("MLC0114: An axis is out of range") and "tensor.reduce_sum" in text and "fix: count" in text


@pytest.mark.parametrize("spelling", ["MLC0114", "mlc0114", "114", "0114"])
def test_explain_error(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-error", spelling]) == 0
    assert capsys.readouterr().out == TABLE["MLC0114"].text()


def test_explain_error_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-error", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TABLE)
