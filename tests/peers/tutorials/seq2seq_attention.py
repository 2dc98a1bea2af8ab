"""Translation: a GRU reads, another writes and attends to what was read (Bahdanau's attention)."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SOS_token, EOS_token, MAX_LENGTH = 0, 1, 6
random.seed(3)
pairs = []
for _ in range(24):
    words = [random.randint(2, 9) for _ in range(random.randint(2, 5))]
    pairs.append((words + [EOS_token], [11 - w for w in reversed(words)] + [EOS_token]))


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size), nn.Linear(
            hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, hidden, target=None):
        word = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long, device=encoder_outputs.device).fill_(SOS_token)
        outputs, attentions = [], []
        for i in range(MAX_LENGTH):
            query = hidden.permute(1, 0, 2)
            context, weights = self.attention(query, encoder_outputs)
            output, hidden = self.gru(torch.cat((self.embedding(word), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            word = target[:, i].unsqueeze(1) if target is not None else output.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, dim=1)


input_ids, target_ids = torch.zeros(2, len(pairs), MAX_LENGTH, dtype=torch.int64)
for n, (source, target) in enumerate(pairs):
    input_ids[n, :len(source)] = torch.LongTensor(source)
    target_ids[n, :len(target)] = torch.LongTensor(target)
data = TensorDataset(input_ids, target_ids)
loader = DataLoader(data, sampler=RandomSampler(data), batch_size=8)
encoder, decoder = EncoderRNN(10, 16), AttnDecoderRNN(16, 10)
encoder_optimizer, decoder_optimizer = optim.Adam(encoder.parameters(), lr=0.01), optim.Adam(decoder.parameters(), lr=0.01)
criterion = nn.NLLLoss()
for epoch in range(1, 9):
    total = 0
    for source, target in loader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        outputs, hidden = encoder(source)
        scores, _, _ = decoder(outputs, hidden, target if random.random() < 0.8 else None)
        loss = criterion(scores.view(-1, scores.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step(), decoder_optimizer.step()
        total += loss.item()
    print("epoch %d: %.4f" % (epoch, total / len(loader)))
