"""Clones of git repositories, and the translated files in them; for release_texts.py and
release_words.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from st_paragram.core.languages import MODEL_LANGUAGES
from st_paragram.errors import TextError

LANGUAGES = tuple(sorted(set(MODEL_LANGUAGES) - {"en"}))
#: Names of languages in paths, usual ones first; simplified Chinese only.
CODES: dict[str, tuple[str, ...]] = {
    **{code: (code, f"{code}-{code.upper()}", f"{code}_{code.upper()}") for code in LANGUAGES},
    "zh": ("zh-CN", "zh_CN", "zh-Hans", "zh_Hans", "zh-hans", "zh-cn", "zh_cn", "zh-rCN", "zh"),
    "en": ("en", "en_US", "en_EN"),
}
#: Suffixes of formats that have the English text, too.
BILINGUAL = (".po", ".xliff")


class Repository(NamedTuple):
    """A clone, and the commit of it that is read."""

    folder: Path
    commit: str

    def git(self, *arguments: str, given: str | None = None) -> bytes:
        """Return the output of a git command."""
        command = ["git", "--git-dir", str(self.folder), *arguments]
        text = None if given is None else given.encode()
        return subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout

    def paths(self) -> list[str]:
        """Return the paths of all files, in order."""
        return self.git("ls-tree", "-r", "-z", "--name-only", self.commit).decode().split("\0")[:-1]

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the content of files; a file that the clone lacks is left out, with a warning."""
        paths, files, start = list(dict.fromkeys(paths)), dict[str, bytes](), 0
        output = self.git(
            "cat-file", "--batch", given="".join(f"{self.commit}:{path}\n" for path in paths)
        )
        for path in paths:
            end = output.index(b"\n", start)
            header = output[start:end].split()
            start = end + 1
            if header[-1] == b"missing":
                print(
                    f"{self.folder}: {path} is missing from this clone and is skipped",
                    file=sys.stderr,
                )
                continue
            size = int(header[-1])
            files[path] = output[start : start + size]
            start += size + 1
        return files


def open_repositories(folder: Path, origins: dict[str, str]) -> dict[str, list[Repository]]:
    """Find the clones of sources, each at its commit.

    `origins` are the entries `from`, such as "github.com/owner/name@1a2b3c4". The error about
    missing clones and commits has the commands that get them.
    """
    found, missing = dict[str, list[Repository]](), dict[str, None]()
    for source, origin in origins.items():
        found[source] = []
        for name, commit in re.findall(r"github\.com/([\w.-]+/[\w.-]+)@([0-9a-f]+)", origin):
            base = folder / name.replace("/", "+")
            place = next((each for each in (base / ".git", base) if (each / "HEAD").exists()), None)
            if place is None:
                missing[f"git clone https://github.com/{name} {base}"] = None
            elif not Repository(place, commit).git(
                "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"
            ):
                missing[f"git --git-dir {place} fetch  # for {commit}"] = None
            else:
                found[source].append(Repository(place, commit))
    if missing:
        raise TextError(
            f"{folder}: repositories or commits are missing; run\n" + "\n".join(missing)
        )
    return found


def path_pairs(
    source: dict[str, Any], language: str, paths: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Find the files of a language, each with the path of its English file and the code of the
    language in its path.
    """
    codes, present = source.get("codes", {}).get(language), set(paths)
    for pattern in [source["files"]] if isinstance(source["files"], str) else source["files"]:
        for code in [codes] if isinstance(codes, str) else codes or CODES[language]:
            wanted = _expression(pattern.replace("{lang}", code))
            found = [match for match in map(wanted.fullmatch, paths) if match]
            for match in found:
                english = _english_path(source.get("english"), pattern, match.groups(), present)
                if english or Path(match[0]).suffix in BILINGUAL:
                    yield english, match[0], code
            if found and not codes:
                break


def _expression(pattern: str) -> re.Pattern[str]:
    """Return a pattern of paths as a regular expression with one group for each star."""
    parts = {"**/": "((?:.*/)?)", "**": "(.*)", "*": "([^/]*)"}
    return re.compile(
        "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*?)", pattern))
    )


def _english_path(
    english: str | None, pattern: str, stars: tuple[str, ...], present: set[str]
) -> str:
    """Return the path of the English file for what the stars of a pattern stand for."""
    patterns = [pattern.replace("{lang}", code) for code in CODES["en"]]
    patterns = [english] if english else [*patterns, pattern.replace("values-{lang}", "values")]
    candidates = []
    for each in patterns:
        filling = iter(stars)
        candidates.append(re.sub(r"\*\*/|\*\*?", lambda _: next(filling), each))  # noqa: B023 - used at once
    return next((path for path in candidates if path in present), "")
