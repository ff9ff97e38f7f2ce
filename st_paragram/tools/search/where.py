r"""Conditions on the fields of sentences: a small part of SQL, which is parsed and written again
for LanceDB.

    condition:   conjunction { OR conjunction }
    conjunction: factor { AND factor }
    factor:      NOT factor | ( condition ) | TRUE | FALSE | test
    test:        field, of true or false
                 field = value; also !=, <>, <, <=, > and >=
                 field IS [NOT] NULL
                 field [NOT] IN (value, ...)
                 field [NOT] LIKE 'pattern', with % for any text, _ for a character,
                 and \ before a literal %, _ or \
                 field [NOT] BETWEEN value AND value
    field:       name, `name` or "name"
    value:       'text', a number, TRUE or FALSE

LanceDB's own SQL has functions and arithmetic, with which a condition of a few bytes can take all
memory. Long or nested conditions overflow its stack and end the process. So it gets only what this
module has written.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, cast

from st_paragram.errors import SettingsError, one_line, short

MAX_CHARACTERS = 100_000
MAX_DEPTH = 20  # nested parentheses and NOT
MAX_TESTS = 1_000
# characters of all LIKE patterns: LanceDB compiles them to regular expressions
MAX_PATTERNS = 2_000
MAX_INTEGER = 2**63 - 1
MIN_INTEGER = -(2**63)
EXAMPLE = "\"lang = 'es' and year >= 2020\""

# Only ASCII has a meaning: there are other digits, and other letters that look like those of
# keywords.
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<text>'[^']*(?:''[^']*)*')
    |(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<quoted>`[^`]+`|"[^"]+")
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|<>|!=|[=<>(),])
    |(?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset(("and", "or", "not", "in", "like", "is", "null", "between", "true", "false"))
_NEGATIONS = {"=": "!=", "!=": "=", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_KINDS = {"string": "text", "int64": "integers", "double": "numbers", "bool": "true or false"}
_MAX_LEVELS = 46  # of LanceDB's parser
_LISTED_FIELDS = 20  # in an error

Number = int | Decimal
Value = str | Number | bool


def rewritten(condition: object, fields: Mapping[str, str]) -> str:
    """Parse a condition and write it again as SQL for LanceDB.

    Args:
        condition: The condition.
        fields: Types of the fields by name: string, int64, double or bool.

    Raises:
        SettingsError: The condition is not in the grammar of this module, is too long, names an
            unknown field, or compares a field with a value of another type.
    """
    if not isinstance(condition, str):
        raise SettingsError(f"where is {short(condition)}; give a condition, such as {EXAMPLE}")
    try:
        return _Parser(condition, fields).parse()
    except _Refused as refused:
        raise SettingsError(f"filter {short(condition)}: {one_line(refused, most=600)}") from None


class _Refused(Exception):
    """The reason why a condition is refused."""


class _Token(NamedTuple):
    kind: str  # a group of `_TOKEN`, or keyword
    value: str  # a keyword in lower case; otherwise as written
    place: int  # from 1

    def __str__(self) -> str:
        return (
            "the end"
            if self.kind == "end"
            else f"{short(self.value, 40)} at character {self.place}"
        )


class _Sql(NamedTuple):
    levels: int  # of LanceDB's parser, which refuses 49
    text: str


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, condition: str, fields: Mapping[str, str]) -> None:
        self.fields = fields
        self.tokens = _tokens(condition)
        self.position = 0
        self.depth = 0
        self.tests = 0
        self.patterns = 0

    def parse(self) -> str:
        """Parse the whole condition."""
        if self._token.kind == "end":
            raise _Refused(f"it is empty; give a condition, such as {EXAMPLE}")
        condition = self._condition(negated=False)
        if self._token.kind != "end":
            raise _Refused(f"unexpected {self._token}; connect conditions with and, or")
        if condition.levels > _MAX_LEVELS:
            raise _Refused(
                "it has too many comparisons in too many parentheses; write it with fewer"
                " parentheses"
            )
        return condition.text

    @property
    def _token(self) -> _Token:
        return self.tokens[self.position]

    def _take(self, *values: str) -> str | None:
        """Take the next token if it is one of these signs or keywords."""
        token = self._token
        if token.kind not in ("sign", "keyword") or token.value not in values:
            return None
        self.position += 1
        return token.value

    def _expect(self, value: str, advice: str) -> None:
        if self._take(value) is None:
            raise _Refused(f"expected {value.upper()}, not {self._token}; {advice}")

    def _condition(self, negated: bool) -> _Sql:
        """Parse a condition; if it is negated, write its negation: NOT is passed on to the tests."""
        conjunctions = [self._conjunction(negated)]
        while self._take("or"):
            conjunctions.append(self._conjunction(negated))
        return _joined(conjunctions, "AND" if negated else "OR")

    def _conjunction(self, negated: bool) -> _Sql:
        factors = [self._factor(negated)]
        while self._take("and"):
            factors.append(self._factor(negated))
        return _joined(factors, "OR" if negated else "AND")

    def _factor(self, negated: bool) -> _Sql:
        if opening := self._take("not", "("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _Refused(
                    f"it has more than {MAX_DEPTH} levels of parentheses and NOT; write it with"
                    " fewer"
                )
            if opening == "not":
                factor = self._factor(not negated)
            else:
                factor = self._condition(negated)
                self._expect(")", "close the parenthesis")
            self.depth -= 1
            return factor
        self.tests += 1
        if self.tests > MAX_TESTS:
            raise _Refused(
                f"it has more than {MAX_TESTS:,} comparisons; use in (...) or several filters"
            )
        if constant := self._take("true", "false"):
            return _Sql(1, str((constant == "true") != negated).lower())
        return _Sql(2, self._test(negated))

    def _test(self, negated: bool) -> str:
        name = self._field()
        kind = self.fields[name]
        if comparison := self._take(*_NEGATIONS):
            sign = _NEGATIONS[comparison] if negated else comparison
            value = self._value(name)
            if kind == "int64":
                return _integer_comparison(name, sign, value)
            return f"`{name}` {sign} {_sql(name, kind, value)}"
        if self._take("is"):
            negated = negated != bool(self._take("not"))
            self._expect("null", f"only {name} is null and {name} is not null are possible")
            return f"`{name}` IS {'NOT ' if negated else ''}NULL"
        has_not = bool(self._take("not"))
        word = "NOT " if negated != has_not else ""
        if self._take("in"):
            values = self._list(name)
            if kind == "int64":
                return _integer_list(name, word, values)
            listed = dict.fromkeys(_sql(name, kind, value) for value in values)
            return f"`{name}` {word}IN ({', '.join(listed)})"
        if self._take("like"):
            return f"`{name}` {word}LIKE {self._pattern(name, kind)}"
        if self._take("between"):
            low = self._value(name)
            self._expect("and", f"write {name} between a and b")
            high = self._value(name)
            if kind == "int64":
                return _integer_range(name, word, low, high)
            return f"`{name}` {word}BETWEEN {_sql(name, kind, low)} AND {_sql(name, kind, high)}"
        if has_not or kind != "bool":
            raise _Refused(
                f"unexpected {self._token} after field {name}; compare it, as in {EXAMPLE}"
            )
        return f"`{name}` = {str(not negated).lower()}"

    def _field(self) -> str:
        token = self._token
        if token.kind not in ("word", "quoted"):
            raise _Refused(
                f"expected the name of a field, not {token}; compare fields with values, as in"
                f" {EXAMPLE}"
            )
        name = token.value[1:-1] if token.kind == "quoted" else token.value
        if name not in self.fields:
            names = list(self.fields)
            rest = (
                f" and {len(names) - _LISTED_FIELDS} others" if len(names) > _LISTED_FIELDS else ""
            )
            listed = ", ".join(names[:_LISTED_FIELDS])
            raise _Refused(
                f"unknown field {short(name, 40)} at character {token.place}; fields are"
                f" {listed}{rest}"
            )
        self.position += 1
        return name

    def _value(self, name: str) -> Value:
        token = self._token
        self.position += 1
        if token.kind == "text":
            return _text(token)
        if token.kind == "number":
            return _number(token)
        if token.kind == "keyword" and token.value in ("true", "false"):
            return token.value == "true"
        advice = "give a number, or text in single quotes"
        if token.kind == "keyword" and token.value == "null":
            advice = f"write {name} is null"
        raise _Refused(f"expected a value, not {token}; {advice}")

    def _list(self, name: str) -> list[Value]:
        self._expect("(", f"write {name} in (a, b)")
        values = [self._value(name)]
        while self._take(","):
            values.append(self._value(name))
        self._expect(")", "close the list with a parenthesis")
        return values

    def _pattern(self, name: str, kind: str) -> str:
        token = self._token
        if kind != "string" or token.kind != "text":
            raise _Refused(
                f"{name} like {token}: LIKE compares a field of text with a pattern in single"
                " quotes"
            )
        self.position += 1
        pattern = _text(token)
        self.patterns += len(pattern)
        if self.patterns > MAX_PATTERNS:
            raise _Refused(
                f"its LIKE patterns have more than {MAX_PATTERNS:,} characters; shorten them"
            )
        # A backslash before any other character is an ordinary character
        return _quoted(
            re.sub(r"\\([%_\\]?)", lambda match: match[0] if match[1] else r"\\", pattern)
        )


def _tokens(condition: str) -> list[_Token]:
    if len(condition) > MAX_CHARACTERS:
        raise _Refused(
            f"it has {len(condition):,} characters; at most {MAX_CHARACTERS:,} are allowed"
        )
    tokens = list[_Token]()
    position = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(condition, position)
        if match is None:
            rest = condition[position:].lstrip(" \t\r\n")
            place = len(condition) - len(rest) + 1
            problem = (
                "a quote is not closed" if rest[0] in "'`\"" else f"unexpected {short(rest[:1])}"
            )
            raise _Refused(
                f"{problem} at character {place}; compare fields with values, as in {EXAMPLE}"
            )
        kind = match.lastgroup or ""
        value = match[kind]
        place = match.start(kind) + 1
        if kind == "word" and value.isascii() and value.lower() in _KEYWORDS:
            kind = "keyword"
            value = value.lower()
        tokens.append(_Token(kind, value, place))
        position = match.end()
    return tokens


def _text(token: _Token) -> str:
    text = token.value[1:-1].replace("''", "'")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise _Refused(f"{token} is not Unicode text; write it in UTF-8")
    return text


def _number(token: _Token) -> Number:
    number = float(token.value)
    if number in (float("inf"), float("-inf")):
        raise _Refused(f"{token} is too large; give a smaller number")
    if re.search("[.eE]", token.value):
        try:
            return Decimal(token.value)
        except InvalidOperation:  # an exponent of many digits: the number is 0 or very near
            return Decimal(number)
    # int() refuses thousands of digits
    if abs(number) > 2 * MAX_INTEGER or abs(int(token.value)) > MAX_INTEGER:
        raise _Refused(
            f"{token} has more than 64 bits; give an integer from {-MAX_INTEGER} to {MAX_INTEGER}"
        )
    return int(token.value)


def _check_kind(name: str, kind: str, value: Value) -> None:
    """Refuse to compare a field with a value of another type."""
    is_right = isinstance(value, {"string": str, "bool": bool}.get(kind, Number))
    if is_right and (kind == "bool" or not isinstance(value, bool)):
        return
    if isinstance(value, bool):
        written = str(value).lower()
    else:
        written = short(value, 40) if isinstance(value, str) else one_line(value, 40)
    advice = f"write '{value}' in quotes" if kind == "string" else "give a value of this kind"
    raise _Refused(
        f"field {name} holds {_KINDS[kind]}, but it is compared with {written}; {advice}"
    )


def _sql(name: str, kind: str, value: Value) -> str:
    """Write a value for a field of text, decimals or truth values in SQL."""
    _check_kind(name, kind, value)
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else str(float(value))


# An integer is compared with decimals as an integer, since doubles cannot represent most large
# integers. NOT has been passed on to the tests, so a test may be false where it is unknown: a test
# that all integers pass is `IS NOT NULL`.


def _integer_comparison(name: str, sign: str, value: Value) -> str:
    """Write a comparison of an integer field with a number."""
    number = _checked_number(name, value)
    nearest = math.ceil(number)
    if nearest == number and MIN_INTEGER <= nearest <= MAX_INTEGER:
        return f"`{name}` {sign} {_integer(nearest)}"
    if sign in ("=", "!=", "<>"):
        return _constant(name, sign != "=")
    is_from = sign in (">", ">=")  # the number is between two integers, so > is >=, and <= is <
    if nearest > MAX_INTEGER:
        return _constant(name, not is_from)
    if nearest <= MIN_INTEGER:
        return _constant(name, is_from)
    return f"`{name}` {'>=' if is_from else '<'} {_integer(nearest)}"


def _integer_list(name: str, word: str, values: Sequence[Value]) -> str:
    """Write [NOT] IN for an integer field and numbers, of which only integers of 64 bits can be
    equal to it.
    """
    listed = dict[str, None]()
    for value in values:
        number = _checked_number(name, value)
        if MIN_INTEGER <= number <= MAX_INTEGER and math.ceil(number) == number:
            listed[_integer(math.ceil(number))] = None
    if not listed:
        return _constant(name, bool(word))
    return f"`{name}` {word}IN ({', '.join(listed)})"


def _integer_range(name: str, word: str, low: Value, high: Value) -> str:
    """Write [NOT] BETWEEN for an integer field and two numbers."""
    first = max(MIN_INTEGER, math.ceil(_checked_number(name, low)))
    last = min(MAX_INTEGER, math.floor(_checked_number(name, high)))
    if first > last:
        return _constant(name, bool(word))
    return f"`{name}` {word}BETWEEN {_integer(first)} AND {_integer(last)}"


def _checked_number(name: str, value: Value) -> Number:
    _check_kind(name, "int64", value)
    return cast("Number", value)


def _constant(name: str, value: bool) -> str:
    """Write a test that all values of a field pass, or none."""
    return f"`{name}` IS NOT NULL" if value else "false"


def _integer(number: int) -> str:
    # LanceDB reads the smallest integer as a decimal
    return f"({number + 1} - 1)" if number == MIN_INTEGER else str(number)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _joined(parts: list[_Sql], operator: str) -> _Sql:
    """Join conditions pairwise, the flattest first: LanceDB's parser and its stack have few levels.

    The right side of an operator takes two levels of the parser, the left side one.
    """
    heap = [(part.levels, number, part.text) for number, part in enumerate(parts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        flat, number, right = heapq.heappop(heap)
        deep, _, left = heapq.heappop(heap)
        heapq.heappush(heap, (max(deep + 1, flat + 2), number, f"({left} {operator} {right})"))
    levels, _, text = heap[0]
    return _Sql(levels, text)
