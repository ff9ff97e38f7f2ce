"""The commands in groups, and what `st-paragram` shows without a command: tasks with the commands that do them."""

from collections.abc import Mapping

#: Group -> command -> what it is for.
GROUPS = {
    "use a model": {
        "embed": "turn the lines of a file into vectors, the rows of a .npy matrix",
        "score": "score pairs of sentences",
        "index": "make the sentences of a file searchable",
        "search": "find the sentences of an index that are most similar to a query",
        "mine": "find translations, or paraphrases, among sentences",
        "align": "align the sentences of a document with those of its translation",
    },
    "get and clean text": {
        "bitext": "download public parallel text and turn it into a pair store",
        "download": "download parallel text, test sets and models by their names",
        "prepare": "turn your own parallel text into a pair store",
        "dedupe": "remove exact and near-duplicates from a text or a parallel corpus",
        "pivot": "extract paraphrases from bitext: sentences that share a translation",
    },
    "train and evaluate": {
        "train": "train a model",
        "evaluate": "score models on similarity, translations, retrieval, transfer and inference",
    },
    "look at, copy and share models": {
        "info": "describe a model, a pair store, an index or this installation",
        "get": "write an included model to a directory that other software can also read",
        "export": "write a smaller copy of a model, or one of unit vectors",
        "import": "turn a checkpoint of the original P-SP or SP code into a model directory",
        "push": "upload a model to the Hugging Face hub",
    },
    "serve": {
        "serve": "run an HTTP server that answers requests for embeddings, scores and searches",
        "demo": "open a page in the browser that shows what a model does",
    },
    "other": {
        "cache": "list what is stored in the cache, and clear it",
    },
}
TASKS = """\
turn sentences into vectors, compare pairs of sentences
    st-paragram embed lines.txt --output lines.npy
    st-paragram score pairs.tsv --output scored.tsv
search in your own sentences, in any language of the model
    st-paragram index lines.txt --output lines.index
    st-paragram search lines.index "where is the station?"
find translations among the sentences of two languages
    st-paragram mine --source wiki.en --target wiki.es --output pairs.tsv
score a parallel corpus, to drop what is not translated
    st-paragram score corpus.tsv --output scored.tsv --background self
train a model for your language
    st-paragram train bitext --lang es --data en-es.tsv
evaluate a model
    st-paragram evaluate p-sp-es --hub --benchmarks sts
"""
START = f"""What would you like to do? The model p-sp-mini comes with st_paragram.

{TASKS}
st-paragram --help            lists all commands
st-paragram COMMAND --help    shows the options of a command"""


def listed(commands: Mapping[str, str]) -> str:
    """The tasks, and all commands in groups; commands in no group are among the last."""
    others = {name: about for name, about in commands.items() if not any(name in group for group in GROUPS.values())}
    lines = ["Efficient paraphrastic sentence embeddings.", "", TASKS]
    for title, group in GROUPS.items():
        shown = {**group, **others} if title == "other" else group
        lines += [f"{title}:", *(f"  {name:9} {about}" for name, about in shown.items()), ""]
    return "\n".join([*lines, "st-paragram COMMAND --help shows the options of a command."])
