"""Make the documentation site: `python -m mlc.tools.site -o site`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from mlc.ir.diag import Error, UserError
from mlc.tools import files, report
from mlc.tools.site import build, explorer, gallery, links


def main(words: list[str] | None = None) -> int:
    """Make the site; the result is the exit status."""
    parser = argparse.ArgumentParser("python -m mlc.tools.site", description="Make the documentation site.")
    parser.add_argument("-o", "--output", type=report.output(files.check_output_folder), default="site",
                        help="the folder to write (default: site)")
    parser.add_argument("--no-pictures", action="store_true", help="a gallery without pictures, in less time")
    options = parser.parse_args(words)
    started = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            sources = Path(folder)
            build.gather(sources)
            gallery.write(build.ROOT / "examples", sources, not options.no_pictures)
            _say("the sources are gathered", started)
            build.build(sources, options.output)
        _say("the pages are made", started)
        explorer.write(build.ROOT / "examples", options.output / "explorer", build.HOME)
        _say("the explorer is made", started)
        if dead := links.dead_in_html(options.output):
            raise UserError(f"{len(dead)} links lead nowhere: {', '.join(dead[:20])}", code="MLC0931",
                            hint="mend them in the sources that the pages are made of")
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    _say(f"{options.output / 'index.html'}: {len(list(options.output.rglob('*.html')))} pages, no dead link", started)
    return 0


def _say(what: str, started: float) -> None:
    print(f"{time.perf_counter() - started:6.1f} s  {what}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
