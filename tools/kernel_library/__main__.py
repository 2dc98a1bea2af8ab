"""Write kernel libraries; see the docstring of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlc.backends.cpu.targets import LEVELS, host, level_of
from mlc.tools.kernel_library import __doc__ as description
from mlc.tools.kernel_library.build import build


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.kernel_library", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--level", action="append", choices=LEVELS, help="by default that of this machine")
    options = parser.parse_args(arguments)
    own = level_of(host())
    levels = [LEVELS[name] for name in options.level or ()] or ([own] if own is not None else [])
    options.folder.mkdir(parents=True, exist_ok=True)
    for path, count, seconds in build(options.folder, levels):
        print(f"{path.name}: {count} entries, {path.stat().st_size / 1000:.0f} kB, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
