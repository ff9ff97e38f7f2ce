"""Public sources of rows for the tasks other than translation: where they are, and under which licence.

None of them is fetched here. Licences are as stated by their sources; read them before you use the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from st_paragram.core.tables import markdown_table

# name | kind of file | languages | address | licence | note
_TABLE = """\
SQuAD 1.1 | squad | en | https://rajpurkar.github.io/SQuAD-explorer | CC BY-SA 4.0 | train only: dev is a test set
SQuAD 2.0 | squad | en | https://rajpurkar.github.io/SQuAD-explorer | CC BY-SA 4.0 | train only: dev is a test set
MLQA | squad | ar de en es hi vi zh | https://github.com/facebookresearch/MLQA | CC BY-SA 3.0 | \
context and question of one language
TyDi QA GoldP | squad | ar bn en fi id ko ru sw te | https://github.com/google-research-datasets/tydiqa | Apache-2.0 | \
all languages in one file: --id-prefix arabic
ARCD | squad | ar | https://github.com/husseinmozannar/SOQAL | MIT | data/arcd.json
TQuAD | squad | tr | https://github.com/TQuad/turkish-nlp-qa-dataset | none stated |
CMRC 2018 | squad | zh | https://github.com/ymcui/cmrc2018 | CC BY-SA 4.0 | squad-style-data
XDailyDialog | dialogue | de en it zh | https://github.com/liuzeming01/XDailyDialog | \
Apache-2.0, texts CC BY-NC-SA 4.0 | make turns of its files first
XPersona | dialogue | en fr id it ja ko zh | https://github.com/HLTCHKUST/Xpersona | MIT | \
make turns of its files first
SNLI | nli | en | https://nlp.stanford.edu/projects/snli | CC BY-SA 4.0 | train and dev: test is a test set
MultiNLI | nli | en | https://cims.nyu.edu/~sbowman/multinli | OANC and others | train: dev is left to evaluation
XNLI | nli | ar bg de el en es fr hi ru sw th tr ur vi zh | https://github.com/facebookresearch/XNLI | CC BY-NC 4.0 | \
held-out rows of dev are dropped when stores are made
OCNLI | nli | zh | https://github.com/CLUEbenchmark/OCNLI | CC BY-NC 2.0 |
esXNLI | nli | es en | https://github.com/artetxem/esxnli | none stated |
"""


@dataclass(frozen=True)
class Source:
    """A public source.

    Attributes:
        name: what it is called.
        kind: of its files, as `st-paragram tasks --kind` takes it.
        languages: codes, with spaces between.
        url: its page or download address.
        licence: as stated there.
        note: what else to know.
    """

    name: str
    kind: str
    languages: str
    url: str
    licence: str
    note: str = ""


@cache
def sources() -> tuple[Source, ...]:
    """All of them."""
    return tuple(Source(*map(str.strip, line.split("|"))) for line in _TABLE.splitlines())


def sources_table() -> str:
    """All of them as a Markdown table."""
    head = ("source", "--kind", "languages", "address", "licence", "note")
    rows = [(each.name, each.kind, each.languages, each.url, each.licence, each.note) for each in sources()]
    return markdown_table(head, rows, left=len(head))
