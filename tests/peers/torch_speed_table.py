"""The speed of 20 public models at their real size: `torch.compile(model, backend="mlc")`, eager PyTorch and inductor.

    python -m tests.peers.torch_speed_table [--only REGEX] [--log FILE] [--threads N] [--step] [--backends mlc,inductor]

The backends take turns in one process for each model, and their results are compared. Caches of compiled code start
empty, and the first call counts after each backend has compiled a smaller program. README.md says how to read it.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VISION = ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x1_0",
          "squeezenet1_1", "densenet121", "convnext_tiny", "regnet_y_400mf", "vit_b_16", "swin_t")
TIMM = ("deit_tiny_patch16_224", "mixer_s16_224")
CONFIGURATIONS = {"bert": "BertModel", "gpt2": "GPT2LMHeadModel", "distilbert": "DistilBertModel",
                  "opt": "OPTForCausalLM", "t5": "T5EncoderModel", "roberta": "RobertaModel"}
"""Models of transformers, in the configuration that their classes have by default."""
NAMES = (*(f"torchvision.{n}" for n in VISION), *(f"timm.{n}" for n in TIMM),
         *(f"transformers.{n}" for n in CONFIGURATIONS))


def made(name: str) -> tuple[Callable[..., Any], Any]:
    """A model in evaluation, and its argument: an image of 224 pixels, or 128 words."""
    import torch

    from tests.peers.torch_detectors import declare_nms
    declare_nms()
    library, _, rest = name.partition(".")
    if library == "transformers":
        import transformers
        kind = getattr(transformers, CONFIGURATIONS[rest])
        model = kind(kind.config_class())
        return model.eval(), torch.randint(3, 20000, (1, 128))
    if library == "torchvision":
        import torchvision
        return torchvision.models.get_model(rest).eval(), torch.randn(1, 3, 224, 224)
    import timm
    return timm.create_model(rest).eval(), torch.randn(1, 3, 224, 224)


def first(out: Any) -> Any:
    """The first tensor of a result."""
    import torch
    return out if isinstance(out, torch.Tensor) else next(iter(out.values() if hasattr(out, "values") else out))


def measured(name: str, settings: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a call per backend, the seconds of its first call, and the largest difference from eager."""
    import torch
    torch.set_num_threads(settings.threads)
    torch.manual_seed(0)
    model, x = made(name)
    found: dict[str, Any] = {"name": name, "step": settings.step}

    def call(f: Any) -> Any:
        if not settings.step:
            with torch.no_grad():
                return first(f(x))
        model.zero_grad()                                  # type: ignore[attr-defined]
        out = first(f(x))
        out.square().mean().backward()
        return out.detach()

    for backend in settings.backends.split(","):           # imports PyTorch's tracer, and looks for a C++ compiler
        torch.compile(lambda x: x * 2 + 1, backend=backend)(torch.ones(64, 64, requires_grad=True)).sum().backward()
    functions: dict[str, Any] = {"eager": model}
    expected = call(model)
    for backend in settings.backends.split(","):
        torch._dynamo.reset_code_caches()
        functions[backend] = f = torch.compile(model, backend=backend)
        start = time.perf_counter()
        out = call(f)
        found[f"{backend} first"] = time.perf_counter() - start
        found[f"{backend} difference"] = float((out - expected).abs().max() / expected.abs().max())
    best = dict.fromkeys(functions, math.inf)
    end = time.perf_counter() + settings.seconds
    while time.perf_counter() < end:
        for backend, f in functions.items():
            for _ in range(2):
                start = time.perf_counter()
                call(f)
                best[backend] = min(best[backend], (time.perf_counter() - start) * 1e3)
    return found | best


def line(found: dict[str, Any], backends: list[str]) -> str:
    """A row of the table."""
    cells = [f"{found['name']:36}", f"{found['eager']:9.2f}"]
    for b in backends:
        cells.append(f"{found[b]:9.2f} {found['eager'] / found[b]:5.2f} {found[f'{b} first']:7.1f} "
                     f"{found[f'{b} difference']:8.0e}")
    return " ".join(cells)


def _child(name: str, settings: argparse.Namespace, queue: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "MLC_CACHE_DIR": f"{folder}/mlc"}
        queue.put(measured(name, settings))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression of the names of models")
    parser.add_argument("--log", type=Path, help="results so far, one JSON object per line, which the run continues")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--step", action="store_true", help="measure forward and backward, in evaluation")
    parser.add_argument("--backends", default="mlc,inductor")
    parser.add_argument("--seconds", type=float, default=4.0, help="of measuring, per model")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a model, with its compilation")
    settings = parser.parse_args()
    backends = settings.backends.split(",")
    done: dict[str, dict[str, Any]] = {}
    if settings.log and settings.log.exists():
        done = {r["name"]: r for r in map(json.loads, settings.log.read_text().splitlines())
                if r["step"] == settings.step}
    print(f"{'':36} {'eager ms':>9} " + " ".join(f"{b + ' ms':>9} ratio first s    diff" for b in backends))
    for name in (n for n in NAMES if re.search(settings.only, n)):
        if name not in done:
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=_child, args=(name, settings, queue))
            process.start()
            process.join(settings.limit)
            if process.is_alive() or process.exitcode:
                process.kill()
                print(f"{name:36} no result (exit status {process.exitcode}, limit {settings.limit:.0f} s)", flush=True)
                continue
            done[name] = queue.get()
            if settings.log:
                with settings.log.open("a") as file:
                    file.write(json.dumps(done[name]) + "\n")
        print(line(done[name], backends), flush=True)
    rows = [r for n, r in done.items() if re.search(settings.only, n)]
    if rows:
        for b in backends:
            against = math.exp(sum(math.log(r["eager"] / r[b]) for r in rows) / len(rows))
            print(f"{len(rows)} models, geometric mean of eager / {b}: {against:.2f}")
        if {"mlc", "inductor"} <= set(backends):
            mean = math.exp(sum(math.log(r["inductor"] / r["mlc"]) for r in rows) / len(rows))
            start = math.exp(sum(math.log(r["mlc first"] / r["inductor first"]) for r in rows) / len(rows))
            print(f"inductor / mlc: {mean:.2f}; first call of mlc / that of inductor: {start:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
