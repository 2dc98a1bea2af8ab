"""Names classified by a recurrent network that reads their letters, written as a module of one step."""
import string
import unicodedata

import torch
import torch.nn as nn
import torch.nn.functional as F

all_letters = string.ascii_letters + " .,;'"
n_letters = len(all_letters)
names = {"A": ["Ándrea", "Bianchi", "Rossi", "Ricci"], "B": ["Müller", "Schmidt", "Weiß", "Koch"],
         "C": ["O'Neal", "Smith", "Jones", "Brown"]}
categories = list(names)


def to_ascii(s):
    return "".join(c for c in unicodedata.normalize("NFD", s) if unicodedata.category(c) != "Mn" and c in all_letters)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(RNN, self).__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = F.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 32, len(categories))
criterion = nn.NLLLoss()
learning_rate = 0.005


def category_from_output(output):
    top_n, top_i = output.topk(1)
    category_i = top_i[0].item()
    return categories[category_i], category_i


def train(category_tensor, line_tensor):
    hidden = rnn.initHidden()
    rnn.zero_grad()
    for i in range(line_tensor.size()[0]):
        output, hidden = rnn(line_tensor[i], hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return output, loss.item()


for epoch in range(6):
    current_loss = 0
    for k in range(4):
        for c, category in enumerate(categories):
            line = to_ascii(names[category][k])
            output, loss = train(torch.tensor([c], dtype=torch.long), line_to_tensor(line))
            current_loss += loss
    guess, guess_i = category_from_output(output)
    print(f"{epoch} {current_loss / 12:.4f} {line} / {guess}")
confusion = torch.zeros(3, 3)
with torch.no_grad():
    for i, category in enumerate(categories):
        for name in names[category]:
            hidden = rnn.initHidden()
            for letter in line_to_tensor(to_ascii(name)):
                output, hidden = rnn(letter, hidden)
            confusion[i][category_from_output(output)[1]] += 1
for i in range(3):
    confusion[i] = confusion[i] / confusion[i].sum()
print(confusion)
