"""Records of the output of the passes for a module and a target, and the folder that stores them."""

from __future__ import annotations

import gzip
import hashlib
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlc.backends.cuda import ptx
from mlc.backends.emit_llvm import emit
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import Error, InternalError
from mlc.ir.files import write_whole
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from mlc.tools.fuzzing.journal import Journal
from mlc.tools.replay.subjects import ROOT

PLACE = re.compile(r"(?<=tools/replay/__main__\.py):\d+")
"""The line of `record` or `compare` that appears as the user's location; texts do not depend on the sources' path."""


@dataclass
class Observed:
    """The output observed for one module.

    texts    by level, and "code" for LLVM IR or PTX; "refused" for the error of a module that is not for this target
    size     bytes of machine code, or characters of PTX
    memory   how the text of a function's arena and temporaries says how much it needs
    seconds  of processor time, by the number and name of the pass
    """

    texts: dict[str, str]
    size: int
    memory: list[str]
    seconds: dict[str, float]


def observed(module: Op, target: Target) -> Observed:
    """Lower a module for a target, recording its text at every level."""
    out = Observed({}, 0, [], {})
    rows = pipeline.order(target.machine)
    steps = pipeline.steps("llvm", target.machine, target.products(None))
    levels = [level for level, text, _ in rows for _ in parse_pipeline(text)]
    try:
        for number, step in enumerate(steps):
            start = time.process_time()
            Pipeline([step]).run(module)
            out.seconds[f"{number:02d} {step.transform.name}"] = time.process_time() - start
            if number + 1 == len(steps) or levels[number + 1] != levels[number]:
                out.texts[levels[number]] = to_text(module, locations=False)
        out.memory = [f"{op.attrs[name]}" for op in module.walk() for name in ("arena", "temporaries")
                      if name in op.attrs]
        if target.is_gpu:
            out.texts["code"] = ptx.ptx(ptx.kernels(module), target)
            out.size = len(out.texts["code"])
        else:
            out.texts["code"] = emit(module, target)
            out.size = len(compile_object(out.texts["code"], target))
    except InternalError:
        raise
    except Error as error:                                 # not for this target: that has to stay so
        out.texts["refused"] = f"{error.code} {error.message}"
    out.texts = {level: PLACE.sub("", text.replace(f"{ROOT}/", "")) for level, text in out.texts.items()}
    return out


class Records:
    """A folder: a line for each (subject, target), and the texts, each once, by their SHA-256."""

    def __init__(self, folder: Path, shard: str) -> None:
        self.texts = folder / "texts"
        self.texts.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / f"{shard.replace('/', '-of-')}.jsonl")
        self.known: dict[tuple[str, str], Observed] = {}
        for path in sorted(folder.glob("*.jsonl")):
            for row in Journal(path).entries():
                key = row.pop("subject"), row.pop("target")
                self.known[key] = Observed(**row)

    def add(self, subject: str, target: str, found: Observed) -> None:
        """Store a record; its texts are replaced by their digests."""
        kept = {level: self._keep(text) for level, text in found.texts.items()}
        self.journal.add(subject=subject, target=target, **asdict(replace(found, texts=kept)))

    def _keep(self, text: str) -> str:
        name = digest(text)
        path = self.texts / f"{name}.gz"
        if not path.exists():
            write_whole(path, [gzip.compress(text.encode(), mtime=0)])
        return name

    def text(self, name: str) -> str:
        """The text of a digest."""
        return gzip.decompress((self.texts / f"{name}.gz").read_bytes()).decode()


def digest(text: str) -> str:
    """Digest that represents a text in a record."""
    return hashlib.sha256(text.encode()).hexdigest()
