"""Comparison of a record with the current output of the passes."""

from __future__ import annotations

import difflib
import statistics
from collections import Counter, defaultdict
from itertools import islice

from mlc.tools.replay.records import Observed, Records, digest

LINES = 40
"""Of a difference that is shown."""


class Comparison:
    """Collects the differences.

    changed  lines that name a subject, a target and the levels that differ
    new      subjects that are not in the record
    """

    def __init__(self, records: Records, shown: int) -> None:
        self.records, self.shown = records, shown
        self.changed: list[str] = []
        self.new: list[str] = []
        self.diffs: list[str] = []
        self.levels = Counter[str]()
        self.count = 0
        self.sizes: list[float] = []
        self.seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def add(self, subject: str, target: str, before: Observed, now: Observed) -> None:
        """Compare one subject on one target."""
        self.count += 1
        for name, seconds in now.seconds.items():
            if name in before.seconds:
                self.seconds[name].append((before.seconds[name], seconds))
        if before.size and now.size:
            self.sizes.append(now.size / before.size)
        every = [*before.texts, *(level for level in now.texts if level not in before.texts)]
        differ = [level for level in every if before.texts.get(level) != (
            digest(now.texts[level]) if level in now.texts else None)]
        if before.memory != now.memory:
            differ.append("memory")
        if not differ:
            return
        self.levels.update(differ)
        size = f", {before.size} -> {now.size} bytes" if before.size != now.size else ""
        memory = f", memory {before.memory} -> {now.memory}" if "memory" in differ else ""
        self.changed.append(f"{subject} on {target}: {', '.join(differ)}{size}{memory}")
        if len(self.diffs) < self.shown and differ[0] != "memory":
            old = self.records.text(before.texts[differ[0]]) if differ[0] in before.texts else ""
            lines = difflib.unified_diff(old.splitlines(), now.texts.get(differ[0], "").splitlines(), "before", "now",
                                         lineterm="", n=1)
            self.diffs.append("\n".join([f"{subject} on {target}, {differ[0]}:", *islice(lines, LINES)]))

    def __str__(self) -> str:
        out = [f"{self.count} compared, {len(self.changed)} differ" + (
            f" ({', '.join(f'{level} {n}' for level, n in self.levels.items())})" if self.changed else "")]
        out += self.changed
        if self.new:
            out.append(f"{len(self.new)} are not in the record, the first of them {self.new[0]}")
        if self.sizes:
            out.append(f"size of the code: median ratio {statistics.median(self.sizes):.3f}")
        ratios = {name: sum(now for _, now in pairs) / max(sum(before for before, _ in pairs), 1e-9)
                  for name, pairs in self.seconds.items()}
        if ratios:
            out.append(f"seconds of a pass: median ratio {statistics.median(ratios.values()):.3f}")
            out += [f"  {name:24s} {sum(now for _, now in self.seconds[name]):8.3f} s, ratio {ratio:.3f}"
                    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])[:8]]
        return "\n".join([*out, *self.diffs])
