"""Random conditions on fields, each with an evaluation in Python, and random strings that are
almost conditions.
"""

from __future__ import annotations

import operator
import re

WORDS = [
    "en",
    "es",
    "a'b",
    "x\\y",
    "100%",
    "a_b",
    "two\nlines",
    "n\0ul",
    "日本",
    "🙂",
    "O''Neil",
    " ",
    "\\",
    "\\%",
    "--",
    "En",
]
FIELDS = {
    "lang": WORDS,
    "a b": WORDS,
    "year": [-3, 0, 7, 2020, 2021, 2**62],
    "price": [-1.5, 0.0, 2.0, 2.5, 1e30],
}
FIELDS |= {"ok": [True, False], "日本": [1, 2]}
GARBAGE = [
    "'",
    '"',
    "`",
    "(",
    ")",
    ",",
    ";",
    "--",
    "/*",
    "$1",
    "?",
    "+ 1",
    "* 2",
    "::int",
    "cast(year as int)",
    "null",
]
GARBAGE += [
    "length(text)",
    "repeat('a', 9)",
    "(select 1)",
    "＝",
    "ａｎｄ",
    "１",
    "\0",
    "\\",
    ".",
    "=",
    "not",
    "is",
    "in",
]
GARBAGE += [
    "like",
    "between",
    "and",
    "or",
    "true",
    "1e400",
    "9" * 30,
    "_rowid",
    "vector",
    "x.y",
    "case when",
    "\ud800",
]
COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}
COMPARISONS |= {">": operator.gt, ">=": operator.ge}


def rows(rng, count):
    """Return the fields of sentences; a third of the values is missing."""
    made = []
    for _ in range(count):
        fields = {name: rng.choice(values) for name, values in FIELDS.items() if rng.random() > 0.3}
        made.append({name: value for name, value in fields.items() if value != ""})
    return made


def condition(rng, depth=3):
    """Return a condition, and a function from the fields of a row to True, False or None."""
    kind = rng.random()
    if depth and kind < 0.5:
        word, decisive = rng.choice([("and", False), ("OR", True)])
        parts = [condition(rng, depth - 1) for _ in range(rng.randint(2, 4))]
        text = f" {word} ".join(f"({part})" for part, _ in parts)

        def joined(row):
            values = [test(row) for _, test in parts]
            if decisive in values:
                return decisive
            return None if None in values else not decisive

        return text, joined
    if depth and kind < 0.6:
        text, test = condition(rng, depth - 1)
        return f"not ({text})", lambda row: None if test(row) is None else not test(row)
    return _test(rng)


def garbage(rng):
    """Return a condition with parts inserted, removed or exchanged; sometimes only garbage."""
    pieces = re.findall(r"\w+|\s+|.", condition(rng)[0], re.DOTALL) if rng.random() < 0.8 else []
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(pieces))
        pieces[place : place + rng.randint(0, 2)] = [rng.choice(GARBAGE)] * rng.randint(1, 2)
    return "".join(pieces)


def _test(rng):
    name = rng.choice(list(FIELDS))
    values = FIELDS[name]
    column = f"`{name}`" if " " in name or rng.random() < 0.3 else name
    first, second = rng.choice(values), rng.choice(values)
    form = rng.randint(0, 5)
    if name == "ok":
        form = rng.choice([0, 1, 5])
    if form == 0:
        sign = rng.choice(["=", "!=", "<>"] if name == "ok" else list(COMPARISONS))
        return _known(
            name,
            f"{column} {sign} {_written(first)}",
            lambda value: COMPARISONS[sign](value, first),
        )
    if form == 1:
        negated = rng.random() < 0.5
        text = f"{column} is {'not ' * negated}null"
        return text, lambda row: (name in row) == negated
    negated = rng.random() < 0.5
    no = "NOT " * negated
    if form == 2:
        listed = rng.choices(values, k=rng.randint(1, 5))
        text = f"{column} {no}in ({', '.join(map(_written, listed))})"
        return _known(name, text, lambda value: (value in listed) != negated)
    if form == 3:
        text = f"{column} {no}between {_written(first)} and {_written(second)}"
        return _known(name, text, lambda value: (first <= value <= second) != negated)
    if form == 4 and isinstance(first, str):
        pattern = "".join(
            rng.choice(["%", "_", "\\%", "\\_", "\\\\", "\\x", *WORDS])
            for _ in range(rng.randint(0, 3))
        )
        regex = re.sub(r"\\[\\%_]|.", _piece, pattern, flags=re.DOTALL)
        text = f"{column} {no}like {_written(pattern)}"
        return _known(
            name, text, lambda value: bool(re.fullmatch(regex, value, re.DOTALL)) != negated
        )
    return _known("ok", rng.choice(["ok", "`ok`", '"ok"']), lambda value: value)


def _known(name, text, test):
    return text, lambda row: test(row[name]) if name in row else None


def _piece(match):
    return {"%": ".*", "_": "."}.get(match[0], re.escape(match[0][1:] or match[0]))


def _written(value):
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()
