"""mlc behind `torch.compile`, and PyTorch's models as compiled functions of mlc's. It needs PyTorch, `pip install
"mlc[torch]"`, and imports it when it is used.

    fast = torch.compile(model, backend="mlc")
    fast(x).sum().backward()
    print(mlc.torch.report(fast))
"""

from mlc.torch.compiler import backend
from mlc.torch.exported import export
from mlc.torch.reports import report

__all__ = ["backend", "export", "report"]
