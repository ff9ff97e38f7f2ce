"""Whether an installed wheel works: its kernels are there, and the model that comes with it knows a
translation.

Run by the builder of wheels in an environment that has the wheel and what it requires, and nothing
else.
"""

import sys

from st_paragram import load
from st_paragram.core.native import kernels

SENTENCES = [
    "where is the railway station?",
    "¿dónde está la estación?",
    "the cat sleeps on the sofa",
]

if __name__ == "__main__":
    if kernels() is None:
        sys.exit("the wheel has no compiled kernels")
    model = load("p-sp-mini")
    rows = model.encode(SENTENCES)
    right, wrong = model.similarity(rows[:1], rows[1:])[0].tolist()
    if not right > wrong + 0.2:
        sys.exit(f"a translation has the cosine {right:.3f}, another sentence {wrong:.3f}")
    sys.stdout.write(
        f"kernels are there; cosine of a translation {right:.3f}, of another sentence {wrong:.3f}\n"
    )
