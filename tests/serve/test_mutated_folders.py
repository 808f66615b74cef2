"""Whatever a published folder has become, it is opened or refused: by `serve`, by `query`, by `ledger verify`. Most
mutations are sealed again, as whoever forges a release would: digests do not stop them, what is read must."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import DiscreetError
from discreet.methods.hypercube.commands import title
from discreet.methods.sensitivity.utility.epsilon_choice import released_cells as known
from discreet.pipeline.verify import verify_folder
from discreet.privacy.ledger.events import canonical
from discreet.publish.cubes import open_cube
from discreet.publish.manifest import FILE
from discreet.publish.manifest import read as read_manifest
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.formats import FORMATS
from discreet.serve.query_model import QueryableTable, TableQuery
from support import earnings
from support.mutations import Mutation, survived
from support.sensitivity import AtlasAgency
from support.survey import DEVIATIONS, WEIGHTS, SurveyAgency
from support.web_client import released

CHUNK = 50


def _survey(home: Path) -> Path:
    return SurveyAgency(home / "survey").run(weights=WEIGHTS, replicates=DEVIATIONS)


def _earnings(home: Path) -> Path:
    made = earnings.Registrar(home / "registrar", earnings.graduates(20))
    made.published(earnings.spec(earnings.table(levels=[{"name": "families", "by": ["family", "years_after"]}])))
    return next(path.parent for path in (home / "registrar").rglob(FILE))


def _estimates(home: Path) -> Path:
    atlas = AtlasAgency(home / "atlas")
    atlas.run()
    return atlas.folder / "out"


MADE: dict[str, Callable[[Path], Path]] = {
    "cubes": released,
    "survey": _survey,
    "earnings": _earnings,
    "estimates": _estimates,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release of each sort."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("published")
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        return {name: make(home / name) for name, make in MADE.items() if not (home / name).mkdir()}


def mutate(folder: Path, mutation: Mutation) -> None:
    """Change one thing in a folder, and perhaps seal it again."""
    random, names = mutation.random, sorted(path.relative_to(folder).as_posix() for path in _files(folder))
    documents = [name for name in names if name.endswith(".json") and name != FILE]
    which = random.choice(["manifest", "manifest", "document", "document", "document", "table", "files"])
    sealed = random.random() < 0.85
    mutation.said.append(f"{which}{', sealed' if sealed else ''}")
    if which == "files":
        _files_changed(folder, random.choice(names), mutation)
    elif which == "manifest":
        (folder / FILE).write_bytes(mutation.json((folder / FILE).read_bytes(), indent=2) + b"\n")
    else:
        name = random.choice(documents if which == "document" else [n for n in names if n.endswith(".parquet")])
        mutation.said.append(name)
        content = (folder / name).read_bytes()
        changes = [mutation.json] if which == "document" else [mutation.bytes, partial(_rows_changed, mutation)]
        (folder / name).write_bytes(random.choice(changes)(content))
    if sealed:
        _seal(folder)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _rows_changed(mutation: Mutation, content: bytes) -> bytes:
    """A table whose columns or rows are others."""
    table = pq.read_table(pa.BufferReader(content))
    place = mutation.random.randrange(table.num_columns)
    field, column = table.schema.field(place), table.column(place)
    way = mutation.random.choice(["remove", "rename", "null", "text", "odd", "twice", "none", "some", "type"])
    mutation.said.append(f"{way} {field.name}")
    if way in ("twice", "none", "some"):
        rows = {"twice": [0, *range(table.num_rows)], "none": [], "some": list(range(0, table.num_rows, 2))}[way]
        table = table.take(pa.array(rows, pa.int64()))
    elif way == "remove":
        table = table.remove_column(place)
    elif way == "rename":
        table = table.rename_columns([*table.column_names[:place], "x", *table.column_names[place + 1 :]])
    else:
        odd = mutation.random.choice([float("nan"), float("inf"), -1e308, 1e-320, 2.0**63])
        made = {
            "null": lambda: pa.array([None, *column.to_pylist()[1:]], column.type),
            "text": lambda: pa.array(["x", *map(str, column.to_pylist()[1:])]),
            "odd": lambda: pa.array([odd] * table.num_rows),
            "type": lambda: pa.array([[1]] * table.num_rows),
        }[way]()
        table = table.set_column(place, field.name, made)
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return bytes(out.getvalue().to_pybytes())


def _files_changed(folder: Path, name: str, mutation: Mutation) -> None:
    way = mutation.random.choice(["remove", "empty", "exchange", "folder", "more"])
    mutation.said.append(f"{way} {name}")
    other = mutation.random.choice(sorted(_files(folder)))
    content = other.read_bytes()
    if way == "more":
        (folder / "more.parquet").write_bytes(content)
        return
    (folder / name).unlink()
    if way == "empty":
        (folder / name).write_bytes(b"")
    elif way == "exchange":
        (folder / name).write_bytes(content)
    elif way == "folder":
        (folder / name).mkdir()


def _seal(folder: Path) -> None:
    """Recompute every digest."""
    try:
        made = json.loads((folder / FILE).read_bytes())
        if isinstance(made.get("files"), dict):
            there = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
            listed = [name for name in made["files"] if name in there]
            made["files"] |= {name: hashlib.sha256(there[name].read_bytes()).hexdigest() for name in listed}
        said = {key: value for key, value in made.items() if key not in ("digest", "ledger")}
        made["digest"] = hashlib.sha256(canonical(said).encode()).hexdigest()
        text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
        (folder / FILE).write_bytes(text.encode())
    except (ValueError, AttributeError, TypeError, OSError, RecursionError):
        return  # nothing that could be sealed


def serve(folder: Path) -> None:
    """Open it and ask each table for some cells, in every format."""
    for table in TableCatalogue.of([folder]).tables.values():
        answer = table.answer(_asked(table), 100_000)
        for form in FORMATS.values():
            form.write(answer, table.summary)


def _asked(table: QueryableTable) -> TableQuery:
    """By the first variable, limited to one code of each other variable where cells cannot be summed."""
    own = [v for v in table.variables if not v.finer]
    rest = [] if table.additive else own[1:]
    return TableQuery(tuple((v.id, ()) for v in own[:1]), tuple((v.id, v.codes[:1]) for v in rest), ())


def query(folder: Path, counts: bool = False) -> None:
    cube = open_cube(folder, counts=counts)
    cube.table([cube.model.axes[0].name]).arrow()
    title(cube.model, ())


LOOKS: dict[str, Callable[[Path], Any]] = {
    "serve": serve,
    "query": query,
    "query --counts": lambda folder: query(folder, counts=True),
    "tradeoff --release": lambda folder: known(folder, None, None),
    "manifest": read_manifest,
    "ledger verify": lambda folder: verify_folder(discreet.ledger(folder.parent / "ledger.sqlite"), folder),
}


def failures(made: Path, place: Path, name: str, numbers: range) -> list[str]:
    """What goes wrong among these mutations, and which."""
    ledger = next(path for path in (made.parent, *made.parent.parents) if list(path.glob("*.sqlite")))
    shutil.copy(sorted(ledger.glob("*.sqlite"))[0], place / "ledger.sqlite")
    actual = []
    for number in numbers:
        mutation, folder = Mutation(f"folder {name}", number), place / "mutated"
        shutil.copytree(made, folder)
        mutate(folder, mutation)
        for command, look in LOOKS.items():
            if said := survived(lambda look=look, folder=folder: look(folder), (DiscreetError, OSError)):  # type: ignore[misc]
                actual.append(f"{name} {number} ({'; '.join(mutation.said)}): {command}: {said}")
        shutil.rmtree(folder)
    return actual


@pytest.mark.parametrize("name", MADE)
def test_the_folders_themselves_are_opened(folders: dict[str, Path], name: str) -> None:
    serve(folders[name])
    read_manifest(folders[name])


@pytest.mark.parametrize("name", MADE)
def test_a_mutated_folder_is_opened_or_refused(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    actual = failures(folders[name], tmp_path, name, range(60))
    assert not actual, "\n\n".join(actual)


@pytest.mark.full
@pytest.mark.parametrize("part", range(0, 600, CHUNK))
@pytest.mark.parametrize("name", MADE)
def test_any_mutated_folder_is_opened_or_refused(
    folders: dict[str, Path], tmp_path: Path, name: str, part: int
) -> None:
    actual = failures(folders[name], tmp_path, name, range(part, part + CHUNK))
    assert not actual, "\n\n".join(actual)
