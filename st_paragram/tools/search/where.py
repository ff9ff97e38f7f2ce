r"""Conditions on the fields of sentences: a small part of SQL, written again for LanceDB.

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
memory. Long or nested conditions overflow its stack and end the process. So LanceDB gets only what
this module has written.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from st_paragram.errors import SettingsError, one_line, short

MAX_CHARACTERS = 100_000
MAX_DEPTH = 20  # nested parentheses and NOT
MAX_TESTS = 1_000
# characters of all LIKE patterns: LanceDB compiles them to regular expressions
MAX_PATTERNS = 2_000
MAX_INTEGER = 2**63 - 1
MAX_EXACT = 2**53  # decimals represent whole numbers up to this exactly
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
_NEGATIONS = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CONTENTS = {"string": "text", "int64": "integers", "double": "numbers", "bool": "true or false"}
_TYPES = {"string": (str,), "int64": (int, float), "double": (int, float), "bool": (bool,)}
_MAX_LEVELS = 46  # of LanceDB's parser, which refuses 49

Value = str | int | float | bool


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
    return _Parser(condition, fields).parse()


class _Token(NamedTuple):
    kind: str  # a group of `_TOKEN`, or keyword
    value: str  # a keyword in lower case; otherwise as written
    place: int  # from 1

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end"
        return f"{short(self.value, 40)} at character {self.place}"


class _Sql(NamedTuple):
    levels: int  # of LanceDB's parser
    text: str


class _Parser:
    """A parser by recursive descent.

    NOT is passed on to the tests. LanceDB would need a level for each NOT.
    """

    def __init__(self, condition: str, fields: Mapping[str, str]) -> None:
        self.condition = condition
        self.fields = fields
        self.tokens = self._tokens()
        self.position = 0
        self.depth = 0
        self.tests = 0
        self.pattern_characters = 0

    def parse(self) -> str:
        """Parse the whole condition."""
        if self._token.kind == "end":
            raise self._error(f"it is empty; give a condition, such as {EXAMPLE}")
        sql = self._condition(is_negated=False)
        if self._token.kind != "end":
            raise self._error(f"unexpected {self._token}; connect conditions with and, or")
        if sql.levels > _MAX_LEVELS:
            raise self._error("it is nested too deeply; write it with fewer parentheses")
        return sql.text

    def _error(self, problem: str) -> SettingsError:
        return SettingsError(f"filter {short(self.condition)}: {one_line(problem, most=600)}")

    def _tokens(self) -> list[_Token]:
        length = len(self.condition)
        if length > MAX_CHARACTERS:
            raise self._error(
                f"it has {length:,} characters; at most {MAX_CHARACTERS:,} are allowed"
            )
        tokens: list[_Token] = []
        position = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self.condition, position)
            if match is None:
                rest = self.condition[position:].lstrip(" \t\r\n")
                problem = f"unexpected {short(rest[0])}"
                if rest[0] in "'`\"":
                    problem = "a quote is not closed"
                place = length - len(rest) + 1
                raise self._error(
                    f"{problem} at character {place}; compare fields with values, as in {EXAMPLE}"
                )
            kind = str(match.lastgroup)
            value = match[kind]
            if kind == "word" and value.isascii() and value.lower() in _KEYWORDS:
                kind = "keyword"
                value = value.lower()
            tokens.append(_Token(kind, value, match.start(match.lastgroup or 0) + 1))
            position = match.end()
        return tokens

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
            raise self._error(f"expected {value.upper()}, not {self._token}; {advice}")

    def _condition(self, is_negated: bool) -> _Sql:
        conjunctions = [self._conjunction(is_negated)]
        while self._take("or"):
            conjunctions.append(self._conjunction(is_negated))
        return _joined(conjunctions, "AND" if is_negated else "OR")

    def _conjunction(self, is_negated: bool) -> _Sql:
        factors = [self._factor(is_negated)]
        while self._take("and"):
            factors.append(self._factor(is_negated))
        return _joined(factors, "OR" if is_negated else "AND")

    def _factor(self, is_negated: bool) -> _Sql:
        if opening := self._take("not", "("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self._error(
                    f"it has more than {MAX_DEPTH} levels of parentheses and NOT; use fewer"
                )
            if opening == "not":
                factor = self._factor(not is_negated)
            else:
                factor = self._condition(is_negated)
                self._expect(")", "close the parenthesis")
            self.depth -= 1
            return factor
        self.tests += 1
        if self.tests > MAX_TESTS:
            raise self._error(
                f"it has more than {MAX_TESTS:,} comparisons; use in (...) or several filters"
            )
        if constant := self._take("true", "false"):
            return _Sql(1, literal((constant == "true") != is_negated))
        return _Sql(2, self._test(is_negated))

    def _test(self, is_negated: bool) -> str:
        name = self._field()
        if sign := self._take("<>", *_NEGATIONS):
            sign = sign.replace("<>", "!=")
            if is_negated:
                sign = _NEGATIONS[sign]
            return _comparison(name, sign, self._value(name), self.fields[name])
        if self._take("is"):
            is_null = bool(self._take("not")) == is_negated
            self._expect("null", f"only {name} is null and {name} is not null are possible")
            return f"`{name}` IS NULL" if is_null else f"`{name}` IS NOT NULL"
        has_not = bool(self._take("not"))
        negation = "NOT " if has_not != is_negated else ""
        if self._take("in"):
            values = self._list(name)
            if not values:  # no integer can be equal to one of the values
                return f"`{name}` IS NOT NULL" if negation else "false"
            return f"`{name}` {negation}IN ({', '.join(values)})"
        if self._take("like"):
            return f"`{name}` {negation}LIKE {self._pattern(name)}"
        if self._take("between"):
            low = self._value(name)
            self._expect("and", f"write {name} between a and b")
            high = self._value(name)
            if self.fields[name] == "int64":
                low = math.ceil(low)  # type: ignore[arg-type]
                high = math.floor(high)  # type: ignore[arg-type]
            return f"`{name}` {negation}BETWEEN {literal(low)} AND {literal(high)}"
        if has_not or self.fields[name] != "bool":
            raise self._error(
                f"unexpected {self._token} after field {name}; compare it, as in {EXAMPLE}"
            )
        return f"`{name}` = {literal(not is_negated)}"

    def _field(self) -> str:
        token = self._token
        if token.kind not in ("word", "quoted"):
            raise self._error(
                f"expected the name of a field, not {token}; compare fields with values, as in"
                f" {EXAMPLE}"
            )
        name = token.value[1:-1] if token.kind == "quoted" else token.value
        if name not in self.fields:
            fields = one_line(", ".join(self.fields), most=300)
            raise self._error(
                f"unknown field {short(name, 40)} at character {token.place}; fields are {fields}"
            )
        self.position += 1
        return name

    def _value(self, name: str) -> Value:
        """Take a value for a field; refuse values of another type."""
        token = self._token
        value: Value
        if token.kind == "text":
            value = self._text(token)
        elif token.kind == "number":
            value = self._number(token)
        elif token.value in ("true", "false"):
            value = token.value == "true"
        elif token.value == "null":
            raise self._error(f"expected a value, not {token}; write {name} is null")
        else:
            raise self._error(
                f"expected a value, not {token}; give a number, or text in single quotes"
            )
        kind = self.fields[name]
        if type(value) not in _TYPES[kind]:
            advice = "give a value of this kind"
            if kind == "string":
                advice = f"write '{token.value}' in quotes"
            raise self._error(
                f"field {name} holds {_CONTENTS[kind]}, but it is compared with"
                f" {one_line(token.value, 40)}; {advice}"
            )
        self.position += 1
        if kind == "double":
            return float(value)
        if isinstance(value, float):  # for a field of integers
            if abs(value) > MAX_EXACT:
                raise self._error(
                    f"{token} is too large for a decimal that is compared with integers; write it"
                    " without decimals and exponent"
                )
            if value.is_integer():
                return int(value)
        return value

    def _text(self, token: _Token) -> str:
        text = token.value[1:-1].replace("''", "'")
        if re.search("[\ud800-\udfff]", text):
            raise self._error(f"{token} is not Unicode text; write it in UTF-8")
        return text

    def _number(self, token: _Token) -> int | float:
        decimal = float(token.value)
        if math.isinf(decimal):
            raise self._error(f"{token} is too large; give a smaller number")
        if re.search("[.eE]", token.value):
            return decimal
        # int() refuses thousands of digits
        if abs(decimal) > MAX_INTEGER + 1 or abs(int(token.value)) > MAX_INTEGER:
            raise self._error(
                f"{token} has more than 64 bits; give an integer from {-MAX_INTEGER} to"
                f" {MAX_INTEGER}"
            )
        return int(token.value)

    def _list(self, name: str) -> list[str]:
        """Take a list of values; return distinct literals, of integers for a field of integers."""
        self._expect("(", f"write {name} in (a, b)")
        values = [self._value(name)]
        while self._take(","):
            values.append(self._value(name))
        self._expect(")", "close the list with a parenthesis")
        if self.fields[name] == "int64":
            values = [value for value in values if isinstance(value, int)]
        return list(dict.fromkeys(literal(value) for value in values))

    def _pattern(self, name: str) -> str:
        token = self._token
        if self.fields[name] != "string" or token.kind != "text":
            raise self._error(
                f"{name} like {token}: LIKE compares a field of text with a pattern in single"
                " quotes"
            )
        self.position += 1
        pattern = self._text(token)
        self.pattern_characters += len(pattern)
        if self.pattern_characters > MAX_PATTERNS:
            raise self._error(
                f"its LIKE patterns have more than {MAX_PATTERNS:,} characters; shorten them"
            )
        # a backslash before any other character is an ordinary character
        return literal(re.sub(r"\\([%_\\]?)", _escaped, pattern))


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[1] else r"\\"


def _comparison(name: str, sign: str, value: Value, kind: str) -> str:
    """Write a comparison; LanceDB refuses to compare an integer with a decimal."""
    if kind == "int64" and isinstance(value, float):  # between two integers
        if sign == "=":
            return "false"
        if sign == "!=":
            return f"`{name}` IS NOT NULL"
        value = math.floor(value) if sign[0] == "<" else math.ceil(value)
        sign = f"{sign[0]}="
    return f"`{name}` {sign} {literal(value)}"


def literal(value: Value) -> str:
    """Write a value in SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()


def _joined(parts: Sequence[_Sql], operator: str) -> _Sql:
    """Join conditions pairwise, the flattest first: LanceDB's parser and its stack have few levels.

    The right side of an operator takes two levels of the parser, the left side one.
    """
    parts = sorted(parts)
    while len(parts) > 1:
        right = parts.pop(0)
        left = parts.pop(0)
        levels = max(left.levels + 1, right.levels + 2)
        insort(parts, _Sql(levels, f"({left.text} {operator} {right.text})"))
    return parts[0]
