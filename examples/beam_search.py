"""Beam search over a small language model: a loop that ends when every beam has, compiled as a whole.

    python examples/beam_search.py

The model is a table of next-letter probabilities, counted in a text; what is found are likely words. The search is
differentiated too: how the score of the best word changes with the table.
"""

import numpy as np

import mlc

TEXT = ("the rain in spain stays mainly in the plain and then the train in the lane remains "
        "the same as the men explain ")
LETTERS = sorted(set(TEXT))
END = LETTERS.index(" ")


def counted(text=TEXT):
    """log P(next letter | letter), from how often one follows the other."""
    counts = np.full((len(LETTERS), len(LETTERS)), 0.01)
    for a, b in zip(text, text[1:]):
        counts[LETTERS.index(a), LETTERS.index(b)] += 1
    return np.log(counts / counts.sum(1, keepdims=True)).astype(np.float32)


def search(table, width=4, longest=12):
    """The `width` best words and their scores, which are log-probabilities; letters as numbers, ended by END."""
    vocabulary = table.shape[0]
    words = mlc.full((width, longest), END)
    scores = mlc.where(mlc.arange(width) == 0, 0.0, -1e30)            # all beams start as one
    last = mlc.full((width,), END)
    done = mlc.zeros((width,), dtype=mlc.bool)
    length = 0
    while not done.all() and length < longest:
        stay = mlc.where(mlc.arange(vocabulary) == END, 0.0, -1e30)   # a word that has ended can only stay as it is
        following = mlc.where(done[:, None], stay, table[last])
        scores, best = mlc.topk((scores[:, None] + following).reshape(-1), width)
        beam, letter = best // vocabulary, best % vocabulary
        words = mlc.where(mlc.arange(longest) == length, letter[:, None], words[beam])
        done = done[beam] | (letter == END)
        last = letter
        length += 1
    return words, scores


def best_score(table):
    return search(table)[1][0]


def spelled(word):
    return "".join(LETTERS[i] for i in word).split(" ")[0]


def main():
    table = counted()
    words, scores = mlc.compile(search)(table)
    for word, score in zip(words.numpy(), scores.numpy()):
        print(f"{spelled(word):12} {score:.3f}")
    slope = mlc.compile(mlc.grad(best_score))(table).numpy()
    used = [f"{LETTERS[a]}{LETTERS[b]}" for a, b in zip(*np.nonzero(slope))]
    print("the best word's score depends on the pairs", ", ".join(used))
    return [spelled(w) for w in words.numpy()], used


if __name__ == "__main__":
    main()
