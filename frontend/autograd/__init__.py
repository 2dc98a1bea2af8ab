"""Define-by-run differentiation: eager operations on tensors that require a gradient are recorded, and run backward.

`graph` has the recorded graph, `operation_node` records one call of an operation and computes its vector-Jacobian
product as an operation of its own, and `engine` goes through the graph backward. `grad_mode` says whether anything is
recorded, and `differentiable` has the attributes and methods of tensors. `view_node` has the history of views and of
writes to them, `custom_function` functions whose backward the program defines, `saved_tensors` the hooks on what
nodes keep, and `hooks` those on what they compute. `tangents` has those of dual tensors, forward mode for eager
operations, and `pushforward` the Jacobian-vector product of an operation.
"""
