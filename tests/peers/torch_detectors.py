"""Detectors of torchvision in small configurations, and the operator of its binary that they need.

Suppression of overlapping boxes (`nms`) is a stand-in where torchvision's binary does not fit PyTorch's. Both
frameworks call it, and PyTorch breaks graphs there, since the number of boxes depends on their elements. Samplers take
all proposals in place of a random choice: mlc's random numbers are not PyTorch's.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

DETECTORS = ("fasterrcnn", "maskrcnn", "keypointrcnn", "retinanet", "fcos", "ssd", "ssdlite")
SIDE = 64
ALL = {"rpn_batch_size_per_image": 100000, "box_batch_size_per_image": 100000, "rpn_pre_nms_top_n_train": 60,
       "rpn_post_nms_top_n_train": 30, "rpn_pre_nms_top_n_test": 60, "rpn_post_nms_top_n_test": 30,
       "box_score_thresh": 0.0, "box_detections_per_img": 10}


def declare_nms() -> None:
    """Let torchvision be imported, and its detectors run, where its binary does not fit PyTorch's."""
    if not importlib.util.find_spec("torchvision") or "torchvision" in sys.modules:
        return
    import torch
    try:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    except RuntimeError:                                   # the binary fits
        return
    torch.library.impl("torchvision::nms", "CPU")(suppressed)
    import torchvision
    torchvision.extension._has_ops = lambda: True          # of nms alone: the others have taken what it was before
    pooling = sys.modules["torchvision.ops.roi_align"]
    pooling._roi_align = pooling._roi_align.__wrapped__    # type: ignore[attr-defined]  # not by inductor


def suppressed(boxes: Any, scores: Any, threshold: float) -> Any:
    """The numbers of the boxes that overlap no better one by more than a share of their union, the best first."""
    import torch
    from torchvision.ops.boxes import box_iou
    order = torch.argsort(scores, descending=True, stable=True)
    close = box_iou(boxes[order], boxes[order]) > threshold
    kept = list[int]()
    for i in range(len(order)):
        if not close[i, kept].any():
            kept.append(i)
    return order[torch.tensor(kept, dtype=torch.int64)]


def detector(name: str) -> Any:
    """A detector, and the arguments of a call: images, and in training what is to be seen in them."""
    import torch
    from torchvision.models import detection
    small = {"num_classes": 4, "min_size": SIDE, "max_size": SIDE}
    if name in ("ssd", "ssdlite"):
        of = {"ssd": detection.ssd300_vgg16, "ssdlite": detection.ssdlite320_mobilenet_v3_large}[name]
        model = of(weights=None, weights_backbone=None, num_classes=4, topk_candidates=20, detections_per_img=10)
    else:
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
        backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
        of = {"fasterrcnn": detection.FasterRCNN, "maskrcnn": detection.MaskRCNN,
              "keypointrcnn": detection.KeypointRCNN, "retinanet": detection.RetinaNet, "fcos": detection.FCOS}[name]
        if name in ("retinanet", "fcos"):
            rest: dict[str, Any] = {"topk_candidates": 20, "detections_per_img": 10}
            model = of(backbone, score_thresh=0.0, **small, **rest)
        else:
            model = of(backbone, **small, **ALL)
    images = [torch.rand(3, SIDE, SIDE), torch.rand(3, SIDE, SIDE)]
    corner = torch.tensor([[4.0, 6.0], [20.0, 10.0]])
    targets = [{"boxes": torch.cat([corner, corner + n], 1), "labels": torch.tensor([1, 2]),
                "masks": torch.randint(2, (2, SIDE, SIDE), dtype=torch.uint8),
                "keypoints": torch.cat([torch.rand(2, 17, 2) * 20 + corner[:, None], torch.ones(2, 17, 1)], 2)}
               for n in (24.0, 36.0)]
    return model, (images,), {"targets": targets}
