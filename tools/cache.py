"""mlc cache: show the location and contents of the compile cache, clear it, verify its entries, or fill it."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from typing import TYPE_CHECKING

from mlc.tools import report

if TYPE_CHECKING:
    from mlc.backends import cache

EXAMPLES = """examples:
  mlc cache info
  mlc cache verify
  mlc cache clear
  mlc cache warm
"""
WHAT = {"module": "compiled functions", "object": "kernels", "runtime": "parts of the runtime",
        "host": "processors"}


def parser() -> argparse.ArgumentParser:
    p = report.Parser("cache", "The compile cache of this machine.", EXAMPLES)
    p.add_argument("action", choices=["info", "clear", "verify", "warm"],
                   help="info: where it is, how much is in it; clear: delete all of it; verify: check every entry, "
                        "delete those that are damaged, and exit with 1 if there were any")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.backends import cache
    store = cache.store()
    if store is None:
        print(f"no cache: {'MLC_CACHE is 0' if os.environ.get('MLC_CACHE') == '0' else 'there is no folder for it'}")
        return 0
    if options.action == "clear":
        count, size = store.clear()
        print(f"deleted {count} entries, {megabytes(size)}")
        return 0
    actions = {"verify": verify, "info": info, "warm": warm}
    return actions[options.action](store)


def warm(store: cache.Store) -> int:
    """Compile what the kernel library has into the cache."""
    from mlc.tools.kernel_library import build
    before = {path.name for path, _ in store.entries()}
    count = build.warm()
    added = sum(path.name not in before for path, _ in store.entries())
    print(f"{count} operations, {added} entries added to {store.folder}")
    return 0


def info(store: cache.Store) -> int:
    """Print the contents of the folder."""
    found = list(store.entries())
    total = sum(status.st_size for _, status in found)
    print(f"folder     {store.folder}{'' if store.folder.exists() else ' (not there yet)'}")
    print(f"key        {store.secret_file or 'none: set HOME or MLC_CACHE_KEY'}")
    if why := store.problem():
        print(f"not used   {why}")
    print(f"entries    {len(found)}, {megabytes(total)} of {megabytes(store.limit)}")
    kinds = Counter(path.name.partition("-")[0] for path, _ in found)
    for kind, count in sorted(kinds.items()):
        print(f"           {count} {WHAT.get(kind, kind)}")
    if found:
        used = [status.st_mtime for _, status in found]
        print(f"last used  {day(min(used))} to {day(max(used))}")
    return 0


def verify(store: cache.Store) -> int:
    """Check every entry, and delete corrupt ones."""
    if why := store.problem():
        print(f"not used   {why}")
        return 1
    count = sum(1 for _ in store.entries())
    bad = store.verify()
    for name, why in bad:
        print(f"{name}: {why}")
    print(f"{count} entries checked, {f'{len(bad)} bad and deleted' if bad else 'all sound'}")
    return 1 if bad else 0


def megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
