"""nn.Transformer with masks of padding, a schedule of its own, and greedy decoding."""
import math

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import Transformer
from torch.nn.utils.rnn import pad_sequence

PAD_IDX, BOS_IDX, EOS_IDX = 1, 2, 3


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size: int, emb_size):
        super(TokenEmbedding, self).__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens: Tensor):
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


class Seq2SeqTransformer(nn.Module):
    def __init__(self, layers: int, emb_size: int, nhead: int, vocab_size: int, dim_feedforward: int = 32):
        super().__init__()
        self.transformer = Transformer(d_model=emb_size, nhead=nhead, num_encoder_layers=layers,
                                       num_decoder_layers=layers, dim_feedforward=dim_feedforward, dropout=0.1)
        self.generator = nn.Linear(emb_size, vocab_size)
        self.src_tok_emb, self.tgt_tok_emb = TokenEmbedding(vocab_size, emb_size), TokenEmbedding(vocab_size, emb_size)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        outs = self.transformer(self.src_tok_emb(src), self.tgt_tok_emb(trg), src_mask, tgt_mask, None,
                                src_padding_mask, tgt_padding_mask, memory_key_padding_mask)
        return self.generator(outs)

    def encode(self, src: Tensor, src_mask: Tensor):
        return self.transformer.encoder(self.src_tok_emb(src), src_mask)

    def decode(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor):
        return self.transformer.decoder(self.tgt_tok_emb(tgt), memory, tgt_mask)


def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz))) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))


def create_mask(src, tgt):
    tgt_mask = generate_square_subsequent_mask(tgt.shape[0]) != 0
    src_mask = torch.zeros((src.shape[0], src.shape[0])).type(torch.bool)
    return src_mask, tgt_mask, (src == PAD_IDX).transpose(0, 1), (tgt == PAD_IDX).transpose(0, 1)


sources = [torch.tensor([BOS_IDX, *range(4, 4 + n), EOS_IDX]) for n in (3, 5, 2, 4)]
src = pad_sequence(sources, padding_value=PAD_IDX)
tgt = pad_sequence([torch.cat((s[:1], s[1:-1].flip(0), s[-1:])) for s in sources], padding_value=PAD_IDX)
model = Seq2SeqTransformer(2, 16, 2, 10)
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003, betas=(0.9, 0.98), eps=1e-9)
model.train()
for epoch in range(15):
    tgt_input, tgt_out = tgt[:-1, :], tgt[1:, :]
    src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input)
    logits = model(src, tgt_input, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, src_padding_mask)
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
model.eval()
memory = model.encode(src[:, :1], torch.zeros(7, 7).type(torch.bool))
ys = torch.ones(1, 1).fill_(BOS_IDX).type(torch.long)
for i in range(6):
    out = model.decode(ys, memory, generate_square_subsequent_mask(ys.size(0)).type(torch.bool)).transpose(0, 1)
    prob = model.generator(out[:, -1])
    _, next_word = torch.max(prob, dim=1)
    next_word = next_word.item()
    ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=0)
    if next_word == EOS_IDX:
        break
print(ys.flatten())
