"""Toolchain for processors: from a recorded module to native code."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.backends import image, kernel_library, named_code
from mlc.backends.cpu import targets
from mlc.backends.executable import Executable
from mlc.backends.image import Image
from mlc.backends.target import Target
from mlc.backends.timed import TimedExecutable
from mlc.dialects.builtin import Module
from mlc.ir.instrumentation import CHECKS, NONE, TIMES, Instrumentation
from mlc.ir.passes import Pipeline
from mlc.passes import pipeline


# What starts compilers is imported lazily: a program whose image is cached never needs it.
class Toolchain:
    """Toolchain of one processor.

    target   target of code generation; the default is the host
    added    what the code has besides: checks, or the times of kernels
    threads  maximum number of threads that loaded code uses at once; None: that of the process
    """

    kind = "module"

    def __init__(self, target: Target | None = None, added: Instrumentation = NONE,
                 threads: int | None = None) -> None:
        self.target = target or targets.host()
        self.added = added
        self.threads = threads

    def key(self) -> Sequence[str]:
        return str(pipeline.order(self.target.machine, self.added)), repr(self.target), *["names"] * bool(
            named_code.folder())

    def load_context(self) -> int | None:
        return self.threads

    def lower(self, module: Module) -> Module:
        """To level `loop`: the passes below are part of the compilation of each kernel."""
        from mlc.backends import compile_many
        compile_many.start_ahead(sum(1 for _ in module.walk()))
        try:
            pipeline.lower(module, "loop", self.target.machine, added=self.added)
        except BaseException:
            compile_many.dismiss()
            raise
        return module

    def compile(self, module: Module, cache: bool) -> Image:
        from mlc.backends import compile_many
        try:
            return self._compile(module, cache)
        finally:
            compile_many.dismiss()

    def _compile(self, module: Module, cache: bool) -> Image:
        if cache and self.added is not CHECKS:
            return image.compile_kernels(module, self.target)
        Pipeline(pipeline.below_loop(self.target.machine, self.added)).run(module)
        return image.compile_image(module, self.target)

    def load(self, image: Image) -> Executable:
        kind = TimedExecutable if self.added is TIMES else Executable
        return kind(image, threads=self.threads)

    def lookup(self, key: str) -> Image | None:
        return image.lookup(key)

    def installed(self, text: str) -> Image | None:
        if self.target != targets.host() or named_code.folder():
            return None
        found = kernel_library.lookup("module", self.library_key(text))
        return None if found is None else Image.of(*found)

    def library_key(self, text: str) -> Sequence[str]:
        """Everything that the code of a module depends on besides the sources and the level, for the kernel library."""
        return text, str(pipeline.order(self.target.machine, self.added))

    def store(self, key: str, made: Image) -> None:
        image.store(key, made)


def toolchain(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
              added: Instrumentation = NONE, threads: int | None = None, here: bool = True) -> Toolchain:
    """The toolchain of the processor; `graph` and `precision` apply to GPUs only."""
    return Toolchain(target, added, threads)
