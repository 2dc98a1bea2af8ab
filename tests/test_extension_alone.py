"""Modules far from where they were made: built without a compiler, imported by a Python that has nothing but numpy."""
from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import extension
from tests.test_digits import digits  # noqa: F401 (a fixture)

ROOT = Path(__file__).parent.parent
STEPS, BATCH = 200, 64

MODEL = """
import importlib.util
spec = importlib.util.spec_from_file_location("digits_example", {example!r})
digits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digits)
import mlc
mlc.manual_seed(0)
model = digits.Classifier()
step = mlc.compile(digits.training_step, donate=("model", "state"),
                   args=[model, digits.optimizer.init(model), mlc.spec("B", 64), mlc.spec("B", dtype="int64")])
answers = mlc.compile(digits.answers, args=[model, mlc.spec("B", 64)])
"""

ALONE = """
import sys
import numpy as np
import digits_step
given = np.load("given.npz")
def tree(prefix):
    out = {}
    for key in given.files:
        parts = key.split("/")
        if parts[0] == prefix:
            inner = out
            for part in parts[1:-1]:
                inner = inner.setdefault(part, {})
            inner[parts[-1]] = given[key].copy()
    return out
model, state = tree("model"), tree("state")
losses = []
for batch in given["batches"]:
    model, state, loss = digits_step.step(model, state, given["images"][batch], given["labels"][batch])
    losses.append(loss)
answers = digits_step.answers(model, given["images"])
np.savez("found.npz", losses=np.array(losses), answers=answers)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"mlc", "llvmlite", "safetensors", "ml_dtypes"}))
"""


def flat(prefix: str, tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix: tree}
    return {name: x for key, child in tree.items() for name, x in flat(f"{prefix}/{key}", child).items()}


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh virtual environment that holds numpy alone."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=True)
    done = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", "numpy"], capture_output=True,
                          text=True)
    if done.returncode:
        pytest.skip(f"numpy cannot be installed here: {done.stderr[-200:]}")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits training step and predictor, built where PATH has neither compiler nor linker."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "model.py").write_text(MODEL.format(example=str(ROOT / "examples" / "digits.py")))
    path = folder / "digits_step.so"
    subprocess.run([sys.executable, "-m", "mlc.tools.cli", "compile", str(folder / "model.py") + ":step,answers", "-o",
                    str(path)], check=True, cwd=ROOT, env={**os.environ, "PATH": str(folder)})
    return path


@pytest.mark.slow
def test_a_training_step_in_a_bare_environment(digits: Any, bare_python: Path, module: Path) -> None:  # noqa: F811
    """Its loss curve is that of the compiled function, to the bit, over 200 steps."""
    images, labels, _, _ = digits.load()
    batches = np.random.default_rng(0).integers(0, len(images), (STEPS, BATCH))
    mlc.manual_seed(7)
    model = digits.Classifier()
    state = digits.optimizer.init(model)
    held = extension.arrays((model, state))
    np.savez(module.parent / "given.npz", images=images, labels=labels, batches=batches,
             **flat("model", held[0]), **flat("state", held[1]))
    out = subprocess.run([bare_python, "-c", ALONE], cwd=module.parent, check=True, capture_output=True, text=True,
                         env={"PATH": ""})
    assert out.stdout.strip() == "[]"
    found = np.load(module.parent / "found.npz")
    want = []
    for batch in batches:
        model, state, loss = digits.train(model, state, images[batch], labels[batch])
        want.append(loss.numpy())
    assert found["losses"].dtype == np.float32 and found["losses"].tobytes() == np.array(want).tobytes()
    assert found["losses"][-10:].mean() < 0.5 * found["losses"][:10].mean()
    assert (found["answers"] == digits.predict(model, images).numpy()).all()


@pytest.mark.slow
def test_importing_takes_no_time(bare_python: Path, module: Path) -> None:
    program = ("import time, numpy; t = time.process_time(); import digits_step; "
               "print(time.process_time() - t)")
    out = subprocess.run([bare_python, "-c", program], cwd=module.parent, check=True, capture_output=True, text=True)
    assert float(out.stdout) < 0.02


@pytest.mark.slow
def test_the_predictor_is_under_200_kilobytes(digits: Any, tmp_path: Path) -> None:  # noqa: F811
    model = digits.Classifier()
    extension.write(tmp_path / "net.so", mlc.compile(model, args=[mlc.spec("B", 64)]))
    weights = sum(a.nbytes for a in extension.arrays(model).values())
    assert (tmp_path / "net.so").stat().st_size - weights < 200_000


OTHERS = [p for p in (Path.home() / ".pyenv" / "versions").glob("3.1[1-4].*/bin/python")
          if p.resolve() != Path(sys.executable).resolve()]


@pytest.mark.slow
@pytest.mark.skipif(not OTHERS, reason="no other Python from 3.11 to 3.14 is here")
@pytest.mark.parametrize("interpreter", OTHERS, ids=lambda p: p.parts[-3])
def test_other_versions_of_python(interpreter: Path, tmp_path: Path) -> None:
    """One file for all of them."""
    extension.write(tmp_path / "net.so", mlc.compile(double))
    subprocess.run([interpreter, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    if subprocess.run([python, "-m", "pip", "install", "-q", "numpy"], capture_output=True).returncode:
        pytest.skip("numpy cannot be installed here")
    program = "import numpy as np, net\nx = np.arange(5, dtype='f4')\nassert (net.double(x=x) == 2 * x).all()"
    subprocess.run([python, "-c", program], cwd=tmp_path, check=True)


def double(x: mlc.spec("N")) -> mlc.Tensor:  # type: ignore[valid-type]
    return x + x  # type: ignore[no-any-return]
