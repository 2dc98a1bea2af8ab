"""The exit statuses of the `mlc` command."""

OK, WRONG_INPUT, USAGE, DEFECT, INTERRUPTED = 0, 1, 2, 101, 130
"""Done; the input is wrong; the command line or a file is; a defect of mlc; interrupted, as shells report it."""
