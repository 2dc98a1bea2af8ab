"""Toolchain for processors: from a recorded module to native code."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.backends import image, named_code
from mlc.backends.cpu import targets
from mlc.backends.executable import Executable
from mlc.backends.image import Image
from mlc.backends.target import Target
from mlc.backends.timed import TimedExecutable
from mlc.dialects.builtin import Module
from mlc.ir.passes import Pipeline
from mlc.passes import pipeline


class Toolchain:
    """Toolchain of one processor.

    target   target of code generation; the default is the host
    checked  whether code reports undefined behaviour (passes/insert_checks)
    threads  maximum number of threads that loaded code uses at once; None: that of the process
    timed    whether code times its kernels, for a profile (passes/time_kernels.py)
    """

    kind = "module"

    def __init__(self, target: Target | None = None, checked: bool = False, threads: int | None = None,
                 timed: bool = False) -> None:
        self.target = target or targets.host()
        self.checked = checked
        self.threads = threads
        self.timed = timed

    def key(self) -> Sequence[str]:
        return str(pipeline.order(self.target.machine, self.checked, self.timed)), repr(self.target), *["names"] * bool(
            named_code.folder())

    def load_context(self) -> int | None:
        return self.threads

    def lower(self, module: Module) -> Module:
        """To level `loop`: the passes below are part of the compilation of each kernel."""
        pipeline.lower(module, "loop", self.target.machine, timed=self.timed)
        return module

    def compile(self, module: Module, cache: bool) -> Image:
        if cache and not self.checked:
            return image.compile_kernels(module, self.target)
        Pipeline(pipeline.below_loop(self.target.machine, self.checked)).run(module)
        return image.compile_image(module, self.target)

    def load(self, image: Image) -> Executable:
        kind = TimedExecutable if self.timed else Executable
        return kind(image, threads=self.threads)

    def lookup(self, key: str) -> Image | None:
        return image.lookup(key)

    def store(self, key: str, made: Image) -> None:
        image.store(key, made)


def toolchain(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
              checked: bool = False, timed: bool = False, threads: int | None = None, here: bool = True) -> Toolchain:
    """The toolchain of the processor; `graph` and `precision` apply to GPUs only."""
    return Toolchain(target, checked, threads, timed)
