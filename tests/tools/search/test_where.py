"""Conditions pass what Python finds, and what is not a condition is refused in a line."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import pytest
from support import conditions

from st_paragram.errors import SettingsError
from st_paragram.tools.search import where as module
from st_paragram.tools.search.where import rewritten

KINDS = {
    "lang": "string",
    "a b": "string",
    "year": "int64",
    "price": "double",
    "ok": "bool",
    "日本": "int64",
}
KINDS |= {"text": "string", "line": "int64"}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    pytest.importorskip("lancedb")
    from st_paragram import SearchIndex

    fields = conditions.rows(random.Random(0), 120)
    texts = [f"sentence number {number}" for number in range(len(fields))]
    index = SearchIndex.build(texts, tmp_path_factory.mktemp("where") / "i", "p-sp-mini", fields)
    return index, fields


def lines(index, where):
    return {hit.line for hit in index.search("sentence", 1000, where=where)}


@pytest.mark.parametrize("seed", range(6))
def test_what_passes_is_what_python_finds(index, seed):
    rng = random.Random(seed)
    index, fields = index
    for _ in range(25):
        text, test = conditions.condition(rng)
        assert lines(index, text) == {line for line, row in enumerate(fields, 1) if test(row)}, text


def test_integers_are_compared_with_decimals_exactly(tmp_path):
    pytest.importorskip("lancedb")
    from st_paragram import SearchIndex

    years = [2**63 - 1, -(2**63), 2**53 + 1, 2020, None, 2021, 0]
    rows = [(f"sentence number {number}", {"year": year}) for number, year in enumerate(years)]
    index = SearchIndex.build(rows, tmp_path / "i", "p-sp-mini")
    for text in ["2020.5", "2021.0", "-0.5", "1e-9999999999", "9007199254740992.0"]:
        number = 0 if "e-" in text else Fraction(text)
        for sign, is_true in conditions.COMPARISONS.items():
            passing = {year for year in years if year is not None and is_true(year, number)}
            matches = {years[line - 1] for line in lines(index, f"year {sign} {text}")}
            assert matches == passing, (sign, text)
    assert lines(index, "not year between 2020.5 and 9007199254740993") == {1, 2, 4, 7}
    assert lines(index, "not year in (2020.5, 2021.0)") == {1, 2, 3, 4, 7}


def test_garbage_is_refused_in_a_line_or_is_a_condition(index):
    rng = random.Random(0)
    index, _ = index
    refused = 0
    for _ in range(150):
        text = conditions.garbage(rng)
        try:
            lines(index, text)
        except SettingsError as error:
            assert str(error).startswith("filter ") and str(error).isprintable()
            refused += 1
    assert 120 < refused < 150


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("year >= 2020", "`year` >= 2020"),
        ("year = 2020.0 or year < 2020.5", "(`year` = 2020 OR `year` <= 2020)"),
        ("year >= 2020.5 and year <= -2.5", "(`year` >= 2021 AND `year` <= -3)"),
        ("year = 2020.5", "false"),
        ("not year = 2020.5", "`year` IS NOT NULL"),
        ("year in (1.5, 2.0)", "`year` IN (2)"),
        ("year not in (1.5)", "`year` IS NOT NULL"),
        ("year between 1.5 and 3.5", "`year` BETWEEN 2 AND 3"),
        ("year=-5", "`year` = -5"),
        (f"year = {2**63 - 1}", f"`year` = {2**63 - 1}"),
        ("price in (1, 2.5, 1.0)", "`price` IN (1.0, 2.5)"),
        ("lang = 'O''Neil\\'", "`lang` = 'O''Neil\\'"),
        ("\"a b\" LIKE '\\%\\x%'", "`a b` LIKE '\\%\\\\x%'"),
        (
            "not (not ok and year < 5 or lang is null)",
            "((`year` >= 5 OR `ok` = true) AND `lang` IS NOT NULL)",
        ),
        ("not `日本` not between 1 and 2", "`日本` BETWEEN 1 AND 2"),
        ("not (line in (1) and not text like 'x')", "(`text` LIKE 'x' OR `line` NOT IN (1))"),
        ("not true", "false"),
    ],
)
def test_the_sql_that_is_written(text, sql):
    assert rewritten(text, KINDS) == sql


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("lang = 'es'; drop table sentences", "unexpected ';' at character 12"),
        ("lang = 'es' -- comment", "unexpected '-' at character 13"),
        (
            "lang = 'es' lang = 'en'",
            "unexpected 'lang' at character 13; connect conditions with and, or",
        ),
        ("lang = $1", r"unexpected '\$' at character 8"),
        ("lang = 'es", "a quote is not closed at character 8"),
        (
            "langg = 'es'",
            (
                "unknown field 'langg' at character 1; fields are lang, a b, year, price, ok, 日本,"
                " text, line"
            ),
        ),
        ("_rowid > 3", "unknown field '_rowid'"),
        ("length(text) > 5", "unknown field 'length'"),
        ("vector is null", "unknown field 'vector'"),
        ("1 = 1", "expected the name of a field, not '1'"),
        ("year = year", "expected a value, not 'year'"),
        ("year + 1 = 2", r"unexpected '\+'"),
        ("year = 1 - 2", "unexpected '-'"),
        ("year = '2020'", "field year holds integers, but it is compared with '2020'"),
        ("lang = 5", "field lang holds text, but it is compared with 5; write '5' in quotes"),
        ("ok = 1", "field ok holds true or false, but it is compared with 1"),
        ("year = true", "field year holds integers, but it is compared with true"),
        ("year", "unexpected the end after field year; compare it"),
        ("lang = null", "expected a value, not 'null' at character 8; write lang is null"),
        ("year like '2%'", "LIKE compares a field of text"),
        ("year in ()", r"expected a value, not '\)'"),
        ("year in (select 1)", "expected a value, not 'select'"),
        ("year is 5", "expected NULL, not '5'"),
        ("year between 1", "expected AND, not the end; write year between a and b"),
        ("(year = 1", r"expected \), not the end"),
        ("year = 1e400", "'1e400' at character 8 is too large"),
        (f"year = {2**63}", "has more than 64 bits; give an integer from -9223372036854775807"),
        ("year = " + "9" * 5000, "is too large"),
        ("year < 1e19", "'1e19' at character 8 is too large for a decimal that is compared"),
        ("year = 0x1F", "unexpected '0' at character 8"),
        ("year ＝ 1", "unexpected '＝'"),
        ("year = １", "unexpected '１'"),
        # the sign of kelvin, whose lower case is k
        ("lang li\u212ae 'x'", "unexpected 'li\u212ae'"),
        ("year = 1\u00a0", "unexpected"),
        ("lang = '\ud800'", "is not Unicode text"),
        ({"lang": "es"}, "where is {'lang': 'es'}; give a condition"),
        (b"ok", "where is b'ok'; give a condition"),
    ],
)
def test_what_is_not_a_condition_is_refused_in_a_line(text, message):
    with pytest.raises(SettingsError, match=message) as caught:
        rewritten(text, KINDS)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 800


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" or ".join(["year = 1"] * 1001), "more than 1,000 comparisons"),
        ("(" * 21 + "ok" + ")" * 21, "more than 20 levels"),
        ("(" * 40_000 + "ok" + ")" * 40_000, "more than 20 levels"),
        ("not " * 21 + "ok", "more than 20 levels"),
        ("ok" + " " * 100_000, "it has 100,002 characters"),
        ("lang like '" + "a" * 2001 + "'", "more than 2,000 characters"),
        ("+".join(["1"] * 3000) + "> 1", "expected the name of a field"),
    ],
)
def test_limits(text, message):
    start = time.perf_counter()
    with pytest.raises(SettingsError, match=message):
        rewritten(text, KINDS)
    assert time.perf_counter() - start < 1


def test_the_longest_conditions_work(index):
    index, fields = index
    terms = [f"year = {number + 2000}" for number in range(1000)]
    assert len(lines(index, " or ".join(terms))) == sum(
        2000 <= row.get("year", 0) < 3000 for row in fields
    )
    apart = [term.replace("=", "!=") for term in terms]
    assert len(lines(index, " AND ".join(apart))) == sum(
        "year" in row and not 2000 <= row["year"] < 3000 for row in fields
    )
    identifiers = ", ".join(f"'00000000-0000-0000-0000-{number:012}'" for number in range(2000))
    assert lines(index, f"lang in ({identifiers}, 'en')") == lines(index, "lang = 'en'") != set()
    nested = "year = 1"
    for _ in range(19):
        nested = f"({nested}) and year > 0 and year > 1 or year = 1"
    assert lines(index, f"{nested} or ok") == lines(index, "ok")  # no year is 1
    halves = ["ok"]
    for number in range(9):
        halves = [f"not ({halves[0]} {('and', 'or')[number % 2]} {halves[0]})"]
    assert lines(index, halves[0]) == lines(index, "not ok")
    assert (
        lines(index, "(" * 20 + "ok" + ")" * 20)
        == lines(index, "not " * 20 + "ok")
        == lines(index, "ok")
    )


def test_many_fields_are_not_all_listed():
    fields = {f"field {number}\n": "string" for number in range(30)}
    with pytest.raises(SettingsError, match=r"fields are field 0 , field 1 .*\.\.\.") as caught:
        rewritten("x = 1", fields)
    assert "\n" not in str(caught.value) and "field 29" not in str(caught.value)
    assert module.rewritten("`field 3\n` is null", fields) == "`field 3\n` IS NULL"
