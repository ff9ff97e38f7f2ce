"""Clones of git repositories and unpacked packages, and the translated files in them; for
release_texts.py and release_words.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from st_paragram.errors import TextError

#: Languages of the texts, other than English.
LANGUAGES = (
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "es", "et", "fa", "fi", "fr", "he", "hi", "hr",
    "hu", "id", "it", "ja", "kn", "ko", "lt", "lv", "ml", "mr", "ms", "nb", "ne", "nl", "pl", "pt",
    "ro", "ru", "sk", "sl", "sr", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh",
)  # fmt: skip
#: Regions and scripts in names of languages, for each kind of the language that files may have.
REGIONS = {
    "bn": ("BD", "IN"), "hi": ("IN",), "kn": ("IN",), "ml": ("IN",), "mr": ("IN",), "ta": ("IN",),
    "te": ("IN",), "cs": ("CZ",), "da": ("DK",), "el": ("GR",), "et": ("EE",), "fa": ("IR",),
    "he": ("IL",), "ja": ("JP",), "ko": ("KR",), "ms": ("MY",), "nb": ("NO",), "ne": ("NP",),
    "sl": ("SI",), "sv": ("SE",), "sw": ("KE", "TZ"), "tl": ("PH",), "uk": ("UA",), "ur": ("PK",),
    "vi": ("VN",), "ca": ("ES",), "ar": ("SA",),
}  # fmt: skip
#: Other codes of languages.
ALIASES = {"he": ("he", "iw"), "id": ("id", "in"), "nb": ("nb", "no"), "tl": ("tl", "fil")}


def _codes(language: str) -> tuple[str, ...]:
    """Return the names of a language in paths: `ja`, `ja-JP`, `ja_JP`, `ja-rJP`, `ja-jp`."""
    names = list(ALIASES.get(language, (language,)))
    for alias in ALIASES.get(language, (language,)):
        for region in REGIONS.get(language, (language.upper(),)):
            names += [f"{alias}-{region}", f"{alias}_{region}", f"{alias}-r{region}"]
            names.append(f"{alias}-{region.lower()}")
    return tuple(names)


#: Names of languages in paths, usual ones first, for each kind of a language that is read:
#: Portuguese of Brazil and Portugal, Serbian in both scripts, but only simplified Chinese.
CODES: dict[str, tuple[tuple[str, ...], ...]] = {
    **{language: (_codes(language),) for language in LANGUAGES},
    "en": (("en", "en_US", "en_EN", "en-US"),),
    "pt": (
        ("pt-BR", "pt_BR", "pt-br", "pt-rBR", "br"),
        ("pt", "pt-PT", "pt_PT", "pt-pt", "pt-rPT"),
    ),
    "sr": (
        ("sr", "sr-RS", "sr_RS", "sr-Cyrl", "sr-cyrl-rs", "sr-rRS", "sr-ec"),
        ("sr-Latn", "sr_Latn", "sr@latin", "sr-latn-rs", "b+sr+Latn", "sr-el"),
    ),
    "zh": (("zh-CN", "zh_CN", "zh-Hans", "zh_Hans", "zh-hans", "zh-cn", "zh_cn", "zh-rCN", "zh"),),
}
#: Commands that download a package.
DOWNLOADS = {
    "Debian": "apt-get download {name}={version}",
    "Debian source": "apt-get source --download-only {name}={version}",
    "PyPI": "pip download --no-deps {name}=={version}",
}
#: Suffixes of ZIP archives in packages that are read like folders.
ARCHIVES = (".ja", ".xpi")
#: Suffixes of formats that have the English text, too.
BILINGUAL = (".conllu", ".gz", ".lang", ".mo", ".po", ".rpy", ".txt", ".xliff", ".zip")


class Repository(NamedTuple):
    """A clone, and the commit of it that is read."""

    folder: Path
    commit: str
    name: str = ""

    def git(self, *arguments: str, given: str | None = None) -> bytes:
        """Return the output of a git command."""
        command = ["git", "--git-dir", str(self.folder), *arguments]
        text = None if given is None else given.encode()
        return subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout

    @cache  # noqa: B019 - clones live as long as the script
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


class Package(NamedTuple):
    """An unpacked package of Debian or PyPI; the ZIP archives in it are read like folders."""

    folder: Path
    name: str = ""

    @cache  # noqa: B019 - clones live as long as the script
    def archives(self) -> dict[str, zipfile.ZipFile]:
        """Return the ZIP archives of the package by their paths."""
        paths = [path for suffix in ARCHIVES for path in sorted(self.folder.rglob(f"*{suffix}"))]
        return {
            path.relative_to(self.folder).as_posix(): zipfile.ZipFile(path)
            for path in paths
            if path.is_file() and not path.is_symlink()
        }

    @cache  # noqa: B019 - clones live as long as the script
    def paths(self) -> list[str]:
        """Return the paths of all files, in order, including those in archives."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        paths = [path.relative_to(self.folder).as_posix() for path in files]
        for archive, content in self.archives().items():
            paths += [f"{archive}/{name}" for name in content.namelist()]
        return sorted(paths)

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the content of files."""
        archives, files = self.archives(), dict[str, bytes]()
        for path in dict.fromkeys(paths):
            archive = next((name for name in archives if path.startswith(f"{name}/")), None)
            if archive is None:
                files[path] = (self.folder / path).read_bytes()
            else:
                files[path] = archives[archive].read(path.removeprefix(f"{archive}/"))
        return files


Origin = Repository | Package


def open_origins(folder: Path, origins: dict[str, str]) -> dict[str, list[Origin]]:
    """Find the clones of sources, each at its commit, and the unpacked packages.

    `origins` are the entries `from`, such as "github.com/owner/name@1a2b3c4", "Debian name 1.0-2"
    or "PyPI name 1.0". The error about missing clones, commits and packages has the commands that
    get them.
    """
    found, missing = dict[str, list[Origin]](), dict[str, None]()
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
                found[source].append(Repository(place, commit, name.partition("/")[2]))
        for registry, name, version in re.findall(
            r"(Debian source|Debian|PyPI) ([\w.+-]+) (\S*\d)", origin
        ):
            package = Package(folder / name, name)
            if package.folder.exists():
                found[source].append(package)
            else:
                command = DOWNLOADS[registry].format(name=name, version=version)
                missing[f"{command}  # and unpack it in {package.folder}"] = None
    if missing:
        raise TextError(
            f"{folder}: repositories, commits or packages are missing; run\n" + "\n".join(missing)
        )
    return found


def origins_of(
    source: dict[str, Any], language: str, origins: list[Origin]
) -> list[tuple[Origin, Origin]]:
    """Return the origins of the English files and of those of a language.

    With an entry `repositories`, such as "docs-{lang}", each language has its own repository. The
    first one has the English files, or, if it is that of a language, each has its own.
    """
    pattern = source.get("repositories")
    if not pattern:
        return [(origin, origin) for origin in origins]
    codes = _listed(source.get("codes", {}).get(language, [])) + [
        code for variants in CODES[language] for code in variants
    ]
    names = {pattern.replace("{lang}", code).lower() for code in codes}
    of_language = re.escape(pattern.lower()).replace(re.escape("{lang}"), ".+")
    shared = not re.fullmatch(of_language, origins[0].name.lower())
    found = [origin for origin in origins if origin.name.lower() in names]
    return [(origins[0] if shared else origin, origin) for origin in found]


def path_pairs(
    source: dict[str, Any], language: str, paths: list[str], english_paths: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Find the files of a language, each with the path of its English file and the code of the
    language in its path.
    """
    files, english = _listed(source["files"]), _listed(source.get("english"))
    codes, present = source.get("codes", {}).get(language), dict.fromkeys(english_paths)
    variants = CODES[language] if codes is None else [(code,) for code in _listed(codes)]
    if len(english) == 1:
        english = english * len(files)
    for pattern, english_pattern in zip(files, english, strict=True):
        for names in variants if "{lang}" in pattern else [("",)]:
            for code in names:
                wanted = _expression(pattern.replace("{lang}", code))
                found = [match for match in map(wanted.fullmatch, paths) if match]
                for match in found:
                    if Path(match[0]).suffix in BILINGUAL:
                        yield "", match[0], code
                        continue
                    english_path = _english_path(
                        english_pattern and english_pattern.replace("{lang}", code),
                        pattern,
                        match.groups(),
                        present,
                    )
                    if english_path:
                        yield english_path, match[0], code
                if found:
                    break


def _listed(value: Any) -> list[Any]:
    """Return a list as it is, and another value in a list."""
    return value if isinstance(value, list) else [value]


def _expression(pattern: str) -> re.Pattern[str]:
    """Return a pattern of paths as a regular expression with one group for each star."""
    parts = {"**/": "((?:.*/)?)", "**": "(.*)", "*": "([^/]*)", "#": "[^/]*"}
    return re.compile(
        "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*?|#)", pattern))
    )


def _english_path(
    english: str | None, pattern: str, stars: tuple[str, ...], present: dict[str, None]
) -> str:
    """Return the path of the English file for what the stars of a pattern stand for."""
    patterns = [pattern.replace("{lang}", code) for code in CODES["en"][0]]
    patterns = [english] if english else [*patterns, pattern.replace("values-{lang}", "values")]
    for each in patterns:
        filling = iter(stars)
        path = re.sub(r"\*\*/|\*\*?", lambda _: next(filling), each)  # noqa: B023 - used at once
        if "#" in path:
            wanted = _expression(path)
            path = min(filter(wanted.fullmatch, present), key=len, default="")
        if path in present:
            return path
    return ""
