"""Compare the emitted code and the compile time of two versions of the compiler.

`python -m mlc.tools.replay record DIR` records the output of the passes for every sample of the registry, whole
programs and the examples in the text language: the text at each level, LLVM IR or PTX, the size of the code, and the
seconds of every pass. `compare DIR`, with other sources, reports the differences by subject, and which passes got
slower. Recorded subjects are skipped, so both can be interrupted, and divided among processes with `--shard`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mlc.backends.target import Target
from mlc.tools.exit_status import of_piped
from mlc.tools.replay.comparison import Comparison
from mlc.tools.replay.records import Records, observed
from mlc.tools.replay.subjects import subjects

TARGETS = ("x86-64-v3", "x86-64-v4", "cuda:sm_80", "cuda:sm_90")


def main(arguments: Sequence[str] | None = None) -> int:
    """0; of `compare` 1 if anything that is emitted differs, or nothing was compared."""
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.replay", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path, help="where the record is")
    parser.add_argument("--only", default="", metavar="PATTERN",
                        help="subjects in whose names this expression is found")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"machines (default {','.join(TARGETS)})")
    parser.add_argument("--each", type=int, metavar="N", help="at most so many samples of every operation")
    parser.add_argument("--shard", default="0/1", metavar="I/N",
                        help="of these only each N-th, beginning with number I")
    parser.add_argument("--diff", type=int, default=1, metavar="N",
                        help="compare: show how the texts of so many subjects differ")
    options = parser.parse_args(arguments)
    first, _, step = options.shard.partition("/")
    chosen = [s for s in subjects(options.each) if re.search(options.only, s.name)][int(first)::int(step)]
    targets = [Target.parse(name) for name in options.targets.split(",")]
    records = Records(options.folder, options.shard)
    comparison = Comparison(records, options.diff)
    for subject in chosen:
        for target in targets:
            known = records.known.get((subject.name, target.name))
            if options.action == "record":
                if known is None:
                    records.add(subject.name, target.name, observed(subject.module(), target))
            elif known is None:
                comparison.new.append(f"{subject.name} on {target}")
            else:
                comparison.add(subject.name, target.name, known, observed(subject.module(), target))
    if options.action == "record":
        return 0
    print(comparison)
    return 1 if comparison.changed or not comparison.count else 0


if __name__ == "__main__":
    sys.exit(of_piped(main))
