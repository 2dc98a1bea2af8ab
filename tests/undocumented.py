"""Public names whose documentation is not whole yet. It may only shrink: tests/test_documentation.py sees to it."""

UNDOCUMENTED = frozenset("""
    Compiled Error Tensor UserError compile get_num_threads load lower native_entries optim.Optimizer save
    set_num_threads
""".split())
