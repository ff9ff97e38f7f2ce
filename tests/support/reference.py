"""The training procedure of EMNLP 2022, written plainly and slowly: padded means, row-by-row
mining, dense Adam.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def embed(table, sentences):
    """Means of rows, sentence by sentence."""
    return torch.stack([table[torch.tensor(ids)].mean(0) for ids in sentences])


def hardest(query, candidates, allowed):
    """The most similar allowed candidate of one query."""
    cosines = F.cosine_similarity(query[None], candidates)
    return max(
        (j for j in range(len(candidates)) if allowed(j)),
        key=lambda j: float(cosines[j]),
        default=None,
    )


def mine(embeddings, s, t, both_sides, mask_duplicates):
    """Negatives of each s and each t of a mega-batch, as sentences, by the embeddings of all s and
    all t.
    """
    texts, n = (s, t), len(s)
    negatives = ([], [])
    for side in (0, 1):
        if both_sides:
            pool, vectors = [*s, *t], torch.cat(embeddings)
        else:
            pool, vectors = texts[1 - side], embeddings[1 - side]
        for i in range(n):

            def allowed(j, i=i):
                k = j % n
                shares = {tuple(s[i]), tuple(t[i])} & {tuple(s[k]), tuple(t[k])}
                return k != i and not (mask_duplicates and shares)

            found = hardest(embeddings[side][i], vectors, allowed)
            negatives[side].append(texts[1 - side][i] if found is None else pool[found])
    return negatives


def train(
    table,
    epochs,
    batch_size,
    maximum,
    interval,
    margin=0.4,
    rate=1e-3,
    both_sides=False,
    mask_duplicates=True,
):
    """Train `table` on each epoch's pairs of id lists in their order; return losses, M's and the
    table.

    `rate` is the learning rate, or gives that of each step, from 0 on.
    """
    table = torch.nn.Parameter(table.clone())
    optimizer = torch.optim.Adam([table])
    losses, sizes = [], []
    size, seen, passed = 1, 0, 0
    for pairs in epochs:
        batches = [pairs[i : i + batch_size] for i in range(0, len(pairs), batch_size)]
        while batches:
            if seen // interval > passed and size < maximum:
                size, passed = size + 1, seen // interval
            mega, batches = batches[:size], batches[size:]
            s, t = ([pair[side] for batch in mega for pair in batch] for side in (0, 1))
            frozen = table.detach()
            of_s, of_t = mine(
                (embed(frozen, s), embed(frozen, t)), s, t, both_sides, mask_duplicates
            )
            start = 0
            for batch in mega:
                rows = slice(start, start + len(batch))
                start += len(batch)
                a, b, c, d = (embed(table, x[rows]) for x in (s, t, of_s, of_t))
                positive = F.cosine_similarity(a, b)
                loss = F.relu(margin - positive + F.cosine_similarity(a, c)).mean()
                loss = loss + F.relu(margin - positive + F.cosine_similarity(b, d)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.param_groups[0]["lr"] = rate(seen) if callable(rate) else rate
                optimizer.step()
                losses.append(loss.item())
                sizes.append(size)
                seen += 1
    return losses, sizes, table.detach()
