"""Cleaning a file of pairs: order, repairs, repeated rows, scores, TMX, rejects."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest

from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.model_directory.find import find
from st_paragram.core.sample import held_out_pairs, sample_pairs
from st_paragram.core.text.parallel import parse_source
from st_paragram.core.text.translation_files import read_units
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import Cleaning, Duplicates, named_cleaning
from st_paragram.tools.preparation.clean_file import clean_file
from st_paragram.tools.preparation.settings import Scoring

#: English, Spanish, and why the row is dropped; "=" before the repaired text.
ROWS = [
    ("The  house of my brother is old.", "La casa de mi hermano es vieja.", None),
    ("", "La casa de mi hermano es vieja.", "empty side"),
    ("The train to the city leaves at noon.", "The train to the city leaves at noon.", "identical"),
    ("Bread &amp; water cost 3 euros.", "El pan y el agua cuestan 3 euros.", "=Bread & water cost"),
    ("The  house of my brother is old.", "La casa de mi hermano es vieja.", "duplicate"),
    ("El gato negro duerme en la cocina.", "The black cat sleeps in the kitchen.", "swapped sides"),
    ("The museum opens on 15 August.", "El museo abre el 25 de agosto.", "other numbers"),
    ("We walked along the river until the sun had set.", "Caminamos junto al", "cut off"),
    ("My sister works in a hospital.", "Los precios del petróleo subieron.", "score too low"),
    ("Save", "Guardar", None),
    ("A <b>red</b> car", "Un coche rojo", "markup"),
    ("Press <b>OK</b> now", "Pulse <b>OK</b> ahora", None),
]


def cleaned(path: Path, spec: str = "{}", **options: object) -> tuple[list[str], list[str], object]:
    """Return the lines of the output and of the rejects, and the counts."""
    output, rejects = io.BytesIO(), io.BytesIO()
    source = parse_source(spec.format(path), ("en", "es"))
    cleaning = options.pop("cleaning", named_cleaning("memory"))
    report = clean_file(source, output, cleaning, rejects=rejects, **options)
    lines = output.getvalue().decode().splitlines()
    return lines, rejects.getvalue().decode().splitlines(), report.total


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_keep_their_order_and_the_others_have_a_reason(tmp_path, swapped):
    rows = [row[1::-1] if swapped else row[:2] for row in ROWS]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    spec = "es-en:{}" if swapped else "{}"
    lowest = io.BytesIO()
    model = load_encoder(find("p-sp-mini"))
    scoring = Scoring(count=2)
    lines, rejects, total = cleaned(path, spec, model=model, scoring=scoring, lowest=lowest)
    expected = []
    bad = []
    for number, (row, (_, _, reason)) in enumerate(zip(rows, ROWS, strict=True), 1):
        if reason is None or reason.startswith("="):
            expected.append("\t".join(row).replace("&amp;", "&"))
        else:
            name = "identical sides" if reason == "identical" else reason
            bad.append("\t".join([str(number), name, *row]))
    assert lines == expected
    assert rejects == bad
    assert (total.rows, total.kept) == (len(rows), len(lines))
    assert sum(total.dropped.values()) == len(rejects)
    assert total.repairs["removed_markup"] == 1
    scores = [line.split(b"\t")[0] for line in lowest.getvalue().splitlines()]
    assert len(scores) == 2 and scores == sorted(scores)


def test_numbers_of_rows_count_dropped_lines(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"One cat\tUn gato\n\xff\tno\nonly one\nTwo\0\tdos\nOne dog\t\n")
    lines, rejects, total = cleaned(path, drop_invalid=True)
    assert lines == ["One cat\tUn gato"]
    assert rejects == ["5\tempty side\tOne dog\t"]
    assert (total.rows, total.kept) == (5, 1)


def test_equal_sides_may_be_dropped_too(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("A\tB\nA\tC\nD\tC\nA\tB\n")
    cleaning = Cleaning((), Duplicates(on=("first", "second")))
    lines, rejects, _ = cleaned(path, cleaning=cleaning)
    assert lines == ["A\tB", "D\tC"]
    assert [line.split("\t")[1] for line in rejects] == ["repeated first side"] * 2
    with pytest.raises(SettingsError, match="copies: one"):
        cleaned(path, cleaning=Cleaning((), Duplicates(copies="none")))


MEMORY = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header creationtool="x" srclang="en"><note>ours</note></header><body>
<tu tuid="1" creationid="ann"><note>a &lt;note&gt;</note><tuv xml:lang="de"><seg>Eins</seg></tuv>
<tuv xml:lang="en-US"><seg>The <bpt i="1">&lt;b&gt;</bpt>red<ept i="1"/> house</seg></tuv>
<tuv xml:lang="es-ES"><prop type="x">1</prop><seg>La casa roja</seg></tuv></tu>
<tu tuid="2"><tuv xml:lang="en"><seg>Nothing else</seg></tuv></tu>
<tu tuid="3"><tuv xml:lang="fr"><seg>Seul</seg></tuv></tu>
<tu tuid="4"><tuv xml:lang="en"><seg>Bread &amp;amp; <ph/>water</seg></tuv>
<tuv xml:lang="es"><seg>Pan y <ph/>agua</seg></tuv></tu>
<tu tuid="5"><tuv xml:lang="de"><seg>Ende</seg></tuv></tu>
</body></tmx>
"""


def test_units_of_a_memory_stay_whole(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(MEMORY)
    lines, rejects, total = cleaned(path, as_tmx=True)
    assert rejects == ["2\tempty side\tNothing else\t"]
    assert (total.rows, total.kept) == (3, 2)
    units = MEMORY.replace("&amp;amp; <ph/>", "&amp; ").replace("/>", " />").splitlines()[2:-1]
    del units[3]  # tuid 2
    head = ['<?xml version="1.0" encoding="UTF-8"?>']
    head.append('<tmx version="1.4">' + MEMORY.splitlines()[1].partition(">")[2])
    assert lines == [*head, *units, "</body></tmx>"]
    path.write_text(MEMORY.replace("<tmx ", '<tmx xmlns="urn:x" '))
    lines, _, total = cleaned(path, "es-en:{}", as_tmx=True)
    text = "\n".join(lines)
    assert ">Bread &amp; water<" in text and ">Pan y <" in text  # only the first is repaired
    path.write_text(text)
    assert len(list(read_units(str(path), ("en", "es")))) == total.kept == 2


def test_rows_become_tmx(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("A <i>b</i> \x01\tUn <i>b</i>\nOne\t\n")
    lines, _, _ = cleaned(path, as_tmx=True, cleaning=Cleaning())
    assert len([line for line in lines if line.startswith("<tu>")]) == 1
    assert '<tuv xml:lang="en"><seg>A &lt;i&gt;b&lt;/i&gt; \ufffd</seg></tuv>' in lines[4]


def test_planted_errors_are_found(tmp_path):
    pairs = held_out_pairs("en", "es") + list(sample_pairs("es", 1000))
    pairs = [pair for pair in dict.fromkeys(pairs) if pair[0].count(" ") > 5]
    good = [(f"1999: {first}", f"1999: {second}") for first, second in pairs[:200]]
    others = pairs[200:]
    planted = [(pair, "") for pair in good]
    planted += [(pair, "repeated") for pair in good[:10]]
    planted += [((pair[0], ""), "empty") for pair in others[:10]]
    planted += [((pair[0], pair[0]), "untranslated") for pair in others[10:20]]
    planted += [(pair[::-1], "swapped") for pair in others[20:40]]
    planted += [((pair[0], pair[1][: len(pair[1]) // 2]), "half") for pair in others[40:60]]
    for first, second in others[60:80]:
        planted.append(((f"1999: {first}", f"1989: {second}"), "numbers"))
    path = tmp_path / "pairs.tsv"
    path.write_text("".join([f"{first}\t{second}\n" for (first, second), _ in planted]))
    _, rejects, _ = cleaned(path)
    kinds = Counter([planted[int(line.split("\t")[0]) - 1][1] for line in rejects])
    assert kinds == Counter([kind for _, kind in planted if kind])
