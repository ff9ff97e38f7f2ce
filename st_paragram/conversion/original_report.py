"""What an import has done, for the command line and the model card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportReport:
    """What was imported.

    Attributes:
        tokens: "sentencepiece", "word" or "trigram", or "original" for an exact import.
        dimension: components of an embedding.
        rows: of the checkpoint that stand for a string.
        left_out: those of them that no text reaches in the imported model.
        pieces_without_row: pieces that are dropped on encoding, as the original code drops them.
        lower_case: whether the model lower-cases texts.
        moses: language of Moses tokenization before all else, or None.
        epoch: of the checkpoint, or None.
        digest: SHA-256 of the checkpoint.
    """

    tokens: str
    dimension: int
    rows: int
    left_out: int
    pieces_without_row: int
    lower_case: bool
    moses: str | None
    epoch: int | None
    digest: str

    @property
    def left_out_share(self) -> float:
        """The share of the rows that no text reaches, 0 .. 1."""
        return self.left_out / self.rows

    def sentences(self) -> list[str]:
        """What was imported, and what was not, for a person to read."""
        epoch = "" if self.epoch is None else f" of epoch {self.epoch}"
        done = [f"{self.rows - self.left_out:,} rows{epoch}, {self.dimension:,} components"]
        if self.left_out:
            done.append(
                f"{self.left_out:,} of {self.rows:,} rows ({self.left_out_share:.2%}) are left out: they stand for "
                f"strings that are no token of this model ({self.tokens}); an exact import keeps them"
            )
        if self.pieces_without_row:
            count = f"{self.pieces_without_row:,} pieces have" if self.pieces_without_row > 1 else "one piece has"
            done.append(f"{count} no row and no part in embeddings, as in the original code")
        case = "texts are lower-cased" if self.lower_case else "texts keep their case"
        done.append(case if self.moses is None else f"texts are tokenized by Moses ({self.moses}); {case}")
        return done
