"""Data sets, transforms, samplers and loaders of one's own."""
import math

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import (BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, SequentialSampler, Subset,
                              TensorDataset, WeightedRandomSampler, default_collate, get_worker_info, random_split)


class FaceLandmarksDataset(Dataset):
    def __init__(self, size, transform=None):
        self.size = size
        self.transform = transform

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        image = np.full((4, 5, 3), idx, dtype=np.uint8)
        sample = {"image": image, "landmarks": np.array([[idx, 2 * idx]], dtype=float), "name": f"face{idx}"}
        return self.transform(sample) if self.transform else sample


class Crop(object):
    def __init__(self, size):
        assert isinstance(size, (int, tuple))
        self.size = size

    def __call__(self, sample):
        return {**sample, "image": sample["image"][:self.size, :self.size]}


class ToTensor(object):
    def __call__(self, sample):
        image = sample["image"].transpose((2, 0, 1))
        return {"image": torch.from_numpy(image), "landmarks": torch.from_numpy(sample["landmarks"]),
                "name": sample["name"]}


def compose(*fs):
    def run(x):
        for f in fs:
            x = f(x)
        return x
    return run


dataset = FaceLandmarksDataset(10, compose(Crop(3), ToTensor()))
for i_batch, sample_batched in enumerate(DataLoader(dataset, batch_size=4, shuffle=False, num_workers=0)):
    print(i_batch, sample_batched["image"].size(), sample_batched["image"].dtype, sample_batched["landmarks"].size(),
          sample_batched["name"])
print([b["landmarks"].dtype for b in DataLoader(dataset, 4, drop_last=True, num_workers=2, pin_memory=False)])
sequences = [torch.arange(n) for n in (3, 1, 4, 2)]


def collate(batch):
    batch.sort(key=len, reverse=True)
    return pad_sequence(batch, batch_first=True, padding_value=-1), torch.tensor([len(s) for s in batch])


padded, lengths = next(iter(DataLoader(sequences, batch_size=4, collate_fn=collate)))
print(padded, lengths)
packed = pack_padded_sequence(padded.float().unsqueeze(-1), lengths, batch_first=True)
rnn = torch.nn.GRU(1, 2, batch_first=True)
out, last = rnn(packed)
unpacked, sizes = pad_packed_sequence(out, batch_first=True)
print(packed.batch_sizes, unpacked.shape, sizes)
unpacked.sum().backward()
print(rnn.weight_ih_l0.grad.shape, torch.allclose(last[0, 0], unpacked[0, 3]))


class Range(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.end))
        per_worker = int(math.ceil((self.end - self.start) / float(info.num_workers)))
        begin = self.start + info.id * per_worker
        return iter(range(begin, min(begin + per_worker, self.end)))


print(list(DataLoader(Range(3, 7), num_workers=0)), list(DataLoader(Range(3, 7), num_workers=2)))
train, val = random_split(range(10), [0.7, 0.3], generator=torch.Generator().manual_seed(42))
print(len(train), len(val), sorted([*train, *val]) == list(range(10)), Subset(dataset, [1, 3])[1]["name"])
both = ConcatDataset([TensorDataset(torch.zeros(3, 2), torch.arange(3)), TensorDataset(torch.ones(2, 2), torch.arange(2))])
print(len(both), both[-1], default_collate([both[0], both[4]]))
weights = torch.DoubleTensor([0, 0, 1, 0])
print(list(WeightedRandomSampler(weights, 5, replacement=True)), list(BatchSampler(SequentialSampler(range(5)), 2, False)))
