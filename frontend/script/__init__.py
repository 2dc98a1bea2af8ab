"""Python control flow: the `if`, `while`, `for` and so on of a function are recorded if they depend on tensors.

`source` finds the syntax tree of a function; `jumps`, `liveness` and `rewrite` transform it so that each construct
calls `runtime`. That dispatches on the values: on Python values it has Python's semantics, on tracers it records loops
and conditions (`frontend/loop_carried`). `capture` does all this, once for each function.
"""
