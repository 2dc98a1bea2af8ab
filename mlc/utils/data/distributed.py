"""`DistributedSampler` under the name of the file that PyTorch has."""

from mlc.utils.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
