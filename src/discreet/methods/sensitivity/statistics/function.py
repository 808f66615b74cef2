"""Any Python function of a cell as a statistic (Chetty & Friedman 2019, Step 1): removals, corners or a grid, in
several processes.

An exception, a warning or a print of the function may quote an observation: none is shown. Where it raises, or does not
return a finite number, the statistic has its fallback value, so that one cell's data never stop a release.
"""

from __future__ import annotations

import hashlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import (
    SEARCHES,
    Floats,
    Int64s,
    LocalSensitivities,
    Search,
    Variable,
    added_points,
    checked_search,
)

Cell = Sequence[Floats]
CellFunction = Callable[[Cell], float]

SMALL = 2_000  # calls; up to this many, starting other processes takes longer than the work
PARTS = 32  # number of parts of the work, about
DRY_RUN_ROWS = 24  # synthetic observations of a dry run


@dataclass(frozen=True)
class FunctionInFile:
    """A function that a Python file defines. Its source text is sent to every process that calls it: a worker need not
    have the file, and cannot read another version of it."""

    file: str
    text: str = field(repr=False)
    name: str

    def __call__(self, columns: Cell) -> float:
        return self.load()(columns)

    def load(self) -> CellFunction:
        function: CellFunction | None = getattr(_module(self.file, self.text), self.name, None)
        if not callable(function):
            raise ParameterError(f"defines no function {self.name!r}", where=self.file, do="name one that it defines")
        return function


@cache
def _module(file: str, text: str) -> ModuleType:
    name = f"discreet_function_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    module = sys.modules[name] = ModuleType(name)  # dataclasses look their module up there
    try:
        exec(compile(text, file, "exec"), module.__dict__)  # noqa: S102 - the operator's own code, named in the declaration
    except (Exception, SystemExit) as failed:  # it has seen no observation
        raise ParameterError(f"cannot be loaded: {failed}", where=file, do="run it on its own first") from failed
    return module


@dataclass(frozen=True)
class Function:
    """θ = function(columns), one array per variable; `empty` without observations, and wherever the function fails.

    `error` gives its standard error in the same way, 0 where that fails. Both get copies that they may change, and must
    depend on nothing else: equal cells, equal values. Results do not depend on `processes` (None: one per core). A
    function that other processes cannot import (a lambda, one of the main program) runs in this one.

    A function that fails for every cell would have the sensitivity 0: `dry_run` detects it.
    """

    name: str
    variables: tuple[Variable, ...]
    function: CellFunction
    scale: float
    empty: float
    error: CellFunction | None = None
    parameters: int = 0
    processes: int | None = None

    def __post_init__(self) -> None:
        if not self.variables or not np.isfinite(self.empty) or not 0 < self.scale < np.inf:
            raise ParameterError(
                "needs a variable, a finite value for no observations and a positive scale",
                where=f"function {self.name}",
                do="declare them",
            )

    @classmethod
    def of_file(
        cls,
        path: str | Path,
        name: str,
        variables: tuple[Variable, ...],
        scale: float,
        empty: float,
        error: str | None = None,
    ) -> Function:
        """The function `name` of a Python file, and the one called `error` for its standard error. The file is read as
        text and not executed: call `dry_run` before it is used."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError):  # not text, or not a path
            raise ParameterError("is not a Python file", where=file.name, do="give the path of a .py file") from None
        spread = FunctionInFile(file.name, text, error) if error is not None else None
        return cls(name, variables, FunctionInFile(file.name, text, name), scale, empty, spread)

    @property
    def has_error(self) -> bool:
        return self.error is not None

    def searches(self) -> tuple[str, ...]:
        return SEARCHES[1:]

    def dry_run(self) -> Function:
        """Call it with synthetic observations, spread over the bounds: here its own error message may be shown."""
        steps = [
            np.arange(DRY_RUN_ROWS) * (2 * j + 7) % DRY_RUN_ROWS / (DRY_RUN_ROWS - 1)
            for j in range(len(self.variables))
        ]
        cell = [v.low + v.width * step for v, step in zip(self.variables, steps, strict=True)]
        for function in (self.function, self.error):
            if isinstance(function, FunctionInFile):
                function.load()
            try:
                value, again = (function([column.copy() for column in cell]) if function else 0.0 for _ in range(2))
            except KeyboardInterrupt:
                raise
            except BaseException as failed:
                raise ParameterError(
                    f"fails with synthetic observations: {type(failed).__name__}: {failed}",
                    where=f"function {self.name}",
                    do="try it with a list of arrays, one per variable",
                ) from failed
            if not _is_number(value):
                raise ParameterError("does not return a number", where=f"function {self.name}", do="return a float")
            if value != again:
                raise ParameterError(
                    "returns two values for one cell",
                    where=f"function {self.name}",
                    do="let it depend on its arguments only",
                )
        return self

    def local(
        self,
        columns: Cell,
        starts: Int64s,
        search: Search | None = None,
        *,
        errors: bool = True,
    ) -> LocalSensitivities:
        grid, spread = self._added(search), self.error if errors else None
        task = Task(self.function, spread, self.empty, grid)
        calls = int(columns[0].size) + len(grid) * (starts.size - 1)
        workers = self._workers(calls)
        parts = [
            CellRange(a, [column[starts[a] : starts[b]] for column in columns], starts[a : b + 1] - starts[a])
            for a, b in _spans(starts, len(grid), calls // PARTS)
        ]
        out = np.empty((starts.size - 1, 4))
        for first, rows in _results(task, parts, workers):
            out[first : first + len(rows)] = rows
        both = (out[:, 2], out[:, 3]) if spread else (None, None)
        return LocalSensitivities(np.diff(starts), out[:, 0], out[:, 1], *both)

    def _added(self, search: Search | None) -> list[tuple[float, ...]]:
        return [tuple(point) for point in added_points(self, checked_search(self, search)).tolist()]

    def _workers(self, calls: int) -> int:
        shared = all(_importable(f) for f in (self.function, self.error) if f is not None)
        if calls <= SMALL or not shared or _in_task():
            return 1
        return max(1, self.processes if self.processes is not None else cpu_count() or 1)


@dataclass(frozen=True)
class Task:
    """The computation for each cell, the same in every process."""

    function: CellFunction
    error: CellFunction | None
    empty: float
    grid: list[tuple[float, ...]]

    def cell(self, columns: Cell) -> tuple[float, float, float, float]:
        """θ, its sensitivity, its error, and that one's sensitivity."""
        here, most = _value(self.function, columns, self.empty), 0.0
        spread, widest = _value(self.error, columns, 0.0) if self.error else 0.0, 0.0
        for cell in self._neighbours(columns):
            most = max(most, abs(_value(self.function, cell, self.empty) - here))
            if self.error:
                widest = max(widest, abs(_value(self.error, cell, 0.0) - spread))
        return here, most, spread, widest

    def _neighbours(self, columns: Cell) -> Iterator[Cell]:
        """The cell without each observation, and with each grid point added."""
        for i in range(columns[0].size):
            yield [np.delete(column, i) for column in columns]
        for point in self.grid:
            yield [np.append(column, value) for column, value in zip(columns, point, strict=True)]


@dataclass(frozen=True)
class CellRange:
    """A range of consecutive cells."""

    first: int
    columns: Cell
    starts: Int64s

    def run(self, task: Task) -> tuple[int, Floats]:
        rows = np.empty((self.starts.size - 1, 4))
        for j in range(len(rows)):
            with _quiet():
                rows[j] = task.cell([column[self.starts[j] : self.starts[j + 1]] for column in self.columns])
        return self.first, rows


def _results(task: Task, parts: Sequence[CellRange], workers: int) -> Iterator[tuple[int, Floats]]:
    """Results of all parts, as completed. Processes are spawned: a fork would copy the locks of this one's threads."""
    if workers == 1 or len(parts) == 1:
        yield from (part.run(task) for part in parts)
        return
    try:
        for future in as_completed([_pool(workers).submit(part.run, task) for part in parts]):
            yield future.result()
    except BrokenExecutor:
        _pool.cache_clear()
        raise ParameterError("a function terminated its process", where="function", do="give it more memory") from None


@cache
def _pool(workers: int) -> ProcessPoolExecutor:
    """A pool that lives until the program ends: it is used by many calls."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _in_task() -> bool:
    """Whether this is a worker of a cluster, where tasks already run in parallel."""
    return str(getattr(sys.modules["__main__"].__spec__, "name", "")).startswith("pyspark")


def _spans(starts: Int64s, points: int, calls: int) -> Iterator[tuple[int, int]]:
    """Ranges a … b − 1 of cells, each with at least this number of calls."""
    a, taken, cells = 0, 0, starts.size - 1
    for b in range(1, cells + 1):
        taken += int(starts[b] - starts[b - 1]) + points
        if taken >= calls or b == cells:
            yield a, b
            a, taken = b, 0


def _value(function: CellFunction, columns: Cell, fallback: float) -> float:
    """The function of a copy of these observations; the fallback without observations, on failure, or if it returns no
    number."""
    if not columns[0].size:
        return fallback
    try:
        value = function([np.array(column) for column in columns])
    except KeyboardInterrupt:  # the operator interrupts: the only exception that is passed on
        raise
    except BaseException:  # noqa: BLE001 - an exception may quote observations: it counts as a failure
        return fallback
    return float(value) if _is_number(value) else fallback


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number; booleans are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(np.isfinite(value))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses output and warnings."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _importable(function: CellFunction) -> bool:
    """Whether another process can load it: from a file, or by module and name."""
    module = getattr(function, "__module__", "__main__")
    by_name = getattr(sys.modules.get(module), getattr(function, "__qualname__", ""), None)
    return isinstance(function, FunctionInFile) or (module != "__main__" and by_name is function)
