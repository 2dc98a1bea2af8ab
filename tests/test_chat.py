"""mlc chat and mlc generate, with the model of examples/assistant."""
from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mlc.tools.cli import main
from tests.language_models import CASES, write_folder

ASSISTANT = str(Path(__file__).parent.parent / "examples" / "assistant")
SUM = "mlc.cumsum: Running sums: result[i] = input[0] + ... + input[i] along a dimension."


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    return status, *capsys.readouterr()


def test_a_question_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "chat", ASSISTANT, "--prompt", "What does mlc.cumsum do?", "--stats")
    assert (status, out) == (0, SUM + "\n")
    assert "tokens" in err and "per second" in err


def test_a_conversation_of_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    question = "What does mlc.cumsum do?\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(question * 9 + "/new\n" + question + "/quit\n" + question))
    status, out, _ = run(capsys, "chat", ASSISTANT)        # more than the model sees at once
    lines = out.splitlines()
    assert status == 0 and len(lines) == 10 and lines[0] == lines[-1] == SUM


@pytest.mark.slow
def test_drafts_and_beams(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "chat", ASSISTANT, "--prompt", "What does mlc.cumsum do?", "--stats", "--draft",
                           "lookup")
    assert (status, out) == (0, SUM + "\n") and "of them guessed" in err
    assert run(capsys, "generate", ASSISTANT, "The", "--max-tokens", "4", "--num-beams", "2")[0] == 0
    status, _, err = run(capsys, "generate", ASSISTANT, "The", "--num-beams", "2", "--temperature", "1")
    assert status == 1 and "MLC0993" in err


def test_texts_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "generate", ASSISTANT, "The tensor", "--json", "--max-tokens", "3", "--stop", "~")
    found = json.loads(out)
    assert status == 0 and len(found["tokens"]) == 3 and found["finish_reason"] == "length"


@pytest.mark.parametrize("words, code", [
    (["chat", "no-such-folder"], "MLC0910"), (["chat", "FOLDER"], "MLC0914"), (["generate", "FOLDER", "x"], "MLC0913"),
    (["generate", "FOLDER", "x", "--logprobs", "1"], "MLC0391"),
    (["generate", ASSISTANT, "x", "--stats", "--json"], "MLC0391"),
    (["generate", ASSISTANT, "x", "y", "--stats"], "MLC0391"),
    (["chat", ASSISTANT, "--top-p", "2", "--prompt", "x"],
                                                                 "MLC0916")])
def test_errors(words: list[str], code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = str(write_folder({**CASES["gpt2"], "n_layer": 1}, tmp_path))
    status, _, err = run(capsys, *(folder if w == "FOLDER" else w for w in words))
    assert status in (1, 2) and code in err
