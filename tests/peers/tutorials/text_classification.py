"""Bags of words: EmbeddingBag with offsets, and skip-grams with negative samples."""
import re
from collections import Counter, OrderedDict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torch.utils.data.dataset import random_split

texts = [(1, "the market fell sharply today"), (2, "the team won the match"), (1, "stocks and bonds fell"),
         (2, "a late goal won it"), (1, "bonds rose today"), (2, "the match was late"), (1, "the market rose"), (2, "a goal")]
tokenizer = lambda s: re.findall(r"\w+", s.lower())
counter = Counter(word for _, text in texts for word in tokenizer(text))
vocab = OrderedDict((word, i + 1) for i, (word, _) in enumerate(sorted(counter.items(), key=lambda t: (-t[1], t[0]))))


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for _label, _text in batch:
        label_list.append(int(_label) - 1)
        processed_text = torch.tensor([vocab.get(w, 0) for w in tokenizer(_text)], dtype=torch.int64)
        text_list.append(processed_text)
        offsets.append(processed_text.size(0))
    return torch.tensor(label_list), torch.cat(text_list), torch.tensor(offsets[:-1]).cumsum(dim=0)


model = TextClassificationModel(len(vocab) + 1, 8, 2)
criterion, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=2.0)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1, factor=0.5)
split_train, split_valid = texts[:6], texts[6:]
for epoch in range(5):
    model.train()
    for idx, (label, text, offsets) in enumerate(DataLoader(split_train, 3, shuffle=True, collate_fn=collate_batch)):
        optimizer.zero_grad()
        loss = criterion(model(text, offsets), label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        label, text, offsets = collate_batch(split_valid)
        accu = (model(text, offsets).argmax(1) == label).sum().item() / label.size(0)
    scheduler.step(accu)
    print("| end of epoch {:3d} | valid accuracy {:8.3f} lr {}".format(epoch, accu, optimizer.param_groups[0]["lr"]))
print([len(part) for part in random_split(texts, [6, 2])])

center, context = nn.Embedding(len(vocab) + 1, 6, padding_idx=0, max_norm=1.0), nn.Embedding(len(vocab) + 1, 6, sparse=True)
center(torch.tensor([0])), context(torch.tensor([0]))
sparse_opt, dense_opt = torch.optim.SparseAdam(list(context.parameters()), lr=0.05), torch.optim.Adagrad(center.parameters(), 0.1)
for step in range(4):
    words = torch.tensor([(3 * step + k) % len(vocab) + 1 for k in range(4)])
    positive, negative = (words % len(vocab)) + 1, torch.stack([(words + 5) % len(vocab) + 1, (words + 7) % len(vocab) + 1], 1)
    u = center(words)
    good = F.logsigmoid((u * context(positive)).sum(1))
    bad = F.logsigmoid(-torch.bmm(context(negative), u.unsqueeze(2)).squeeze(2)).sum(1)
    loss = -(good + bad).mean()
    sparse_opt.zero_grad(), dense_opt.zero_grad()
    loss.backward()
    sparse_opt.step(), dense_opt.step()
    print(loss.item(), context.weight.grad.is_sparse)
print(F.cosine_similarity(center.weight[1:3].detach(), center.weight[3:5].detach()), center.weight[0].detach())
