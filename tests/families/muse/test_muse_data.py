"""Public files made into rows of tasks: sentences, contexts, labels, and limits on repeated answers."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import ParagramError, SettingsError, TextError
from st_paragram.families.muse.public_files.catalogue import sources, sources_table
from st_paragram.families.muse.public_files.convert import KINDS, convert
from st_paragram.families.muse.public_files.rows import ConvertSettings, is_generic
from st_paragram.families.muse.public_files.sentence_spans import sentence_spans, span_around, words_around
from st_paragram.families.muse.tasks.task_files import is_language_code, read_task_file
from st_paragram.families.muse.tasks.task_stores import build_task_stores
from st_paragram.tools.cleaning.known_test_sentences import KnownSentences


def converted(tmp_path, kind, name, content, language="en", **settings):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    output, report = convert(kind, language, [path], tmp_path / "out", ConvertSettings(**settings), overwrite=True)
    return [line.split("\t") for line in output.read_text(encoding="utf-8").split("\n")[:-1]], report


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


# ---- sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two!  Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. A. B. Smith left on 3. Oktober. He paid 3.5 million.", 2),
        ("The U.S. troops, e.g. those of St. Louis, left. Then... what?", 2),
        ('"Who?" he asked. "Nobody." She left.', ['"Who?" he asked.', '"Nobody."', "She left."]),
        ("他说：“好！”然后走了。真的？308分", ["他说：“好！”", "然后走了。", "真的？", "308分"]),
        ("هل تزول؟ نعم تزول. شكرا", ["هل تزول؟", "نعم تزول.", "شكرا"]),
        ("Wait … Now. a small letter", ["Wait …", "Now. a small letter"]),
        ("A heading\nA sentence. ", ["A heading", "A sentence."]),
        (" \n ", []),
    ],
)
def test_sentences(text, expected):
    found = [text[begin:end] for begin, end in sentence_spans(text)]
    assert (len(found) if isinstance(expected, int) else found) == expected


@given(st.text(alphabet="aB1.!?。 \n\"'”؟…Dr", max_size=60))
def test_sentences_hold_all_of_a_text_in_order(text):
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b] for a, b in spans).split()) == "".join(text.split())
    assert all(b <= c for (_, b), (c, _) in itertools.pairwise(spans))
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)


@pytest.mark.parametrize("text", ["." * 100_000, ".”" * 50_000, ". " * 200_000, "a" + "?!" * 50_000 + " b"])
def test_time_grows_with_the_length_of_a_text_and_no_faster(text):
    started = time.perf_counter()
    assert sentence_spans(text)
    assert time.perf_counter() - started < 5


def test_a_span_over_two_sentences_takes_both():
    text = "One is here. Two is there. Three is gone."
    assert text[slice(*span_around(text, 17, 20))] == "Two is there."
    assert text[slice(*span_around(text, 20, 32))] == "Two is there. Three is gone."


@given(st.integers(1, 30), st.integers(0, 19), st.integers(1, 5))
def test_words_around_are_a_window_with_the_inner_part_in_it(most, first, count):
    words = [f"w{i:02}" for i in range(20)]
    text, inner = "  ".join(words), words[first : first + count]
    begin = text.index(inner[0])
    found = words_around(text, begin, begin + len("  ".join(inner)), most).split()
    assert found == words[words.index(found[0]) :][: len(found)] and len(found) == min(most, 20)
    assert inner == [word for word in found if word in inner] if most >= len(inner) else found == inner[:most]


def test_two_characters_of_chinese_count_as_a_word():
    assert words_around("一二三四五六七八九十", 4, 6, 3) == "三四五六七八"


# ---- SQuAD


PARAGRAPH = "The sky is red. Dr. Roe painted it in 1999. Nobody knows why."


def question(text, answer, start=None, **more):
    place = PARAGRAPH.find(answer) if start is None else start
    return {"question": text, "answers": [{"text": answer, "answer_start": place}], **more}


def squad(*questions, context=PARAGRAPH):
    return json.dumps({"version": "1.1", "data": [{"paragraphs": [{"context": context, "qas": questions}]}]})


def test_the_sentence_of_an_answer(tmp_path):
    rows, report = converted(
        tmp_path,
        "squad",
        "train.json",
        squad(
            question("Who painted?", "Roe"),
            question("What\tis red?\n", "sky"),
            question("When?", " 1999", start=0),  # elsewhere than it says
            question("Where?", "Paris"),
            {"question": "How?", "answers": [], "is_impossible": True},
        ),
    )
    assert rows == [
        ["Who painted?", "Dr. Roe painted it in 1999.", PARAGRAPH],
        ["What is red?", "The sky is red.", PARAGRAPH],
        ["When?", "Dr. Roe painted it in 1999.", PARAGRAPH],
    ]
    assert (report.read, report.written) == (5, 3)
    assert report.left_out == {"answer not in its paragraph": 1, "without an answer": 1}
    assert "left out: without an answer" in report.table()


def test_contexts_are_cut_around_the_answer(tmp_path):
    rows, _ = converted(tmp_path, "squad", "a.json", squad(question("Who?", "Roe")), context_words=8)
    assert rows[0][2] == "red. Dr. Roe painted it in 1999. Nobody"


def test_an_answer_has_three_rows_and_no_row_comes_twice(tmp_path):
    questions = [question(f"Who painted {what}?", "Roe") for what in "abbcdef"]
    rows, report = converted(tmp_path, "squad", "a.json", squad(*questions))
    assert [row[0][-2] for row in rows] == list("abc")
    assert report.left_out == {"repeated": 1, "too many of one answer": 3}
    assert len(converted(tmp_path, "squad", "a.json", squad(*questions), most_per_answer=1)[0]) == 1


def test_languages_by_ids(tmp_path):
    text = squad(question("Who?", "Roe", id="arabic-1"), question("What?", "sky", id="russian-2"))
    rows, report = converted(tmp_path, "squad", "a.json", text, language="ru", id_prefix="russian")
    assert [row[0] for row in rows] == ["What?"] and report.left_out == {"another id": 1}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"data": 3}', b'{"data": [{"paragraphs": [{"qas": [{}]}]}]}', b"\xff"]
)
def test_other_json_is_refused_in_one_line(tmp_path, content):
    with pytest.raises(TextError, match=r"a\.json: not in the form of SQuAD .*; it has `data`") as refused:
        converted(tmp_path, "squad", "a.json", content)
    assert "\n" not in str(refused.value) and not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("other", [{"a": 1}, ["Who?"], 3, None, True])
def test_questions_that_are_no_text_are_refused(tmp_path, other):
    with pytest.raises(TextError, match=r"a\.json: not in the form of SQuAD .* is not a question"):
        converted(tmp_path, "squad", "a.json", squad(question(other, "Roe")))


# ---- lists of questions


FAQ = [("Is it open?", "Yes. It opens at nine. Come early."), ("How much?", "It costs three coins.")]


def test_lists_of_questions_in_three_forms(tmp_path):
    expected = [
        ["Is it open?", "Yes. It opens at nine.", "Yes. It opens at nine. Come early."],
        ["How much?", "It costs three coins.", ""],
    ]
    table = "id\tQuestion\tAnswer\n" + "".join(f"{i}\t{q}\t{a}\n" for i, (q, a) in enumerate(FAQ))
    quoted = "answer,question\n" + "".join(f'"{a.replace(". ", f".{chr(10)}")}",{q}\n' for q, a in FAQ)
    for name, content in (
        ("f.tsv", table),
        ("f.csv.gz", gzip.compress(quoted.encode())),
        ("f.jsonl", lines(*({"question": q, "answer": a} for q, a in FAQ))),
    ):
        assert converted(tmp_path, "faq", name, content)[0] == expected, name


def test_an_answer_without_words_takes_no_time(tmp_path):
    started = time.perf_counter()
    rows, _ = converted(tmp_path, "faq", "a.jsonl", lines({"question": "Is it?", "answer": "a？" * 80_000}))
    assert len(rows) == 1 and time.perf_counter() - started < 5


def test_a_column_of_contexts_is_taken(tmp_path):
    rows, _ = converted(tmp_path, "faq", "f.tsv", "question\tanswer\tcontext\nWhy?\tFor no reason at all.\tOdd. So.\n")
    assert rows == [["Why?", "For no reason at all.", "Odd. So."]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "f.tsv",
            "q\tanswer\na\tb\n",
            r"f\.tsv: no column question or questions or query in its first row \(q, answer\)",
        ),
        ("f.txt", "a\tb\n", r"neither \.tsv, \.csv nor \.jsonl"),
        ("f.csv", 'question,answer\n"a,b\n' + "x" * 200_000, r"f\.csv: not readable as CSV"),
        ("f.jsonl", '{"question": "a"}\n[\n', r"f\.jsonl: 2 of 2 rows cannot be read; check that it is faq"),
        ("f.tsv", "question\tanswer\n", r"none of 0 rows could be converted; check that it is faq"),
    ],
)
def test_wrong_lists_are_refused(tmp_path, name, content, message):
    csv.field_size_limit(131_072)  # the limit is global, and readers of tables raise it
    with pytest.raises(TextError, match=message):
        converted(tmp_path, "faq", name, content)
    assert not (tmp_path / "out" / "en.tsv").exists()


# ---- dialogues


def test_turns_of_text_and_of_json(tmp_path):
    expected = [
        ["Hello.", "Who is there?"],
        ["Who is there?", "A friend of yours."],
        ["Bye now.", "See you soon then."],
    ]
    text = "Hello.\nWho is there?\nA friend of yours.\n\n\nBye now.\nSee you soon then.\n"
    assert converted(tmp_path, "dialogue", "d.txt", text)[0] == expected
    first, second = ["Hello.", "Who is there?", "A friend of yours."], ["Bye now.", "See you soon then."]
    named = [{"speaker": i % 2, "text": turn} for i, turn in enumerate(first)]
    forms = lines(first, {"dialogue": second}), lines({"turns": named}, {"dialog": [{"utterance": t} for t in second]})
    for form in forms:
        assert converted(tmp_path, "dialogue", "d.jsonl", form)[0] == expected


def test_only_another_speaker_responds(tmp_path):
    turns = [{"role": role, "content": f"This is turn {i}."} for i, role in enumerate("aab")]
    rows, report = converted(tmp_path, "dialogue", "d.jsonl", lines({"messages": turns}))
    assert rows == [["This is turn 1.", "This is turn 2."]] and report.left_out["the same speaker goes on"] == 1


def test_responses_are_limited_and_generic_ones_more(tmp_path):
    text = "".join(f"Question {i}?\n{answer}\n\n" for answer in ("Ok!", "That is all fine.") for i in range(9))
    rows, report = converted(tmp_path, "dialogue", "d.txt", text.replace("Ok!", "OK.", 1))
    assert [row[1] for row in rows] == ["OK.", "Ok!"] + ["That is all fine."] * 5
    assert report.left_out == {"too many of one generic response": 7, "too many of one response": 4}
    assert [is_generic(text) for text in ("Oh, yes.", "Oh yes, sure.", "好的。", "我不知道。")] == [
        True,
        False,
        True,
        False,
    ]


def test_unreadable_dialogues_are_few_or_refused(tmp_path):
    good = [[f"Are you number {i}?", f"I am number {i}."] for i in range(20)]
    rows, report = converted(tmp_path, "dialogue", "d.jsonl", lines(*good) + '{"x": 1}\n')
    assert len(rows) == 20 and report.left_out == {"cannot be read": 1}
    with pytest.raises(TextError, match="3 of 23 rows cannot be read"):
        converted(tmp_path, "dialogue", "d.jsonl", lines(*good, 3, [3], {"turns": [{}]}))


# ---- inference


def test_labels_of_inference(tmp_path):
    values = [("entailment", "a b"), ("-", "c d"), ("neutral", "e f"), ("contradiction", "g h"), ("maybe", "i j")]
    text = lines(*({"gold_label": label, "sentence1": "It rains.", "sentence2": other} for label, other in values))
    rows, report = converted(tmp_path, "nli", "snli.jsonl", text)
    assert rows == [[label, "It rains.", other] for label, other in values if label not in ("-", "maybe")]
    assert report.left_out == {"without a label that annotators agreed on": 1, "unknown label": 1}
    numbers = lines(*({"label": label, "premise": "It rains.", "hypothesis": f"x{label}"} for label in (0, 1, 2, -1)))
    assert [row[0] for row in converted(tmp_path, "nli", "n.jsonl", numbers)[0]] == [
        "entailment",
        "neutral",
        "contradiction",
    ]


def test_languages_of_a_table(tmp_path):
    head = "language\tgold_label\tsentence1\tsentence2\n"
    text = f"{head}es\tneutral\tLlueve.\tHace frío.\nen\tcontradictory\tIt rains.\tIt is dry.\nes\tneutral\tuno\n"
    text += "es\tentailment\tLlueve.\tCae agua.\n" * 9
    rows, report = converted(tmp_path, "nli", "xnli.tsv", text, language="es")
    assert rows == [["neutral", "Llueve.", "Hace frío."], ["entailment", "Llueve.", "Cae agua."]]
    assert report.left_out == {"another language": 1, "cannot be read": 1, "repeated": 8}
    assert converted(tmp_path, "nli", "xnli.tsv", text)[0] == [["contradiction", "It rains.", "It is dry."]]


# ---- files, stores and sources


def test_what_is_written_can_be_read_and_nothing_is_overwritten(tmp_path):
    rows, _ = converted(tmp_path, "faq", "f.jsonl", lines(*({"question": q, "answer": a} for q, a in FAQ)))
    assert [list(row[:3]) for row in read_task_file(tmp_path / "out" / "en.tsv", "qa")] == rows
    with pytest.raises(ParagramError, match=r"en\.tsv exists; choose another name or give --overwrite"):
        convert("faq", "en", [tmp_path / "f.jsonl"], tmp_path / "out")
    (tmp_path / "out" / "es.tsv.xz").write_bytes(b"x")
    with pytest.raises(ParagramError, match=r"es\.tsv\.xz has the same language"):
        convert("faq", "es", [tmp_path / "f.jsonl"], tmp_path / "out", overwrite=True)
    with pytest.raises(SettingsError, match="unknown language code 'xx'"):
        convert("faq", "xx", [tmp_path / "f.jsonl"], tmp_path / "out")
    with pytest.raises(SettingsError, match="0 files of the kind 'faq'"):
        convert("faq", "en", [], tmp_path / "out")
    for kind in KINDS:
        with pytest.raises(TextError, match=r"none\.jsonl: (?i:no such file).*; check the path"):
            convert(kind, "de", [tmp_path / "none.jsonl"], tmp_path / "out")


@given(st.binary(max_size=80), st.sampled_from(sorted(KINDS)), st.sampled_from(["x.jsonl", "x.tsv", "x.csv"]))
def test_any_file_is_read_or_refused(tmp_path_factory, content, kind, name):
    folder = tmp_path_factory.mktemp("any")
    (folder / name).write_bytes(content)
    try:
        output, report = convert(kind, "en", [folder / name], folder / "out")
    except ParagramError as error:
        assert "\n" not in str(error)
    else:
        assert output.read_bytes().count(b"\n") == report.written == report.read - report.left_out.total()


def test_stores_leave_out_sentences_of_test_sets(tmp_path, vocabulary):
    proverb = "The early bird catches the worm."  # Tatoeba
    texts = ["What does he say?", proverb, "Somebody asked the painter about his very old red ladder."]
    assert KnownSentences()(texts).tolist() == [False, True, False]
    assert len(KnownSentences()([])) == 0
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "en.tsv").write_text(f"{texts[0]}\t{proverb.upper()}\n{texts[0]}\t{texts[2]}\n")
    (made,) = build_task_stores({"response": tmp_path / "r"}, vocabulary, tmp_path / "out", 20, known=KnownSentences())
    assert len(made.store) == 1 and made.counts.test_rows == 1


def test_sources_are_described_in_full():
    assert len(sources()) == len({each.name for each in sources()}) == 14
    for each in sources():
        assert each.kind in KINDS and each.licence and re.fullmatch(r"https://\S+", each.url), each.name
        assert all(map(is_language_code, each.languages.split())), each.name
    assert sources_table().count("\n") == 15 and "| OCNLI | nli | zh |" in sources_table()
