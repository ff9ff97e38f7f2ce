"""The commands in groups, and what `st-paragram` shows without a command."""

#: Group -> command -> one line of help.
GROUPS = {
    "use a model": {
        "embed": "turn the lines of a file into vectors",
        "score": "score pairs of sentences by their similarity",
        "index": "make the sentences of a file searchable",
        "search": "find the sentences of an index that are most similar to a query",
        "mine": "find translations in two texts, or paraphrases in one",
        "align": "align the sentences of a document with those of its translation",
    },
    "get and clean text": {
        "bitext": "download public parallel text and turn it into a pair store",
        "download": "download parallel text and test sets by name",
        "prepare": "turn your own parallel text into a pair store",
        "clean": "drop the bad pairs of a translation memory or another file, and repair others",
        "dedupe": "remove exact and near-duplicates from a text or a parallel corpus",
        "pivot": "extract paraphrases from bitext: sentences that share a translation",
    },
    "train and evaluate": {
        "train": "train a model",
        "evaluate": "score models on similarity, translations, retrieval, transfer and inference",
    },
    "inspect, copy and share models": {
        "info": (
            "describe a model, a pair store, an index, a folder of embeddings or this installation"
        ),
        "get": "write an included model to a directory that other software can also read",
        "export": "write a copy of a model that is smaller or gives unit vectors",
        "import": "convert a checkpoint of the original P-SP or SP code, or published USE weights",
        "push": "upload a model to the Hugging Face hub",
    },
    "serve": {
        "serve": "run an HTTP server that answers requests for embeddings, scores and searches",
        "demo": "serve a web page that shows what a model does",
    },
    "other": {
        "cache": "list or clear the cache",
        "generate": "reconstruct, translate or restyle sentences with a generative model",
        "towers": ("add towers for questions and answers, and an inference classifier, to a model"),
    },
}
TASKS = """\
turn sentences into vectors, compare pairs of sentences
    st-paragram embed lines.txt --output lines.npy
    st-paragram score pairs.tsv --output scored.tsv
search your own sentences, in any language of the model
    st-paragram index lines.txt --output lines.index
    st-paragram search lines.index "where is the station?"
find translations among the sentences of two languages
    st-paragram mine --source wiki.en --target wiki.es --output pairs.tsv
score a parallel corpus, to drop bad translations
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


def overview() -> str:
    """Return the tasks and all commands in groups."""
    lines = ["Efficient paraphrastic sentence embeddings.", "", TASKS]
    for title, group in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name:9} {about}" for name, about in group.items()]
        lines.append("")
    lines.append("st-paragram COMMAND --help shows the options of a command.")
    return "\n".join(lines)
