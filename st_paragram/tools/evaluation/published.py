"""Rows the papers printed, to stand beside ours; every one is theirs, measured with their models and data.

All figures are shares (0.746 where a paper prints 74.6), errors too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(str, Enum):
    """Where a row was printed; the value is the reference, `venue` the short form."""

    P_SP = "Wieting et al., EMNLP 2022 (demo)"
    SP = "Wieting et al., ACL 2019"
    BGT = "Wieting et al., EMNLP 2020"
    MUSE = "Yang et al., ACL 2020 (demo)"
    GILLICK = "Gillick, Presta and Tomar, 2018"
    USE_QA = "the model's page on TensorFlow Hub"
    MTEB = "embeddings-benchmark/results, mteb's repository of results"

    @property
    def venue(self) -> str:
        """E.g. "EMNLP 2022"."""
        return _VENUES[self.name]


_VENUES = {
    "P_SP": "EMNLP 2022",
    "SP": "ACL 2019",
    "BGT": "EMNLP 2020",
    "MUSE": "ACL 2020",
    "GILLICK": "2018",
    "USE_QA": "TF-Hub",
    "MTEB": "mteb",
}


@dataclass(frozen=True)
class Published:
    """One row of a paper's table.

    Args:
        model: as the paper calls it.
        source: the paper.
        scores: column -> share; the tables below say which measure.
        spearman: column -> Spearman's correlation, where `scores` are Pearson's and the paper gives both.
    """

    model: str
    source: Source
    scores: dict[str, float]
    spearman: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The model's name with a mark that the row is published, and where."""
        return f"{self.model} (published, {self.source.venue})"


@dataclass(frozen=True)
class PublishedSpeed:
    """Sentences per second on 120,000 book sentences; batch 64, sorted by length, preprocessing not counted."""

    model: str
    hardware: str
    sentences_per_second: int
    source: Source = Source.P_SP


def _rows(source: Source, columns: str, text: str) -> tuple[Published, ...]:
    r"""Rows `model: figure figure ...`; `76.2\76.7` is Pearson\Spearman, `-` no figure."""
    return tuple(_row(source, columns.split(), *line.strip().split(": ")) for line in text.strip().split("\n"))


def _row(source: Source, columns: list[str], model: str, figures: str) -> Published:
    row = Published(model, source, {})
    for column, cell in zip(columns, figures.split(), strict=True):
        first, _, second = cell.partition("\\")
        if first != "-":
            row.scores[column] = round(float(first) / 100, 6)
        if second:
            row.spearman[column] = round(float(second) / 100, 6)
    return row


_YEARS = "2012 2013 2014 2015 2016 average"

# Pearson, mean over the data sets of a year, 2013 with SMT; the mean of the years.
ENGLISH_STS = _rows(
    Source.P_SP,
    _YEARS,
    """
    BERT (CLS): 33.2 29.6 34.3 45.1 48.4 38.1
    BERT (mean): 48.8 46.5 54.0 59.2 63.4 54.4
    InferSent: 61.1 51.4 68.1 70.9 70.7 64.4
    GenSen: 60.7 50.8 64.1 73.3 66.0 63.0
    USE: 61.4 59.0 70.6 74.3 73.9 67.8
    Sentence-BERT: 66.9 63.2 74.2 77.3 72.8 70.9
    LASER: 63.1 47.0 67.7 74.9 71.9 64.9
    P-SP: 68.7 64.7 78.1 81.4 80.0 74.6
    """,
) + _rows(
    Source.BGT,
    _YEARS,
    """
    SP (1M en-fr pairs): 68.4 60.3 75.1 78.7 76.8 71.9
    BGT (1M en-fr pairs): 68.9 62.2 75.9 79.4 79.3 73.1
    """,
)

# Spearman over each year's concatenation, 2013 without SMT; the mean of the years.
CONCATENATED_STS = _rows(
    Source.P_SP,
    _YEARS,
    """
    Sentence-BERT: 71.0 76.5 73.2 79.1 74.3 74.8
    P-SP: 71.2 76.5 74.6 83.0 79.1 76.9
    SimCSE RoBERTa base, unsupervised: - - - - - 77.4
    SimCSE RoBERTa large, unsupervised: - - - - - 77.9
    """,
)

# Pearson, with Spearman where given; columns are our names of the tracks, es-en being 4a.
STS_2017 = _rows(
    Source.P_SP,
    "ar-ar ar-en es-es es-en tr-en",
    r"""
    LASER 1024d: 69.3\68.8 65.5\66.5 79.7\79.7 59.7\58.0 72.0\72.1
    LaBSE 768d: 68.6\69.1 72.2\74.5 79.5\80.8 65.5\65.7 72.9\72.1
    P-SP 1024d: 76.2\76.7 78.3\78.4 85.8\85.6 78.4\77.8 79.2\79.5
    """,
) + _rows(
    Source.SP,
    "ar-ar ar-en es-es es-en en-en tr-en",
    """
    SP 20k 300d, 1M OpenSubtitles: 75.6 74.7 85.4 76.4 84.5 77.2
    SP 80k 1024d, 10M OpenSubtitles: 76.2 75.0 86.2 78.3 84.5 77.5
    SP 20k 300d, 2M Europarl: - - 78.6 54.9 79.1 -
    SP 20k 1024d, 2M Europarl: - - 81.0 56.4 80.4 -
    SP 20k, random: 61.9 17.5 68.8 6.5 67.0 23.1
    SP 40k, random: 58.3 16.1 68.2 10.4 66.6 22.2
    Trigram 300d, 1M OpenSubtitles: 75.6 75.2 84.1 73.2 83.5 74.8
    Trigram, random: 67.9 1.8 77.3 2.8 73.7 19.4
    """,
)

# Pearson, mean over all 25 sets of STS 2012-16, not over the years (Table 1): a million back-translations (ParaNMT),
# one and two million pairs of CzEng.
STS_BY_TEXT = _rows(
    Source.SP,
    "back-translations bitext bitext-2x",
    """
    BLSTM-SP 20k: 66.5 66.4 66.2
    SP 20k: 69.7 70.0 71.0
    Word: 66.7 65.2 66.8
    Trigram: 70.0 70.0 70.6
    """,
)

# The same figures of pieces, to stand in a column of means over all sets.
ALL_SETS_STS = tuple(
    Published(f"SP 20k, {text}", Source.SP, {"all sets": share})
    for text, share in (("1M back-translations", 0.697), ("1M bitext", 0.7), ("2M bitext", 0.71))
)

# Error rate by nearest neighbour (cosine), mean of both directions; columns as Tatoeba's files are named.
TATOEBA = _rows(
    Source.P_SP,
    "ara deu spa fra rus tur average",
    """
    LASER: 7.8 1.0 2.1 4.3 5.9 2.6 4.0
    LaBSE: 9.1 0.7 1.6 4.0 4.7 1.6 3.6
    CRISS: 22.0 2.0 3.7 7.3 9.7 7.1 8.6
    P-SP: 8.8 1.5 2.4 5.4 5.6 1.4 4.2
    """,
)

# F1, trained on Europarl.
BUCC = _rows(Source.SP, "de-en fr-en", "SP 20k, Europarl: 77.0 76.3\nSP 40k, Europarl: 77.5 76.8")

# Pearson. SWER is the symmetric word error rate; "easy" and "hard" say how SWER and grade go together.
HARD_STS = _rows(
    Source.BGT,
    "all negation hard-low-20 hard-low-10 hard-high-20 hard-high-10 easy-high-20 easy-low-20",
    """
    SP (1M en-fr pairs): 74.1 68.7 54.9 22.5 14.4 10.8 49.9 42.2
    BGT (1M en-fr pairs): 75.3 73.1 63.6 47.1 20.0 18.1 51.5 43.0
    """,
)
HARD_STS_PAIRS = {
    "all": 13_023,
    "negation": 705,  # "not" or "'t" in exactly one sentence
    "hard-low-20": 404,  # lowest 20 % SWER, gold 0-2
    "hard-low-10": 72,  # lowest 10 %, gold 0-1
    "hard-high-20": 937,  # highest 20 %, gold 3-5
    "hard-high-10": 159,  # highest 10 %, gold 4-5
    "easy-high-20": 1_380,  # highest 20 %, gold 0-2
    "easy-low-20": 2_079,  # lowest 20 %, gold 3-5
}
# The paper's columns. By its other figures Hard+ has pairs unlike in words with high grades, Hard- pairs alike in words
# with low grades, as in `sts.hard`; its text swaps the two definitions.
HARD_STS_NAMED = _rows(Source.BGT, "Hard+ Hard-", "SP (1M en-fr pairs): 19.1 29.8\nBGT (1M en-fr pairs): 22.5 46.6")

# mteb's protocol: mean of STS12-16's Spearman, STS17's Spearman, mean accuracy of the seven languages on Tatoeba.
STATIC_MODELS = _rows(
    Source.MTEB,
    "STS12-16 STS17/en-ar STS17/es-en STS17/en-tr Tatoeba",
    """
    static-similarity-mrl-multilingual-v1: 75.9 69.9 74.9 68.2 92.5
    potion-multilingual-128M: 72.4 51.1 56.1 45.0 57.0
    potion-base-8M: 73.5 - - - -
    all-MiniLM-L6-v2 (transformer): 78.6 - - - -
    LaBSE (transformer): 69.3 74.5 65.7 72.1 96.5
    """,
)

# MAP@100; questions of Quora and AskUbuntu, other candidates than any set here.
SEMANTIC_RETRIEVAL = _rows(
    Source.MUSE,
    "Quora AskUbuntu average",
    """
    USE_Trans: 89.1 42.3 65.7
    USE_CNN: 89.2 39.9 64.6
    """,
) + _rows(Source.GILLICK, "Quora AskUbuntu average", "Dual encoder, no data of the domain: 87.5 37.3 62.4")

# P@1 of the sentence, SQuAD 1.1 as ReQA cuts it: dev 11,425 questions, 10,248 sentences; train 87,599 and 91,703.
ANSWER_RETRIEVAL = _rows(Source.USE_QA, "dev train", "USE_QA Trans+Cxt: 53.2 43.3")

# Accuracy, SentEval's protocol.
TRANSFER = _rows(
    Source.MUSE,
    "MR CR SUBJ MPQA TREC SST2",
    """
    USE_CNN: 73.8 83.2 90.1 87.7 96.4 78.1
    USE_Trans: 78.1 87.0 92.1 89.9 96.6 80.9
    InferSent: 81.1 86.3 92.4 90.2 88.2 84.6
    Skip-Thought LN: 79.4 83.1 93.7 89.3 - -
    Quick-Thought: 82.4 86.0 94.8 90.2 92.4 87.6
    USE_DAN, English: 72.2 78.5 92.1 86.9 88.1 77.5
    """,
)

#: Sentences per second on a Quadro GP100, 128,000 sentences of Europarl in batches of 128.
SPEED_ON_EUROPARL = (
    PublishedSpeed("SP 300d", "Quadro GP100", 855_571, Source.SP),
    PublishedSpeed("SP 1024d", "Quadro GP100", 683_204, Source.SP),
    PublishedSpeed("Chidambaram et al. 2018, 512d", "Quadro GP100", 3_049, Source.SP),
    PublishedSpeed("BiLSTM of Schwenk 2018, 1024d", "Quadro GP100", 2_601, Source.SP),
)

SPEED = tuple(
    PublishedSpeed(model, hardware, rate)
    for model, hardware, rate in (
        ("P-SP", "GTX 1080 Ti", 13_863),
        ("P-SP", "1 CPU core", 12_776),
        ("P-SP", "32 CPU cores", 15_316),
        ("LASER", "GTX 1080 Ti", 6_033),
        ("LASER", "1 CPU core", 26),
        ("Sentence-BERT", "GTX 1080 Ti", 288),
        ("Sentence-BERT", "1 CPU core", 2),
        ("InferSent", "GTX 1080 Ti", 4_445),
        ("InferSent", "1 CPU core", 16),
    )
)
