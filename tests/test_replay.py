"""Records of emitted code, compared with later code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlc.dialects import tensor
from mlc.tools.exit_status import OK, of_piped
from mlc.tools.replay.__main__ import main

SOME = ["--only", "sample (log_)?softmax-7xf64$", "--targets", "x86-64-v3,cuda:sm_90"]


def test_a_change_of_what_is_emitted_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(tmp_path), *SOME]) == 0
    assert main(["compare", str(tmp_path), *SOME]) == 0
    assert "4 compared, 0 differ" in capsys.readouterr().out
    monkeypatch.setattr(tensor.Exp, "expand", tensor.Tanh.expand)
    assert main(["compare", str(tmp_path), *SOME]) == 1
    out = capsys.readouterr().out
    assert "4 compared, 4 differ" in out and "sample softmax-7xf64 on x86-64-v3: " in out and "code" in out
    assert "+++ now" in out


@pytest.mark.slow
def test_what_is_not_written_down_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["record", str(tmp_path), *SOME, "--shard", "0/2"])
    main(["compare", str(tmp_path), *SOME])
    assert "2 are not in the record" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "nothing"), *SOME]) == 1


def test_output_that_nobody_reads_to_its_end_is_no_error() -> None:
    def unread() -> int:
        raise BrokenPipeError
    assert of_piped(unread) == OK and of_piped(lambda: 1) == 1
