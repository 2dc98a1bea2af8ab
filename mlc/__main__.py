"""The command as a module: `python -m mlc` is `mlc`."""

from mlc.tools.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
