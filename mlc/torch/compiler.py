"""The backend of `torch.compile`: functional graphs of ATen operators, forward and backward, to native code."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlc.backends.cpu.threads import checked
from mlc.frontend.fx.interpreter import Refusal, refusal_of
from mlc.frontend.fx.support import NUMBERS, SIZES, depends_on_elements, unsupported
from mlc.frontend.fx.table import find
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.torch.graph_function import GraphFunction, examples
from mlc.torch.partition import partitioned
from mlc.torch.recording import Recording, storage_of
from mlc.torch.reports import GraphReport, Source, remember

log = logging.getLogger("mlc.torch")
OPTIONS = {"fallback": True, "matmul_precision": None, "threads": None, "cache": True}
"""The options of the backend with what they are if they are not given."""


def backend(graph_module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
            mode: str | None = None) -> Callable[..., Any]:
    """Compile a graph for `torch.compile(model, backend="mlc")`, which calls this.

    Arguments and results share memory with PyTorch, without copies, unless strides have gaps. Forward and backward of a
    training step are compiled by mlc, after PyTorch's AOTAutograd has made them functional. Operators that mlc has not
    are left to PyTorch, and `mlc.torch.report` lists them.

    Args:
        graph_module: Graph of a part of the program, a `torch.fx.GraphModule`.
        example_inputs: Its arguments.
        options: `fallback`, whether PyTorch runs what mlc has not (True), or that is an error, which lists all of it;
            `matmul_precision`, as of `mlc.compile`; `threads`, how many this graph uses at most (None: as many as
            `mlc.get_num_threads`); `cache`, whether compiled code is looked for in mlc's caches and put there (True).
        mode: Accepted for PyTorch's sake; "default" alone.

    Returns:
        A function of the arguments of the graph.

    Raises:
        UserError: An option is unknown or has another type (MLC0832, MLC0379), or, without `fallback`, operators are
            missing (MLC0831).

    Example:
        >>> import torch
        >>> f = torch.compile(lambda x: torch.relu(x) + 1, backend=mlc.torch.backend)
        >>> f(torch.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """
    settings = _settings(options, mode)
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    source = Source.of(graph_module)
    compilers = {name: functools.partial(compile_graph, settings, source, name)
                 for name in ("forward", "backward", "inference")}
    made = aot_autograd(fw_compiler=compilers["forward"], bw_compiler=compilers["backward"],
                        inference_compiler=compilers["inference"], decompositions=decompositions(),
                        partition_fn=min_cut_rematerialization_partition)
    return made(graph_module, example_inputs)  # type: ignore[no-any-return]


def _settings(options: Mapping[str, Any] | None, mode: str | None) -> dict[str, Any]:
    unknown = [n for n in options or {} if n not in OPTIONS]
    if unknown:
        raise UserError(f"{unknown[0]} is no option of the backend mlc", code="MLC0832", loc=user_loc(),
                        hint="the options are " + ", ".join(OPTIONS))
    if mode not in (None, "default"):
        raise UserError(f"the backend mlc has no mode {mode!r}", code="MLC0832", loc=user_loc(),
                        hint="leave out mode; options={...} has the settings")
    settings = {**OPTIONS, **(options or {})}
    if settings["threads"] is not None:
        checked(settings["threads"], "the option threads")
    if (other := next((n for n in ("fallback", "cache") if not isinstance(settings[n], bool)), None)) is not None:
        raise UserError(f"the option {other} is {settings[other]!r}, expected True or False", code="MLC0832",
                        loc=user_loc())
    return settings


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that mlc has not, to core ATen."""
    from torch._decomp import core_aten_decompositions, decomposition_table
    return {operator: f for operator, f in {**decomposition_table, **core_aten_decompositions()}.items()
            if find(operator) is None}


def compile_graph(settings: Mapping[str, Any], source: Source, kind: str, graph: Any,
                  example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a functional graph; the result takes its arguments in one list, which it empties."""
    from torch.utils._python_dispatch import _disable_current_modes
    graph.graph.eliminate_dead_code()
    with _disable_current_modes():
        recording, refusals = first_recording(graph)
        report = GraphReport(kind, operators(graph), refusals, source)
        if refusals and not settings["fallback"]:
            raise missing(refusals, 'options={"fallback": True} leaves them to PyTorch')
        if refusals or recording is None:
            names = {r.node for r in refusals}
            call = partitioned(graph, names, lambda part: GraphFunction(part, settings, report))
        else:
            call = GraphFunction(graph, settings, report, recording)
        remember(report)
    log.info("%s", report)

    def boxed(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return call(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def first_recording(graph: Any) -> tuple[Recording | None, list[Refusal]]:
    """The graph recorded for the sizes of the example, and all that mlc refuses of it."""
    refusals = [refusal_of(n, reason) for n in graph.graph.nodes
                if n.op == "call_function" and (reason := unsupported(n)) is not None]
    if any(depends_on_elements(n) for n in graph.graph.nodes):
        return None, refusals                              # sizes that there is no example of
    if any(n.op == "placeholder" and unsupported(n) is not None for n in graph.graph.nodes):
        return None, refusals                              # arguments of types that mlc has not
    recording = Recording(graph, examples(graph))
    return recording, [*recording.refusals, *sharing(graph, recording.refusals)]


def sharing(graph: Any, refusals: Sequence[Refusal]) -> list[Refusal]:
    """The refusals of what gives memory to refused views by strides: these need it as PyTorch lays it out."""
    refused = {r.node for r in refusals}
    memory = {storage_of(n.args[0].meta["val"]) for n in graph.graph.nodes
              if n.name in refused and "as_strided" in str(n.target)}
    return [refusal_of(n, "PyTorch takes a view of its result by strides") for n in graph.graph.nodes
            if n.op == "call_function" and n.name not in refused and hasattr(n.meta.get("val"), "dtype")
            and storage_of(n.meta["val"]) in memory]


def operators(graph: Any) -> int:
    """The number of calls of operators in a graph, without those that take results apart or compute sizes."""
    return sum(map(is_operator, graph.graph.nodes))


def is_operator(node: Any) -> bool:
    """Whether a node calls an operator, and does not take a result apart or compute a size."""
    return bool(node.op == "call_function" and node.target not in NUMBERS and str(node.target) not in SIZES)


def missing(refusals: Sequence[Refusal], hint: str) -> UserError:
    """The error for operators that mlc does not run."""
    plural = "s" * (len(refusals) != 1)
    return UserError(f"mlc does not run {len(refusals)} operator{plural} of the graph", code="MLC0831",
                     notes=tuple(dict.fromkeys(map(str, refusals))), hint=hint)
