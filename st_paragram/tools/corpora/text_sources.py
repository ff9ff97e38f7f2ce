"""From downloaded files to texts that can be read."""

from __future__ import annotations

from st_paragram.core.text.parallel import TextSource
from st_paragram.tools.corpora.fetching.download import Fetched


def text_source(fetched: Fetched) -> TextSource:
    """How to read a downloaded file of two languages: a zip archive with a member for each, or a table of two columns.

    The sides come out in the order that was asked for, under the codes that were asked for, whatever the file uses.
    """
    file, path = fetched.file, str(fetched.path)
    first, second = file.pair
    codes = (file.languages[0], file.languages[1])
    if fetched.path.suffix == ".zip":
        return TextSource((path,), (first, second), cap=file.cap, codes=codes)
    swapped = codes == (second, first) != (first, second)
    return TextSource((path,), (second, first) if swapped else (first, second), swapped, cap=file.cap)
