"""Plans of large transformers: memory and time against formulas and a model of mlc; the choice and its reasons."""

from __future__ import annotations

import math

import pytest

import mlc
import mlc.distributed as dist
from mlc.models.config import DecoderConfig, read_config
from mlc.models.decoder import DecoderForCausalLM
from mlc.models.fields import Fields
from mlc.models.parameters import Drawn, Place
from tests.test_examples import example

SMALL = dist.Transformer(layers=8, width=512, heads=8, kv_heads=4, hidden=2048, vocabulary=32000, context=1024)
FREE = dist.Cluster(1e14, math.inf, 0.0, math.inf, 0.0)
"""Ranks whose messages take no time."""


def cost(stages: int = 1, data: int = 1, tensor: int = 1, microbatch: int = 1, zero: int = 1, again: bool = False,
         cluster: dist.Cluster = FREE, batch: int = 64) -> dist.PlanCost:
    return dist.PlanCost(dist.TransformerPlan(stages, data, tensor, microbatch, zero, again), SMALL, cluster, batch)


def test_a_shape_has_the_weights_of_the_model() -> None:
    config = read_config(Fields({"architectures": ["LlamaForCausalLM"], "vocab_size": 50, "hidden_size": 16,
                                 "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
                                 "num_key_value_heads": 2}, "config.json"))
    assert isinstance(config, DecoderConfig)
    model = DecoderForCausalLM(config, Place(Drawn(0)))
    assert dist.Transformer(3, 16, 4, 2, 32, 50, 8).weights == sum(p.numel() for p in model.parameters())


def test_ranks_hold_their_part() -> None:
    whole = cost().parts(0)
    assert (whole["weights"], whole["state"]) == (2 * cost().own(0), 12 * cost().own(0))
    assert cost().own(0) == SMALL.weights - SMALL.width    # but for the last norm
    assert cost(tensor=4).own(0) == cost().own(0) // 4
    assert sum(cost(stages=4).own(stage) for stage in range(4)) == cost().own(0)
    zero = cost(data=4).parts(0), cost(data=4, zero=3).parts(0)
    assert zero[0]["state"] == zero[1]["state"] == whole["state"] // 4
    assert zero[0]["gradients"] == whole["gradients"] == 4 * zero[1]["gradients"]
    assert cost(again=True).parts(0)["activations"] < whole["activations"] == 1024 * (
        8 * 2 * (6 * 512 + 512 + 3 * 2048) + 6 * 32000)    # kept by layers, and scores


def test_a_pipeline_waits_as_the_formula_says() -> None:
    """Of m microbatches in n stages with equal work, 1F1B waits in (n - 1) / (m + n - 1) of the time."""
    even = dist.Transformer(8, 512, 8, 8, 2048, 0, 1024)
    found = dist.PlanCost(dist.TransformerPlan(4, 1, 1, 8, 1, False), even, FREE, 64).timing
    assert found.waiting / found.total == pytest.approx(3 / (8 + 3), rel=1e-3)


def test_computing_again_takes_a_third_more() -> None:
    plain, again = (cost(batch=64, again=again).timing.compute for again in (False, True))
    assert again / plain == pytest.approx(4 / 3, rel=1e-3)
    assert cost().utilization == pytest.approx(1, rel=1e-3)


def test_what_is_sent() -> None:
    """Tensor parallelism has four all_reduce for a layer and microbatch, ZeRO 1 two collectives for a step."""
    slow = dist.Cluster(math.inf, math.inf, 0.0, 1e9, 0.0)
    assert cost(tensor=2, cluster=slow).timing.total == pytest.approx(64 * 8 * 4 * 1024 * 512 * 2 / 1e9)
    assert cost(data=4, cluster=slow).timing.total == pytest.approx(6 * cost().own(0) * 3 / 4 / 1e9, rel=1e-6)
    assert cost(data=4, zero=3, cluster=slow).timing.total == pytest.approx(
        16 * (2 + 2 + 4) * cost().own(0) * 3 / 4 / 1e9, rel=1e-6)


def test_the_best_plan_fits_and_is_fastest() -> None:
    slow = dist.Cluster(1e14, 1e12, 1e-6, 1e9, 1e-5, host=2, near_latency=1e-7, near_network=1e11)
    plans = dist.plan_transformer(SMALL, slow, ranks=8, batch=64, memory=3e9)
    assert plans.best.held <= 3e9 and plans.best.plan.tensor <= 2
    assert plans.best.timing.total == min(c.timing.total for c in plans.found)
    assert all(c.held > 3e9 or c.timing.total >= plans.best.timing.total for _, c in plans.others)
    assert "instead:\n" in str(plans)


@pytest.mark.parametrize(("ranks", "memory", "hint"), [(4, 1e8, "take more ranks"), (7, 1e12, "for none")])
def test_no_plan(ranks: int, memory: float, hint: str) -> None:
    with pytest.raises(mlc.UserError, match="no plan") as found:
        dist.plan_transformer(SMALL, FREE, ranks, 64, memory)
    assert found.value.code == "MLC0988" and hint in str(found.value.hint)
    with pytest.raises(mlc.UserError, match="MLC0988"):
        dist.plan_transformer(SMALL, FREE, 0, 64, memory)


def test_llama_on_few_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    plans = example("plan_llama").main(["--ranks", "64", "--batch", "64", "--context", "2048"])
    assert plans.best.plan.ranks == 64 and plans.best.held <= 72e9 and 0.2 < plans.best.utilization < 1
    assert capsys.readouterr().out.startswith("70.6 B weights")
