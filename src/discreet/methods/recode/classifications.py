"""The public files of a recoding: crosswalk, roll-ups, history and overrides, as the spec names them."""

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

SHARE = "share"  # the column of overrides that need not be there


@dataclass(frozen=True)
class Classifications:
    """The public files of a recoding: how old codes become new ones, whatever table has them."""

    spec: Recode
    base: Path

    @cached_property
    def crosswalk(self) -> Crosswalk:
        """The crosswalk, with the destinations of finest codes that the overrides name."""
        asked = self.spec.crosswalk
        found = read_crosswalk(
            self.base / asked.file,
            asked.old,
            asked.new,
            weight=asked.weight,
            action=asked.action,
            deleted=asked.deleted,
            length=asked.length,
        )
        all_overrides = {
            old: to for old, to in self.all_overrides.items() if old[0] in found.deleted or old[0] in found.shares
        }
        return found.with_overrides(finest_overrides(all_overrides))

    @cached_property
    def all_overrides(self) -> Overrides:
        """Everything that the overrides say, at whatever level. Shares are equal if there is no such column."""
        if self.spec.overrides is None:
            return {}
        path = self.base / self.spec.overrides
        with csv_lines(path, f"overrides, file {path.name}") as lines:
            header = next(lines, [])
        return read_overrides(path, SHARE if SHARE in header else None)

    def published(self, columns: tuple[str, ...]) -> PublishedCrosswalk:
        """The crosswalk as these columns show it."""
        rolled = tuple(self._roll_up(self.spec.columns[column]) for column in columns)
        return PublishedCrosswalk(self.crosswalk, rolled, rolled)

    def _roll_up(self, asked: int | RollUpFile) -> RollUp:
        if isinstance(asked, int):
            return Prefix(asked)
        return read_parents(self.base / asked.file, asked.code, asked.parent)

    def overrides(self, columns: tuple[str, ...]) -> Overrides:
        """The destinations set by hand that are codes of these columns; a file may have those of several levels."""
        published = self.published(columns)
        found = self.all_overrides if len(columns) == 1 else self._completed(self.all_overrides, columns)
        for old, targets in found.items():
            used = old in published.possible or old in published.deleted
            if used and (lost := next((new for new, _ in targets if new not in published.codes), None)):
                raise DomainError(
                    f"sends {shown(old)} to {shown(lost)}, which the new classification does not have",
                    where=f"overrides, file {self.spec.overrides}",
                    do="correct it, or add the code to the crosswalk, on a line without an old one",
                )
        return found

    def description(self) -> str:
        """What was used, for readers of the tables."""
        asked = self.spec
        files = {"crosswalk": asked.crosswalk.file}
        files |= {"completions": asked.history.file} if asked.history is not None else {}
        files |= {"overrides": asked.overrides} if asked.overrides is not None else {}
        named = ", ".join(f"{what} {Path(file).name}" for what, file in files.items())
        return (
            f"Public files: {named}. A code with one destination moved as it was; others went where the overrides "
            f"say; the rest was divided at random ({asked.rule}) by shares of completions, in which a possible "
            f"destination that was not observed weighs {format_exact(asked.smallest_share)}."
        )

    def _completed(self, found: Overrides, columns: tuple[str, ...]) -> Overrides:
        """Overrides of the longest of several prefixes, with the shorter ones read off it."""
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
            for old, targets in found.items()
            if len(old[0]) == longest
        }

    def history(self, published: PublishedCrosswalk, overrides: Overrides) -> History | None:
        """Past completions, if there are any."""
        asked = self.spec.history
        if asked is None:
            return None
        return read_history(
            self.base / asked.file,
            published,
            self.spec.shares,
            old=asked.old,
            new=asked.new,
            number=asked.number,
            overridden=list(overrides),
        )
