"""The public files of a recoding: crosswalk, roll-ups, history and overrides, as declared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from discreet.domain import Key
from discreet.domain.codelists import csv_lines
from discreet.errors import DomainError, SpecError
from discreet.methods.recode.crosswalk import Crosswalk, finest_overrides, read_crosswalk, read_overrides, shown
from discreet.methods.recode.history import History, read_history
from discreet.methods.recode.rollup import Prefix, PublishedCrosswalk, RollUp, read_parents
from discreet.methods.recode.transitions import Overrides
from discreet.privacy.exact import format_exact
from discreet.spec.recode import Recode, RollUpFile

SHARE = "share"  # the optional column of overrides


@dataclass(frozen=True)
class Classifications:
    """The public files of a recoding: how old codes map to new ones, independently of tables."""

    spec: Recode
    base: Path

    @cached_property
    def crosswalk(self) -> Crosswalk:
        """The crosswalk, with overrides of finest codes applied."""
        declared = self.spec.crosswalk
        crosswalk = read_crosswalk(
            self.base / declared.file,
            declared.old,
            declared.new,
            weight=declared.weight,
            action=declared.action,
            deleted=declared.deleted,
            length=declared.length,
        )
        codes = crosswalk.deleted | crosswalk.shares.keys()
        overrides = {old: targets for old, targets in self.all_overrides.items() if old[0] in codes}
        return crosswalk.with_overrides(finest_overrides(overrides))

    @cached_property
    def all_overrides(self) -> Overrides:
        """All overrides, of codes of any level. Shares are equal if the file has no column of shares."""
        if self.spec.overrides is None:
            return {}
        path = self.base / self.spec.overrides
        with csv_lines(path, f"overrides, file {path.name}") as lines:
            header = next(lines, [])
        return read_overrides(path, SHARE if SHARE in header else None)

    def published(self, columns: tuple[str, ...]) -> PublishedCrosswalk:
        """The crosswalk between the published codes of these columns."""
        rolled = tuple(self._roll_up(self.spec.columns[column]) for column in columns)
        return PublishedCrosswalk(self.crosswalk, rolled, rolled)

    def _roll_up(self, declared: int | RollUpFile) -> RollUp:
        if isinstance(declared, int):
            return Prefix(declared)
        return read_parents(self.base / declared.file, declared.code, declared.parent)

    def overrides(self, columns: tuple[str, ...]) -> Overrides:
        """The overrides of codes of these columns; a file may have overrides of several levels."""
        published = self.published(columns)
        overrides = self.all_overrides if len(columns) == 1 else self._completed(self.all_overrides, columns)
        for old, targets in overrides.items():
            used = old in published.possible or old in published.deleted
            if used and (lost := next((new for new, _ in targets if new not in published.codes), None)):
                raise DomainError(
                    f"sends {shown(old)} to {shown(lost)}, which the new classification does not have",
                    where=f"overrides, file {self.spec.overrides}",
                    do="correct it, or add the code to the crosswalk, on a line without an old one",
                )
        return overrides

    def description(self) -> str:
        """Description of the recoding for the codebook: files, rule, shares."""
        declared = self.spec
        files = {"crosswalk": declared.crosswalk.file}
        files |= {"completions": declared.history.file} if declared.history is not None else {}
        files |= {"overrides": declared.overrides} if declared.overrides is not None else {}
        listed = ", ".join(f"{what} {Path(file).name}" for what, file in files.items())
        return (
            f"Public files: {listed}. Codes with one destination were moved unchanged; overrides determine the "
            f"destinations of others; the rest was divided at random ({declared.rule}) by shares of completions, in "
            f"which a destination without observed completions has weight {format_exact(declared.smallest_weight)}."
        )

    def _completed(self, overrides: Overrides, columns: tuple[str, ...]) -> Overrides:
        """Overrides of the longest of several prefixes, extended by the shorter ones."""
        lengths = [self.spec.columns[column] for column in columns]
        prefixes = [length for length in lengths if isinstance(length, int)]
        if len(prefixes) < len(lengths):
            raise SpecError(
                f"overrides name one code, and a table has {' and '.join(columns)} together",
                where="recode.overrides",
                do="publish one column of the classification in a table",
            )
        longest = max(prefixes)

        def whole(code: Key) -> Key:
            return tuple(code[0][:length] for length in prefixes)

        return {
            whole(old): tuple((whole(new), share) for new, share in targets)
            for old, targets in overrides.items()
            if len(old[0]) == longest
        }

    def history(self, published: PublishedCrosswalk, overrides: Overrides) -> History | None:
        """Past completions, if declared."""
        declared = self.spec.history
        if declared is None:
            return None
        return read_history(
            self.base / declared.file,
            published,
            self.spec.shares,
            old=declared.old,
            new=declared.new,
            number=declared.number,
            overridden=list(overrides),
        )
