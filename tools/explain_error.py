"""mlc explain-error: what an error code means, an example that raises it, and what to do about it."""

from __future__ import annotations

import argparse

from mlc.tools import codes, report

EXAMPLES = """examples:
  mlc explain-error MLC0114
  mlc explain-error --list
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("explain-error", "Explain an error code.", EXAMPLES)
    p.add_argument("code", nargs="?", help="such as MLC0114 (the prefix may be left out)")
    p.add_argument("--list", action="store_true", help="list every code")
    return p


def main(options: argparse.Namespace) -> int:
    table = codes.load()
    if options.list or options.code is None:
        for code in table.values():
            print(f"{code.name}  {code.title}")
        return 0
    name = options.code.upper().removeprefix("MLC")
    name = "MLC" + name.zfill(4)
    if name not in table:
        from difflib import get_close_matches
        near = get_close_matches(name, table, 1)
        raise report.usage_error(f"there is no error code {options.code!r}",
                                 f"did you mean {near[0]}? mlc explain-error --list shows all" if near else
                                 "mlc explain-error --list shows all", "MLC0396")
    print(table[name].text(), end="")
    return 0
