"""mlc quantize: write a language model as a GGUF file, with weights in fewer bits."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from mlc.tools import report
from mlc.tools.exit_status import OK

EXAMPLES = """examples:
  mlc quantize examples/assistant -o assistant.gguf --type=q8_0 --tokens=0
  mlc quantize models/qwen -o qwen.gguf --type=q4_k --perplexity text.txt
  mlc chat qwen.gguf --prompt 'What is mlc?'
"""


def parser() -> argparse.ArgumentParser:
    from mlc.models.gguf.writing import TYPES
    p = report.Parser("quantize", "Write a language model as a GGUF file whose weights take fewer bits, and compare "
                      "the perplexity of both.", EXAMPLES)
    p.add_argument("model", metavar="MODEL", help="a folder as transformers has it, or a GGUF file")
    p.add_argument("-o", "--output", type=report.Output, metavar="FILE",
        required=True, help="the file to write, NAME.gguf")
    p.add_argument("--type", choices=TYPES, default="q8_0", help="of the weights (default q8_0); vectors are f32, "
                   "and matrices whose rows are no whole blocks are q8_0")
    p.add_argument("--perplexity", metavar="FILE", help="the text that both are compared by (default: the explanations "
                   "of error codes)")
    p.add_argument("--tokens", type=int, default=2048, metavar="N", help="how many of its tokens count (default 2048); "
                   "0 for no comparison")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.models.gguf.export import described
    from mlc.models.gguf.writing import write_gguf
    source, target = Path(options.model), Path(options.output)
    if target.suffix != ".gguf":
        raise report.usage_error(f"{target} is no name of a GGUF file", "choose NAME.gguf", "MLC0391")
    if target.exists() and source.exists() and target.samefile(source):
        raise report.usage_error(f"{target} is the model itself", "choose another name", "MLC0391")
    if options.tokens < 0:
        raise report.usage_error(f"--tokens is {options.tokens}", "choose 0 for no perplexity, or more", "MLC0391")
    if options.tokens == 0:
        report.refuse(options, ("perplexity",), "with --tokens=0 nothing is compared", "leave one of them out")
    text = _text(options.perplexity) if options.tokens else ""
    content = described(source)
    kinds = write_gguf(target, content, options.type)
    counts = ", ".join(f"{n} {kind}" for kind, n in Counter(kinds.values()).most_common())
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {counts}")
    if options.tokens > 0:
        compare(source, target, text, options.tokens)
    return OK


def compare(source: Path, target: Path, text: str, tokens: int) -> None:
    """Print the perplexity of both models."""
    from mlc.models import load
    from mlc.models.perplexity import perplexity
    for path in (source, target):
        model = load(path)
        if not model.generates:
            print(f"no perplexity: {path} is an encoder", file=sys.stderr)
            return
        if model.tokenizer is None:
            print(f"no perplexity: {path} has no tokenizer", file=sys.stderr)
            return
        print(f"perplexity {perplexity(model, text, tokens):.4f}  {path}", flush=True)


def _text(name: str | None) -> str:
    if name is not None:
        from mlc.tools.files import read_text
        return read_text(name)[0]
    from mlc.tools import codes
    return "\n".join(f"{code.title} {code.fix}" for code in codes.load().values())
