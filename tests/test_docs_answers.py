"""Questions of new users: the start page leads to each answer in at most two clicks, and titles are headings."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Question -> the page and the heading of its answer, and a word that the answer has.
ANSWERS = {
    "How do I install it without a GPU?": ("five_minutes.md#install", "whl/cpu"),
    "Which model should I use?": ("systems.md", "p-sp-mini"),
    "How do I train Hindi?": ("training.md#a-language-with-little-text", "prepare"),
    "Is my model good?": ("evaluation.md#measure-models-on-your-own-data", "--translations"),
    "How do I mine a million lines?": ("mining.md#large-runs", "--work"),
    "How do I serve it?": ("serving.md", "st-paragram serve"),
    "How small can a model be?": ("encoding.md#smaller-tables", "int4"),
    "Why is my cosine 0.3?": ("troubleshooting.md#models", "0.3"),
    "Can I use it in LangChain?": ("integrations.md#langchain", "HuggingFaceEmbeddings"),
    "What may I do with a model?": ("sharing.md#licenses", "CC BY-SA"),
}


def linked(page):
    """Pages and headings that a page links to."""
    return re.findall(r"\]\(([\w/.]+\.md(?:#[\w-]+)?)\)", (DOCS / page).read_text(encoding="utf-8"))


def section(target):
    """The text below a heading, or the whole page."""
    page, _, anchor = target.partition("#")
    text = (DOCS / page).read_text(encoding="utf-8")
    if not anchor:
        return text
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w]+", "-", title.strip("# ").lower()).strip("-"): number for number, title in enumerate(parts)}
    begin = slugs[anchor]
    depth = len(parts[begin]) - len(parts[begin].lstrip("#"))
    found = []
    for title, body in zip(parts[begin::2], parts[begin + 1 :: 2], strict=False):
        if found and len(title) - len(title.lstrip("#")) <= depth:
            break
        found.append(title + body)
    return "".join(found)


@pytest.mark.parametrize("question", ANSWERS)
def test_the_start_page_leads_to_each_answer(question):
    target, word = ANSWERS[question]
    assert word in section(target), f"{target} does not answer {question!r}"
    first = linked("index.md")
    second = [link for page in {each.partition("#")[0] for each in first} for link in linked(page)]
    assert target in [*first, *second] or target.partition("#")[0] in first


def pages(entries):
    """Titles and pages of a navigation."""
    for entry in (each for each in entries if not isinstance(each, str)):
        for title, value in entry.items():
            yield from pages(value) if isinstance(value, list) else [(title, value)]


def test_titles_of_the_navigation_are_headings():
    navigation = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["nav"]
    own = [(title, DOCS / page) for title, page in pages(navigation) if (DOCS / page).exists() and page != "index.md"]
    assert len(own) > 25
    headings = {path: re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1] for _, path in own}
    assert {path: title for title, path in own} == headings
