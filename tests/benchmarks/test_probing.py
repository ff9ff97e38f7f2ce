"""Probing: labels by hand, splits without overlap, probes that find what is there and nothing else, refusals."""

import json
import sys

import numpy as np
import probing as script
import pytest
from harness.quality.probing import (
    STRENGTHS,
    ProbeScore,
    ProbingRun,
    TaskDescription,
    find_tasks,
    majority_score,
    probe,
    run_probing,
    score_task,
)
from harness.quality.probing_bitext import (
    bitext_tasks,
    first_mark_examples,
    gender_examples,
    length_examples,
    mark_count_examples,
    sample,
    swap_articles,
    word_examples,
)
from harness.quality.probing_conllu import Word, conllu_tasks, depth, depth_label, number_example, read_sentences
from harness.quality.probing_senteval import senteval_tasks
from harness.quality.probing_tasks import Balance, Example, ProbingSettings, ProbingTask, Source, Split, make_task
from reports.probing import probing_tables, published_table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.errors import EvaluationError, TextError

SMALL = ProbingSettings(train=60, valid=20, test=40, words=4, first_rank=3)
DOGS = """\
# text = The dogs of my aunt don't chase cats.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdogs\tDog\tNOUN\tNNS\tNumber=Plur\t8\tnsubj\t_\t_
3\tof\tof\tADP\tIN\t_\t5\tcase\t_\t_
4\tmy\tmy\tPRON\tPRP$\tNumber=Sing\t5\tnmod:poss\t_\t_
5\taunt\taunt\tNOUN\tNN\tNumber=Sing\t2\tnmod\t_\t_
6-7\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
6\tdo\tdo\tAUX\tVBP\t_\t8\taux\t_\t_
7\tn't\tnot\tPART\tRB\t_\t8\tadvmod\t_\t_
7.1\tdo\tdo\tAUX\tVBP\t_\t_\t_\t_\t_
8\tchase\tchase\tVERB\tVB\t_\t0\troot\t_\t_
9\tcats\tcat\tNOUN\tNNS\tNumber=Plur\t8\tobj\t_\t_
10\t.\t.\tPUNCT\t.\t_\t8\tpunct\t_\t_

"""


class Encoder:
    """Stands for a model: its embeddings are what a function makes of a text; it counts the texts."""

    def __init__(self, vector):
        self.vector, self.embedded = vector, []

    def encode(self, texts, **_):
        self.embedded += texts
        return np.array([self.vector(text) for text in texts], np.float32)


def labels(examples):
    return [one.label for one in examples]


def noun(number, place=1, relation="nsubj", part="NOUN"):
    return Word(place, 2, relation, part, number, "dog")


def treebank(folder, sentences=60):
    """Chains of words, every second one with a plural subject and object; subjects and objects have many lemmas."""
    blocks = []
    for n in range(sentences):
        number, length = ("Plur" if n % 2 else "Sing"), 3 + n % 3
        rows = [
            f"1\ts{n}\ts{n}\tNOUN\t_\tNumber={number}\t2\tnsubj:pass\t_\t_",
            "2\tsees\tsee\tVERB\t_\t_\t0\troot\t_\t_",
        ]
        rows.append(f"3\to{n}\to{n}\tNOUN\t_\tNumber={number}\t2\tobj\t_\t_")
        rows += [f"{k}\tw{k}\tw{k}\tADJ\t_\t_\t{k - 1}\tamod\t_\t_" for k in range(4, 4 + length)]
        blocks.append("\n".join(rows) + "\n\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.conllu").write_text("".join(blocks), encoding="utf-8")
    return folder


def bitext(path, rows=1200, other="el perro ve la casa"):
    """English of 5 to 28 words of a few frequent and some rarer words, with 1 to 3 marks."""
    rng, lines = np.random.default_rng(0), []
    for n in range(rows):
        words = ["the", "of", *(f"f{k}" for k in rng.integers(0, 300, rng.integers(3, 27)))]
        words[1:1] = [f"w{n % 8}"] if n % 2 else []
        mark = ("!", "?", ",")[n % 3]
        lines.append(f"{' '.join(words[:28])}{mark}{'.' * (n % 2)}\t{other} {n}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_length_bins_are_sentevals():
    texts = [" ".join("w" * words) for words in (4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 25, 26, 28, 29)]
    found = ["5-8", "5-8", "9-12", "9-12", "13-16", "13-16", "17-20", "17-20", "21-25", "21-25", "26-28", "26-28"]
    assert labels(length_examples(texts)) == found


def test_a_sentence_of_word_content_holds_one_of_the_words():
    texts = ["A a a a", "b B b", "c c", "d", "a c", "C d.", "b d's"]  # frequencies: a 5, b 4, c 4, d 2, d's 1
    found = [(one.text, one.label) for one in word_examples(texts, 3, 2)]
    assert found == [("c c", "c"), ("d", "d"), ("a c", "c")]
    with pytest.raises(EvaluationError, match="word content: the text has 5 words, ranks 4 to 6"):
        list(word_examples(texts, 4, 3))


def test_marks_are_counted_and_the_first_one_is_told():
    texts = ["no mark", "It's so.", "¿Qué?", "!" * 10, "(" + "." * 10, "." * 30, "«a» - b"]
    assert labels(mark_count_examples(texts)) == ["2", "1", "10", "11+", "11+", "1"]
    assert labels(first_mark_examples(texts)) == ["'", "?", "!", "(", ".", "-"]


def test_articles_change_places_in_their_own_case():
    spanish = "La mesa y el perro: los gatos, LAS casas del rey, él"
    assert swap_articles(spanish, "es") == "El mesa y la perro: las gatos, LOS casas del rey, él"
    assert swap_articles("Un jour d'une femme, le soleil, l'eau", "fr") == "Une jour d'un femme, la soleil, l'eau"
    assert swap_articles(swap_articles(spanish, "es"), "es") == spanish


def test_half_of_the_sentences_with_articles_are_swapped():
    texts = [f"la casa {n}" for n in range(10)] + ["sin nada", "la casa 1"]
    found = list(gender_examples(texts, "es", 0))
    assert sorted(labels(found)) == ["own"] * 5 + ["swapped"] * 5
    assert all(one.text.startswith("la" if one.label == "own" else "el") for one in found)
    assert {one.key for one in found} == {f"el casa {n}" for n in range(10)}


def test_number_and_depth_of_a_sentence_by_hand(tmp_path):
    (tmp_path / "a.conllu").write_text(DOGS, encoding="utf-8")
    ((text, words),) = read_sentences(tmp_path)
    assert [word.place for word in words] == list(range(1, 11))
    assert number_example(text, words, "nsubj") == Example("The dogs of my aunt don't chase cats.", "Plur", "dog")
    assert number_example(text, words, "obj") == Example(text, "Plur", "cat")
    assert depth(text, words) == 4  # chase > dogs > aunt > my
    assert depth("Go", [Word(1, 0, "root", "VERB", None, "go")]) == 1
    assert [depth_label(value) for value in (1, 3, 4, 7, 8, 12)] == ["3-", "3-", "4", "7", "8+", "8+"]


def test_number_is_that_of_one_noun_of_the_main_clause():
    verb = Word(2, 0, "root", "VERB", None, "bark")
    assert number_example("t", [noun("Sing"), verb], "nsubj").label == "Sing"
    others = [noun("Sing", part="PRON")], [noun("Ptan")], [noun(None)], [noun("Sing"), noun("Plur", 3)]
    assert all(number_example("t", [*words, verb], "nsubj") is None for words in others)
    below = [noun("Plur"), Word(2, 3, "acl", "VERB", None, "bark"), Word(3, 0, "root", "NOUN", None, "day")]
    assert number_example("t", below, "nsubj") is None


@pytest.mark.parametrize("heads", [{1: 2, 2: 1}, {1: 0, 2: 5}])
def test_heads_that_make_no_tree_are_refused(heads):
    words = [Word(place, head, "x", "X", None, "x") for place, head in heads.items()]
    with pytest.raises(EvaluationError, match="do not make a tree"):
        depth("a b", words)


def test_splits_are_balanced_disjoint_and_the_same_for_a_seed():
    examples = [Example(f"{'ABC'[n % 3]} {n}", "ABC"[n % 3], f"noun {n // 6}") for n in range(600)]
    task = make_task("t", Source.UD, [*examples, Example("A 0", "B")], SMALL, Balance.EQUAL)
    assert [len(split.texts) for split in task.splits] == [60, 18, 39]
    assert [split.labels.count("A") for split in task.splits] == [20, 6, 13]
    group = {one.text: one.group for one in examples}
    groups = [{group[text] for text in split.texts} for split in task.splits]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    again, other = (
        make_task("t", Source.UD, examples, ProbingSettings(60, 20, 40, seed=seed), Balance.EQUAL) for seed in (0, 1)
    )
    assert again == task and other != task


def test_sentences_that_differ_in_case_are_in_one_split():
    examples = [Example(text, str(n % 2)) for n in range(200) for text in (f"w {n}", f"W {n}")]
    task = make_task("t", Source.UD, examples, ProbingSettings(200, 100, 100), Balance.EQUAL)
    cases = [{text.casefold() for text in split.texts} for split in task.splits]
    assert sum(map(len, cases)) == len(set.union(*cases)) == 200


def test_frequent_labels_are_capped_and_rare_ones_left_out():
    examples = [
        Example(f"{label} {n}", label) for label, many in (("a", 400), ("b", 30), ("c", 9)) for n in range(many)
    ]
    counts = {}
    for balance in (Balance.CAPPED, Balance.NATURAL):
        settings = ProbingSettings(300, 100, 100, most_per_label=50)
        task = make_task("t", Source.BITEXT, examples, settings, balance)
        found = [label for split in task.splits for label in split.labels]
        counts[balance] = {label: found.count(label) for label in set(found)}
    assert counts == {Balance.CAPPED: {"a": 50, "b": 30}, Balance.NATURAL: {"a": 400, "b": 30}}


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "depth: 0 sentences with 0 labels"),
        ([Example(str(n), "a") for n in range(50)], "depth: 50 sentences with 1 labels"),
        ([Example(str(n), "ab"[n > 45]) for n in range(50)], "depth: too few sentences, 4 of label b; 10 are needed"),
        ([Example(str(n), "ab"[n % 2], "g") for n in range(50)], "depth: too few sentences for three splits"),
    ],
)
def test_too_few_sentences_are_told_with_the_task(examples, message):
    with pytest.raises(EvaluationError, match=message):
        make_task("depth", Source.UD, examples, SMALL, Balance.EQUAL)


def test_every_row_has_the_same_chance_to_be_sampled():
    rows = [(str(n), "") for n in range(50)]
    assert sample(rows, 60, 0) == rows and sample(rows, 5, 1) == sample(rows, 5, 1)
    times = np.bincount([int(row[0]) for seed in range(400) for row in sample(rows, 10, seed)], minlength=50)
    assert len(set(sample(rows, 10, 3))) == 10 and abs(times - 80).max() < 40  # 5 standard deviations of 8


def test_a_probe_finds_a_label_that_is_there_and_no_other():
    examples = [Example(f"{'abcd'[n % 4]} {n}", "abcd"[n % 4]) for n in range(2000)]
    task = make_task("t", Source.UD, examples, ProbingSettings(800, 200, 800), Balance.EQUAL)
    rng = np.random.default_rng(0)
    noisy = Encoder(lambda text: rng.normal(size=8) + 8 * np.eye(8)["abcd".index(text[0])])
    noise = Encoder(lambda text: rng.normal(size=8))
    assert probe(noisy, [task, task])[task.title].accuracy > 0.99
    assert len(noisy.embedded) == 1800 == len(set(noisy.embedded))
    score = probe(noise, [task])[task.title]
    assert 0.19 < score.accuracy < 0.31 and score.interval.low < 0.25 < score.interval.high
    assert majority_score(task) == ProbeScore.of(200, 800)
    with pytest.raises(EvaluationError, match="not finite"):
        probe(Encoder(lambda text: [np.nan]), [task])


def test_the_regularisation_is_the_best_of_separate_fits_on_the_validation_split():
    rng = np.random.default_rng(13)  # of which the strongest is not the best
    gold = [tuple("abcd"[n] for n in rng.integers(0, 4, many)) for many in (400, 150, 150)]
    task = ProbingTask("t", Source.UD, *(Split(each, each) for each in gold))
    signal = rng.normal(size=(4, 60)) / 4
    features = [
        np.array([signal["abcd".index(one)] for one in each]) + rng.normal(size=(len(each), 60)) for each in gold
    ]
    scaler = StandardScaler().fit(features[0])
    train, valid, test = map(scaler.transform, features)
    fits = [LogisticRegression(C=c, tol=1e-8, max_iter=5000).fit(train, gold[0]) for c in STRENGTHS]
    found = [fit.score(valid, gold[1]) for fit in fits]
    best = int(np.argmax(found))
    score = score_task(task, *(each.astype(np.float32) for each in features))
    assert best > 0 and len(set(found)) == len(found)
    assert (score.strength, score.accuracy) == (STRENGTHS[best], pytest.approx(fits[best].score(test, gold[2])))


def test_wilsons_interval_by_hand():
    """50 of 100: 1 / (1 + 0.0384146) * (0.5 + 0.0192073 +- 1.959964 * sqrt(0.0025 + 0.0000960365))."""
    score = ProbeScore.of(50, 100)
    assert (score.interval.low, score.interval.high) == pytest.approx((0.403832, 0.596168), abs=1e-5)


def test_tasks_of_a_bitext(tmp_path):
    path = str(bitext(tmp_path / "t.tsv"))
    tasks, notes = bitext_tasks(path, "es", SMALL)
    names = ["sentence length", "word content", "punctuation count", "first punctuation", "gender"]
    assert [task.name for task in tasks] == names and notes == []
    assert bitext_tasks(path, "es", SMALL)[0] == tasks
    tasks, notes = bitext_tasks(path, "tr", SMALL)
    assert [task.name for task in tasks] == names[:4] and notes == ["gender is left out: no articles are known for tr"]


def test_a_treebank_gives_three_tasks_without_shared_nouns(tmp_path):
    tasks = {task.name: task for task in conllu_tasks(treebank(tmp_path / "deep" / "er").parent, SMALL)}
    assert list(tasks) == ["subject number", "object number", "tree depth"]
    subjects = [{text.split()[0] for text in split.texts} for split in tasks["subject number"].splits]
    assert sum(map(len, subjects)) == len(set.union(*subjects)) == 60
    assert set(tasks["tree depth"].test.labels) == {"5", "6", "7"}


@pytest.mark.parametrize("text", ["1\tone\n\n", "not conllu\n\n", DOGS.replace("\t8\tnsubj", "\tx\tnsubj")])
def test_files_that_are_not_conllu_are_refused_by_name(tmp_path, text):
    (tmp_path / "bad.conllu").write_text(text, encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"bad\.conllu: not CoNLL-U"):
        conllu_tasks(tmp_path, SMALL)


def test_sentevals_splits_are_kept(tmp_path):
    rows = [
        f"{split}\t{'NN' if n % 2 else 'NNS'}\tsentence {split} {n} ."
        for split in ("tr", "va", "te")
        for n in range(50)
    ]
    (tmp_path / "subj_number.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (task,), notes = senteval_tasks(tmp_path, SMALL)
    assert task.title == "subject number (SentEval)" and len(notes) == 5
    assert [len(split.texts) for split in task.splits] == [50, 20, 40]
    for name, split in zip(("tr", "va", "te"), task.splits, strict=True):
        assert all(f"{name}\t{label}\t{text}" in rows for text, label in zip(split.texts, split.labels, strict=True))


@pytest.mark.parametrize("row", ["tr\tNN", "train\tNN\ta b", "tr NN a b", "tr\tNN\t "])
def test_a_malformed_row_is_told_by_file_and_line(tmp_path, row):
    (tmp_path / "obj_number.txt").write_text(f"tr\tNN\ta b\n{row}\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"obj_number\.txt: line 2 is"):
        senteval_tasks(tmp_path, SMALL)


def test_what_is_missing_is_refused(tmp_path):
    with pytest.raises(EvaluationError, match="no tasks; give --senteval"):
        find_tasks(None, None, None, None, SMALL)
    with pytest.raises(EvaluationError, match="none of SentEval's files"):
        find_tasks(tmp_path / "no", None, None, None, SMALL)
    with pytest.raises(EvaluationError, match=r"no \*\.conllu files"):
        find_tasks(None, None, None, tmp_path / "no", SMALL)
    with pytest.raises(TextError, match=r"no\.tsv"):
        find_tasks(None, str(tmp_path / "no.tsv"), "es", None, SMALL)


def test_tables_have_the_majority_all_models_and_the_papers_rows():
    split = Split(("a", "b"), ("x", "y"))
    task = ProbingTask("gender", Source.BITEXT, split, split, split)
    scores = {"m": {task.title: ProbeScore.of(2, 2, 1.0)}}
    run = ProbingRun({task.title: TaskDescription.of(task)}, scores, ("word content is left out",))
    tables = "\n\n".join(probing_tables(run))
    assert "| majority label | 50.0 (9.5 - 90.5) |" in tables and "| m | 100.0 (34.2 - 100.0) |" in tables
    assert "| gender (bitext) | 2 | 2 | 2 | 2 |" in tables and "- word content is left out." in tables
    assert "| *BGT semantic encoder, es* | *85.7* |" in tables
    assert published_table() not in "\n\n".join(probing_tables(run, published=False))


@pytest.mark.slow
def test_the_script_prints_tables_and_writes_results(tmp_path, monkeypatch, capsys):
    text, output, model = bitext(tmp_path / "t.tsv"), tmp_path / "out.json", str(shipped_folder())
    sizes = ["--train", "60", "--valid", "20", "--test", "40", "--words", "4", "--first-rank", "3"]
    given = ["--model", model, "--bitext", str(text), "--lang", "es", "--json", str(output), *sizes]
    monkeypatch.setattr(sys, "argv", ["probing", *given, "--conllu", str(treebank(tmp_path / "ud"))])
    assert script.main() == 0
    assert f"| {model} |" in capsys.readouterr().out
    run = json.loads(output.read_text())["run"]
    assert len(run["tasks"]) == len(run["models"][model]) == 8
    tasks, _ = bitext_tasks(str(text), "es", SMALL)
    again = run_probing([model], tasks).models[model]
    assert all(again[task.title].accuracy == run["models"][model][task.title]["accuracy"] for task in tasks)


def test_errors_are_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["probing", "--model", "m"])
    assert run_reporting_errors("probing", script.main) == 1
    assert capsys.readouterr().err.strip().startswith("probing: no tasks; give --senteval FOLDER")
