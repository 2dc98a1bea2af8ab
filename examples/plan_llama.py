"""Choose the plan of training Llama's 70 B on 1,024 GPUs, and say why: python examples/plan_llama.py

Nothing of the model is allocated, and nothing runs: memory follows from the shape, and the time of a step from a
simulation of all tasks on a model of the cluster. Its defaults are about those of hosts with eight H100, which have
NVLink within a host, and 400 Gb/s for each GPU between hosts; figures depend on them, and so may the plan.

    python examples/plan_llama.py --ranks 256 --batch 512 --memory 72e9
    python examples/plan_llama.py --network 5e9 --failures 2e-9       # slower links, a failure of a GPU in 16 years
"""

from __future__ import annotations

import argparse

import mlc.distributed as dist

LLAMA_70B = dist.Transformer(layers=80, width=8192, heads=64, kv_heads=8, hidden=28672, vocabulary=128256,
                             context=8192)


def main(words: list[str] | None = None) -> dist.Plans:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"flops": (6e14, "operations in a second that products of matrices reach"),
                "memory": (72e9, "bytes of a GPU that a plan may hold"), "host": (8, "GPUs of a host"),
                "bandwidth": (3e12, "bytes that a GPU reads or writes in a second"),
                "latency": (1e-5, "seconds of a message between hosts"),
                "network": (4e10, "bytes that a GPU sends to other hosts in a second"),
                "near-latency": (5e-6, "seconds of a message within a host"),
                "near-network": (3.5e11, "bytes that a GPU sends within its host in a second"),
                "jitter": (0.01, "deviation of times among GPUs"), "failures": (1e-9, "of a GPU in a second"),
                "checkpoint": (30.0, "seconds"), "restart": (300.0, "seconds"),
                "ranks": (1024, "GPUs"), "batch": (1024, "sequences of a step"), "context": (8192, "their tokens")}
    for name, (default, meaning) in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{meaning} (default {default:g})")
    options = parser.parse_args(words)
    cluster = dist.Cluster(options.flops, options.bandwidth, options.latency, options.network, 2e-5, host=options.host,
                           near_latency=options.near_latency, near_network=options.near_network,
                           jitter=options.jitter, failures=options.failures, checkpoint=options.checkpoint,
                           restart=options.restart)
    model = dist.Transformer(**{**vars(LLAMA_70B), "context": options.context})
    plans = dist.plan_transformer(model, cluster, options.ranks, options.batch, options.memory)
    print(f"{model.weights / 1e9:.1f} B weights, {options.batch} sequences of {options.context} tokens in a step")
    print(plans)
    return plans


if __name__ == "__main__":
    main()
