"""The plan of parallel training of a large transformer, chosen from its shape: nothing of its size is allocated.

A plan has stages of a pipeline (1F1B), ranks with parts of the batch (`data`, with ZeRO 1 or 3), and ranks that divide
each layer and its sequences (`tensor`). For each, the memory of a rank follows from the shape, and the time of a step
from a simulation of its tasks in their order (`simulated`) on a cluster. Weights and activations have 2 bytes, and
gradients are added in 4; Adam has 12 bytes for each weight: f32 of the weight, and two moments.

Counted are, of a token in a layer, 2 operations for each weight and those of causal attention; three times of that with
backward, and once more where layers are computed again; the values that backward takes, with attention that keeps no
scores; gathering and scattering of sequences around both halves of a layer; gradients and weights among `data`;
messages between stages; the update. Not counted are collectives beside computation, fragments of memory, uneven
hardware beyond what the cluster says, and kernels that are slower for small sizes than for large ones: `flops` of the
cluster is the rate of products of matrices that is reached, not that of the data sheet.

Example:
    >>> small = mlc.distributed.Transformer(8, 512, 8, 8, 2048, 32000, 1024)
    >>> cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5, host=4, near_latency=1e-6, near_network=1e11)
    >>> plans = mlc.distributed.plan_transformer(small, cluster, ranks=8, batch=64, memory=16e9)
    >>> plans.best.plan.ranks, plans.best.held < 16e9
    (8, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlc.distributed.cluster import Cluster
from mlc.distributed.simulation import Communication, Waiting, Work, simulated
from mlc.distributed.time_model import Timing
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.passes.analysis.segment_cost import SegmentCost
from mlc.passes.split_stages.schedules import one_forward_one_backward

_SIMULATED = 24
"""Plans that are simulated: those that are estimated to be fastest."""
_VALUE, _GRADIENT, _STATE = 2, 4, 12
"""Bytes of a weight or an activation, of a gradient, and of the optimiser's state of a weight."""
_Axes = tuple[str, ...]


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder with gated feed-forward layers, such as Llama's.

    Args:
        layers: Number of layers.
        width: Elements of a token between layers.
        heads: Heads of attention.
        kv_heads: Heads of keys and values.
        hidden: Elements of a token within a feed-forward layer.
        vocabulary: Different tokens; embeddings and scores have weights of their own.
        context: Tokens of a sequence.

    Example:
        >>> llama = mlc.distributed.Transformer(80, 8192, 64, 8, 28672, 128256, 8192)
        >>> f"{llama.weights / 1e9:.2f}"
        '70.55'
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    context: int

    @property
    def layer_weights(self) -> int:
        """The weights of a layer: four products of attention, three of the feed-forward part, two norms."""
        keys = self.width * self.kv_heads // self.heads
        return 2 * self.width * (self.width + keys) + 3 * self.width * self.hidden + 2 * self.width

    @property
    def table(self) -> int:
        """The weights of the embeddings, as many as those of the scores."""
        return self.vocabulary * self.width

    @property
    def weights(self) -> int:
        """All weights."""
        return self.layers * self.layer_weights + 2 * self.table + self.width

    @property
    def layer_operations(self) -> int:
        """The operations of a token in a layer, forward: those of its weights, and of scores of half of the context."""
        return 2 * self.layer_weights + 2 * self.context * self.width

    @property
    def layer_values(self) -> int:
        """The elements of a token that a layer keeps for backward: two inputs and norms, queries, keys, values, the
        result of attention, and three of the feed-forward part."""
        return 6 * self.width + 2 * self.width * self.kv_heads // self.heads + 3 * self.hidden


@dataclass(frozen=True)
class TransformerPlan:
    """How a transformer is divided among ranks.

    Args:
        stages: Positions of a pipeline.
        data: Ranks with parts of the batch.
        tensor: Ranks that divide each layer.
        microbatch: Sequences that a rank computes at once.
        zero: 1 if the optimiser's state is divided along `data`, 3 if weights and gradients are, too.
        again: Whether layers are computed again in backward, of which only the input is kept.

    Example:
        >>> str(mlc.distributed.TransformerPlan(4, 8, 2, 1, 1, True))
        'stages 4, data 8, tensor 2, microbatches of 1, ZeRO 1, layers computed again'
    """

    stages: int
    data: int
    tensor: int
    microbatch: int
    zero: int
    again: bool

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.stages * self.data * self.tensor

    def __str__(self) -> str:
        return (f"stages {self.stages}, data {self.data}, tensor {self.tensor}, microbatches of {self.microbatch}, "
                f"ZeRO {self.zero}" + ", layers computed again" * self.again)


@dataclass(frozen=True)
class PlanCost:
    """The memory and the time of a plan.

    Args:
        plan: The plan.
        model: The shape of the transformer.
        cluster: The ranks.
        batch: Sequences of a step.

    Example:
        >>> small = mlc.distributed.Transformer(8, 512, 8, 8, 2048, 32000, 1024)
        >>> cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5)
        >>> plan = mlc.distributed.TransformerPlan(1, 4, 1, 2, 1, False)
        >>> cost = mlc.distributed.PlanCost(plan, small, cluster, 64)
        >>> cost.microbatches, cost.timing.total > cost.timing.compute > 0
        (8, True)
    """

    plan: TransformerPlan
    model: Transformer
    cluster: Cluster
    batch: int

    @property
    def microbatches(self) -> int:
        """The number of microbatches of a rank in a step."""
        return self.batch // (self.plan.data * self.plan.microbatch)

    @property
    def tokens(self) -> int:
        """The tokens of a microbatch."""
        return self.plan.microbatch * self.model.context

    def own(self, stage: int) -> int:
        """The weights of a rank at a stage, before ZeRO divides them.

        Args:
            stage: The position.

        Returns:
            Their number.

        Example:
            >>> small = mlc.distributed.Transformer(2, 4, 1, 1, 8, 10, 16)
            >>> cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5)
            >>> plan = mlc.distributed.TransformerPlan(2, 1, 1, 1, 1, False)
            >>> mlc.distributed.PlanCost(plan, small, cluster, 1).own(0) == small.layer_weights + 40
            True
        """
        ends = (stage == 0) + (stage == self.plan.stages - 1)
        return (self.model.layers // self.plan.stages * self.model.layer_weights
                + ends * self.model.table) // self.plan.tensor

    def parts(self, stage: int) -> dict[str, int]:
        """The bytes of a rank at a stage, by what they are for.

        Args:
            stage: The position.

        Returns:
            Bytes, by name.

        Example:
            >>> small = mlc.distributed.Transformer(8, 512, 8, 8, 2048, 32000, 1024)
            >>> cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5)
            >>> plan = mlc.distributed.TransformerPlan(1, 4, 1, 2, 1, False)
            >>> cost = mlc.distributed.PlanCost(plan, small, cluster, 64)
            >>> cost.parts(0)["state"] == 12 * cost.own(0) // 4
            True
        """
        plan, model, own = self.plan, self.model, self.own(stage)
        everywhere = plan.data if plan.zero == 3 else 1
        layers, last = model.layers // plan.stages, stage == plan.stages - 1
        layer = _VALUE * self.tokens * model.layer_values // plan.tensor
        kept = layers * (_VALUE * self.tokens * model.width // plan.tensor if plan.again else layer)
        values = kept * min(self.microbatches, plan.stages - stage) + plan.again * layer
        scores = last * (_VALUE + 4) * self.tokens * model.vocabulary // plan.tensor
        gathered = 2 * _VALUE * model.layer_weights // plan.tensor if plan.zero == 3 else 0
        return {"weights": _VALUE * own // everywhere + gathered, "gradients": _GRADIENT * own // everywhere,
                "state": _STATE * own // plan.data, "activations": values + scores}

    @property
    def held(self) -> int:
        """The bytes of the rank that holds most."""
        return max(sum(self.parts(stage).values()) for stage in {0, self.plan.stages - 1})

    @cached_property
    def estimate(self) -> float:
        """The seconds of a step where all tasks of a stage take as long as those of the slowest, without messages: one
        of m microbatches in a pipeline of n stages begins m + n - 1 times."""
        times = [[sum(self._seconds(w) for w in work) for work in (
            [*self._forward(stage), *self._backward(stage)], self._update(stage))]
            for stage in {0, self.plan.stages - 1}]
        return (self.microbatches + self.plan.stages - 1) * max(t[0] for t in times) + max(t[1] for t in times)

    def _seconds(self, work: Work) -> float:
        cluster = self._placed
        assert not isinstance(work, Waiting), "nothing overlaps"
        return cluster.segment(work) if isinstance(work, SegmentCost) else cluster.communication(work)

    @cached_property
    def timing(self) -> Timing:
        """The time of a step, simulated."""
        work = [self._work(stage) for stage in range(self.plan.stages)]
        return simulated(work, [0.0] * self.plan.stages, self._placed)

    @property
    def utilization(self) -> float:
        """The part of the cluster's rate of operations that goes into those of the model, none of them done again."""
        model = self.model
        once = self.batch * model.context * (model.layers * model.layer_operations + 2 * model.table)
        return 3 * once / (self.plan.ranks * self.cluster.flops * self.timing.total)

    @cached_property
    def _placed(self) -> Cluster:
        plan = self.plan
        return self.cluster.placed({"stage": plan.stages, "data": plan.data, "tensor": plan.tensor})

    def _work(self, stage: int) -> list[Work]:
        """The tasks of a rank, with its messages."""
        plan, count, work = self.plan, self.microbatches, list[Work]()
        content, pairs = _VALUE * self.tokens * self.model.width // plan.tensor, plan.stages * count

        def message(kind: str, tag: int) -> Communication:
            return Communication(kind, ("stage",), content if kind == "send" else 0, None, 2, tag)

        for task in one_forward_one_backward(stage, plan.stages, plan.stages, count):
            source, to = (stage + 1, stage - 1) if task.backward else (stage - 1, stage + 1)
            offset = pairs * task.backward
            if 0 <= source < plan.stages:
                work.append(message("recv", offset + source * count + task.microbatch))
            work += self._backward(stage) if task.backward else self._forward(stage)
            if 0 <= to < plan.stages:
                work.append(message("send", offset + stage * count + task.microbatch))
        return [*work, *self._update(stage)]

    def _forward(self, stage: int) -> list[Work]:
        return [self._segment(stage, 1), *self._exchanges(1), *self._weights(stage)]

    def _backward(self, stage: int) -> list[Work]:
        again = self.plan.again
        scattered = _collective("reduce_scatter", "data", self.plan.data, _GRADIENT * self.own(stage))
        return [self._segment(stage, 2 + again), *self._exchanges(1 + again), *self._weights(stage),
                *(scattered if self.plan.zero == 3 else [])]

    def _segment(self, stage: int, times: int) -> SegmentCost:
        """The computation of a microbatch, so many times what forward takes."""
        plan, model = self.plan, self.model
        layers = model.layers // plan.stages
        operations = layers * model.layer_operations + (stage == plan.stages - 1) * 2 * model.table
        moved = _VALUE * (self.own(stage) + 2 * layers * self.tokens * model.layer_values // plan.tensor)
        return SegmentCost(times * self.tokens * operations // plan.tensor, times * moved)

    def _exchanges(self, times: int) -> list[Work]:
        """Sequences are gathered before both halves of each layer, and scattered after them: as two all_reduce."""
        layers = self.model.layers // self.plan.stages
        content = _VALUE * self.tokens * self.model.width
        return _collective("all_reduce", "tensor", self.plan.tensor, content) * (2 * layers * times)

    def _weights(self, stage: int) -> list[Work]:
        """Where weights are divided along `data`, those of a stage are gathered."""
        found = _collective("all_gather", "data", self.plan.data, _VALUE * self.own(stage))
        return found if self.plan.zero == 3 else []

    def _update(self, stage: int) -> list[Work]:
        """The optimiser's step: with ZeRO 1 of scattered gradients, after which weights are gathered."""
        own, data = self.own(stage), self.plan.data
        update = SegmentCost(16 * own // data, 2 * (_GRADIENT + _STATE) * own // data)
        if self.plan.zero == 3:
            return [update]
        return [*_collective("reduce_scatter", "data", data, _GRADIENT * own), update,
                *_collective("all_gather", "data", data, _VALUE * own)]


def _collective(kind: str, axis: str, ranks: int, content: int) -> list[Work]:
    """A collective of so many bytes along an axis; none of one rank."""
    phases = 2 if kind == "all_reduce" else 1
    sent = phases * content * (ranks - 1) // ranks
    return [Communication(kind, (axis,), sent, None, ranks)] if ranks > 1 else []


@dataclass(frozen=True)
class Plans:
    """Plans of a transformer, the fastest first.

    Args:
        found: Those that fit the memory and were simulated.
        tried: Number of all plans.
        fitting: Number of those that fit.
        memory: Bytes of a rank.
        others: For what else might have been chosen, the fastest plan that fits, or the one that holds least.

    Example:
        >>> mlc.distributed.Plans((), 0, 0, 80e9, ()).memory
        80000000000.0
    """

    found: tuple[PlanCost, ...]
    tried: int
    fitting: int
    memory: float
    others: tuple[tuple[str, PlanCost], ...]

    @property
    def best(self) -> PlanCost:
        """The fastest."""
        return self.found[0]

    def __str__(self) -> str:
        best, time = self.best, self.best.timing
        stage = max((0, best.plan.stages - 1), key=lambda s: sum(best.parts(s).values()))
        lines = [f"{best.plan.ranks} ranks: {best.plan}",
                 f"  {self.tried} plans divide the model and the batch evenly, {self.fitting} fit {_gb(self.memory)}",
                 f"  memory of a rank: {_gb(best.held)}: "
                 + ", ".join(f"{name} {_gb(size)}" for name, size in best.parts(stage).items()),
                 f"  step: {time.total:.3f} s: computation {time.compute:.3f}, collectives "
                 f"{time.communication:.3f}, waiting in the pipeline {time.waiting:.3f}",
                 f"  {best.batch * best.model.context / time.total:,.0f} tokens/s, {best.utilization:.0%} of the rate "
                 f"of operations; failures leave {best.cluster.useful(best.plan.ranks):.1%} of the time",
                 "instead:"]
        for reason, cost in self.others:
            if cost.held > self.memory:
                lines.append(f"  {reason}: takes at least {_gb(cost.held)} ({cost.plan})")
            else:
                more = cost.timing
                lines.append(f"  {reason}: {more.total / time.total - 1:+.1%}: computation "
                             f"{more.compute - time.compute:+.3f} s, collectives "
                             f"{more.communication - time.communication:+.3f}, waiting "
                             f"{more.waiting - time.waiting:+.3f} ({cost.plan}, {_gb(cost.held)})")
        return "\n".join(lines)


def plan_transformer(model: Transformer, cluster: Cluster, ranks: int, batch: int, memory: float) -> Plans:
    """Choose how a transformer is trained on a cluster: the plan whose step is simulated to be shortest.

    Args:
        model: Its shape.
        cluster: The ranks and their links; `flops` is the rate of products of matrices that is reached.
        ranks: Number of ranks.
        batch: Sequences of a step.
        memory: Bytes of a rank that a plan may hold.

    Returns:
        The plans, which print as the best with the reasons: the memory and time of it and of what else there is.

    Raises:
        UserError: No plan fits, or there are no ranks or no sequences (MLC0988).

    Example:
        >>> small = mlc.distributed.Transformer(8, 512, 8, 8, 2048, 32000, 1024)
        >>> cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5)
        >>> plans = mlc.distributed.plan_transformer(small, cluster, ranks=4, batch=64, memory=16e9)
        >>> str(plans).splitlines()[0].startswith("4 ranks: stages")
        True
    """
    if ranks < 1 or batch < 1:
        raise UserError(f"ranks = {ranks} and batch = {batch}, expected at least 1", code="MLC0988", loc=user_loc())
    every = [PlanCost(plan, model, cluster, batch) for plan in _plans(model, ranks, batch)]
    fit = sorted((c for c in every if c.held <= memory), key=lambda c: c.estimate)
    if not fit:
        least = min((c.held for c in every), default=None)
        raise UserError(f"no plan of the model on {ranks} ranks fits {_gb(memory)}", code="MLC0988", loc=user_loc(),
                        hint="the number of ranks divides into stages, parts of the batch and of layers for none"
                        if least is None else f"the one that holds least takes {_gb(least)}: take more ranks")
    found = sorted(fit[:_SIMULATED], key=lambda c: c.timing.total)
    return Plans(tuple(found), len(every), len(fit), memory, tuple(_others(found[0], every, fit)))


def _plans(model: Transformer, ranks: int, batch: int) -> list[TransformerPlan]:
    """The plans that divide heads, layers and sequences evenly, with up to 16 ranks for a layer."""
    tensors = [t for t in (1, 2, 4, 8, 16) if model.kv_heads % t == 0 and ranks % t == 0]
    stages = [s for s in range(1, model.layers + 1) if model.layers % s == 0]
    return [TransformerPlan(s, ranks // (s * t), t, size, zero, again)
            for t in tensors for s in stages if ranks % (s * t) == 0
            for size in (1, 2, 4, 8) if batch % (ranks // (s * t) * size) == 0
            for zero in (1, 3) for again in (False, True)]


def _others(best: PlanCost, every: Sequence[PlanCost], fit: Sequence[PlanCost]) -> list[tuple[str, PlanCost]]:
    """For each choice of a plan the alternatives, with the plan that is fastest, or holds least if none fits."""
    chosen, out = best.plan, list[tuple[str, PlanCost]]()
    for name, text in (("tensor", "tensor {}"), ("stages", "stages {}"), ("microbatch", "microbatches of {}"),
                       ("zero", "ZeRO {}"), ("again", "layers computed again: {}")):
        for value in sorted({getattr(c.plan, name) for c in every} - {getattr(chosen, name)}):
            fitting = [c for c in fit if getattr(c.plan, name) == value][:3]
            cost = min(fitting, key=lambda c: c.timing.total) if fitting else \
                min((c for c in every if getattr(c.plan, name) == value), key=lambda c: c.held)
            out.append((text.format(value if name != "again" else "yes" if value else "no"), cost))
    return out


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
