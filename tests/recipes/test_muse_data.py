"""data_prep/muse_data.py: data sets in the columns of the Hub become rows of tasks."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from st_paragram.families.muse.tasks import read_texts, task_files

SCRIPT = Path(__file__).parents[2] / "data_prep" / "muse_data.py"
TEXT = "A zebra slept. It woke at 9.30\tand ran! 斑马跑了。真的吗？ Why?"


def question(key, text, answer=None):
    answers = (
        {"text": [answer], "answer_start": [TEXT.index(answer)]}
        if answer
        else {"text": [], "answer_start": []}
    )
    return {"id": key, "question": text, "context": TEXT, "answers": answers}


SQUAD = [
    question("en-1", "When?", "9.30"),
    question("en-2", "谁?", "斑马"),
    question("en-3", "None?"),
]
SQUAD += [question("ar-4", "Which?", "A")]
SITS = {"premise": "A man sits.", "hypothesis": "He rests.", "label": 1}
SNLI = [SITS, SITS, SITS | {"hypothesis": "?", "label": -1}]
DIALOGUES = [{"dialog": [f"Question {number}", "OK.", "Well\n then"]} for number in range(7)]


@pytest.mark.parametrize(
    ("task", "examples", "expected"),
    [
        ("qa", SQUAD, [("When?", "It woke at 9.30 and ran!"), ("谁?", "斑马跑了。")]),
        ("nli", SNLI, [("A man sits.", "He rests.")]),
        (
            "response",
            DIALOGUES,
            [
                ("Question 0", "OK."),
                ("OK.", "Well then"),
                *[(f"Question {n}", "OK.") for n in range(1, 5)],
            ],
        ),
    ],
)
def test_rows_are_those_that_training_reads(
    tmp_path, monkeypatch, capsys, task, examples, expected
):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    path, folder = tmp_path / "examples.jsonl", tmp_path / task
    path.write_text("".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8")
    more = ["--output", str(folder), *(["--id-prefix", "en"] if task == "qa" else [])]
    monkeypatch.setattr(sys, "argv", ["muse_data", task, "zh", str(path), *more])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert not ended.value.code
    assert (
        capsys.readouterr().out
        == f"{folder / 'zh.tsv'}: {len(expected)} rows of {len(examples)} examples\n"
    )
    (rows,) = read_texts(task_files(folder, task)["zh"], task)
    context, label = " ".join(TEXT.split()) if task == "qa" else "", 1 if task == "nli" else -1
    assert rows == [(*pair, context, label) for pair in expected]


@pytest.mark.parametrize(
    ("task", "lines", "message"),
    [
        ("response", '{"turns": ["a"]}', "no column dialog, only turns; response needs dialog"),
        (
            "qa",
            '{"question": "a", "text": "b"}',
            "no column context, answers, only question, text; qa needs question, context, answers",
        ),
        (
            "nli",
            '{"premise": "a", "label": 1}',
            "no column hypothesis, only premise, label; nli needs premise, hypothesis, label",
        ),
        ("response", '{"dialog": [1, 2]}', "example 1 does not have the form of response data"),
        (
            "qa",
            '{"question": "a", "context": "b", "answers": "c"}',
            "example 1 does not have the form of qa data: {'question': 'a'",
        ),
        ("nli", "[", "cannot be loaded"),
        (
            "nli",
            '{"premise": "a", "hypothesis": "b", "label": -1}',
            "no rows of nli in 1 examples; check --id-prefix and --split",
        ),
    ],
)
def test_other_data_are_refused_in_one_line(tmp_path, monkeypatch, capsys, task, lines, message):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    path = tmp_path / "examples.jsonl"
    path.write_text(lines + "\n", encoding="utf-8")
    command = ["muse_data", task, "xx", str(path), "--output", str(tmp_path / task)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    errors = [line for line in capsys.readouterr().err.splitlines() if "muse_data:" in line]
    assert ended.value.code == 1 and errors[-1].startswith(f"muse_data: {path}: {message}")
    assert not (tmp_path / task).exists()
