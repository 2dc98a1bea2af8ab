"""Python as it is written: a function's own `if`, `while`, `for` and so on become operations where tensors decide.

`source` finds the syntax of a function, `jumps`, `liveness` and `rewrite` make it that of a function which asks
`runtime` at each of them, and that one looks at the values: on Python's it does what Python does, on tensors that are
being recorded it records loops and conditions (`frontend/loop_carried`). `capture` does it, once for each function.
"""
