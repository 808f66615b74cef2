"""A table written beside its noise: what a worker gets, and that it can do it twice."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.domain import Domain
from discreet.engine.spans import Fingerprint, FingerprintedTable, Span, Spans
from discreet.errors import EngineError, GuaranteeError
from discreet.methods.counts.method import CountsMethod
from discreet.methods.counts.spec import Counts
from discreet.methods.writing import WriteKernel, _seal, write_parts
from discreet.noise.key import ReleaseKey, Secret
from discreet.noise.stream import Stream
from discreet.privacy.confidential import Reservation, WorkerGrant
from discreet.privacy.guarantee import Record
from discreet.privacy.ledger.events import Reserve
from discreet.publish.storage import LocalFolder, sha256
from discreet.spec import ValuesDomain

CELLS = 10
SECRET = ReleaseKey.simulation("writing").stream_secret("r", "t", b"", "p")


def method(form: str = "dense") -> CountsMethod:
    domain = Domain(tuple(ValuesDomain(values=[str(i) for i in range(CELLS)]).attributes("a", Path())))
    return CountsMethod(Counts(name="t", by=["a"], epsilon="1/2", form=form), domain, Record())  # type: ignore[arg-type]


def rows(first: int = 0, end: int = CELLS) -> Iterator[pa.RecordBatch]:
    for cell in range(first, end, 3):
        yield pa.RecordBatch.from_arrays([[cell], [100 + cell]], names=["cell", "n"])


def stream() -> Stream:
    return Stream.from_secret(SECRET.expose())


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    for name in ("place", "scratch"):
        (tmp_path / name).mkdir()
    return LocalFolder(tmp_path / "place", tmp_path / "scratch")


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_counts_are_never_released_without_noise(form: str) -> None:
    with pytest.raises(GuaranteeError, match="never released without noise"):
        next(method(form)(Spans(CELLS, CELLS)[0], rows(), None))


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_kernel_is_sent_to_a_worker_and_gives_the_same_there(form: str) -> None:
    kernel, span = method(form), Spans(CELLS, CELLS)[0]
    here = list(kernel(span, rows(), stream()))  # it has computed what it keeps
    there = pickle.loads(pickle.dumps(kernel))
    assert set(vars(there)) == {"spec", "domain", "unit"}  # nothing computed goes along
    assert there == kernel
    assert there.schema == kernel.schema
    assert all(a.equals(b) for a, b in zip(there(span, rows(), stream()), here, strict=True))


def of(span: Span) -> list[pa.RecordBatch]:
    return [batch for batch in rows() if span.first <= batch["cell"][0].as_py() < span.end]


def _mark(span: Span) -> bytes:
    actual = Fingerprint()
    for batch in of(span):
        actual.update(batch)
    return actual.digest()


def written_by(folder: LocalFolder, spans: Spans, simulated: bool = False) -> WriteKernel:
    """The kernel as a run makes it: sealed for the rows above."""
    kernel = method()
    seals = tuple(_seal(stream(), span.number, _mark(span)) for span in spans)
    return WriteKernel(kernel, "t", folder, spans, WorkerGrant(kernel.guarantee(), simulated), seals)


@pytest.mark.parametrize("size", [CELLS, 4])
def test_a_part_is_written_with_its_receipt(folder: LocalFolder, size: int) -> None:
    spans = Spans(CELLS, size)
    writer = written_by(folder, spans, simulated=True)
    names: set[str] = set()
    for span in spans:
        (receipt,) = writer(span, iter(of(span)), stream())
        assert receipt.schema == writer.schema
        for row in receipt.to_pylist():
            assert (row["span"], row["rows"]) == (span.number, span.cells)
            assert row["sha256"] == sha256(folder.path / row["file"])
            names.add(row["file"])
    assert folder.names() == names
    assert len(names) == 2 * len(spans)
    assert all(("/part-" in name) == (len(spans) > 1) for name in names)


def test_a_repeated_task_leaves_the_same_bytes_and_receipt(folder: LocalFolder) -> None:
    spans = Spans(CELLS, 4)
    writer = written_by(folder, spans)
    again = pickle.loads(pickle.dumps(writer))

    def receipts(by: WriteKernel) -> list[pa.RecordBatch]:
        return list(by(spans[1], rows(6, 8), stream()))

    first = receipts(writer)
    files = {name: (folder.path / name).read_bytes() for name in folder.names()}
    assert receipts(again) == first
    assert {name: (folder.path / name).read_bytes() for name in folder.names()} == files


def test_what_a_worker_gets_holds_no_secret(folder: LocalFolder) -> None:
    writer = written_by(folder, Spans(CELLS, 4))
    list(writer.kernel(Spans(CELLS, CELLS)[0], rows(), stream()))
    sent = pickle.dumps(writer)
    assert SECRET.expose() not in sent
    assert SECRET.expose().hex().encode() not in sent


@pytest.mark.parametrize("changed", [[], [([6], [107])], [([6], [106]), ([7], [1])], [([5], [106])]])
def test_rows_that_the_key_is_not_bound_to_never_become_a_file(
    folder: LocalFolder, changed: list[tuple[list[int], list[int]]]
) -> None:
    """A lost row, another count, one more row, another cell. The files of an earlier attempt stay as they are."""
    spans = Spans(CELLS, 4)
    writer = written_by(folder, spans)
    other = [pa.RecordBatch.from_arrays([cells, counts], names=["cell", "n"]) for cells, counts in changed]
    with pytest.raises(EngineError, match="source changed while it was read"):
        list(writer(spans[1], iter(other), stream()))
    assert folder.names() == set()
    list(writer(spans[1], iter(of(spans[1])), stream()))
    assert len(folder.names()) == 2


def test_nothing_is_written_without_noise(folder: LocalFolder) -> None:
    spans = Spans(CELLS, CELLS)
    with pytest.raises(EngineError, match="tables are never written without noise"):
        list(written_by(folder, spans)(spans[0], rows(), None))


def test_a_seal_belongs_to_its_stream_and_data() -> None:
    other = ReleaseKey.simulation("writing").stream("r", "u", b"", "p")
    assert len({stream().seal(b"a"), stream().seal(b"b"), other.seal(b"a")}) == 3
    assert stream().seal(b"a") == stream().seal(b"a")


def test_a_part_that_no_worker_wrote_is_missed(folder: LocalFolder) -> None:
    """An engine that loses a receipt, or a span, must not end in a release with a hole."""

    class Forgetful:
        def gather(
            self, table: object, spans: Spans, writer: WriteKernel, secret: Secret, progress: object
        ) -> Iterator[pa.RecordBatch]:
            for span in list(spans)[:-1]:
                yield from writer(span, iter(of(span)), Stream.from_secret(secret.expose()))

    kernel, spans = method(), Spans(CELLS, 4)
    marks = tuple(_mark(span) for span in spans)
    key = ReleaseKey.simulation("writing")
    binding = key.mac([b""])
    fields = {"release": "r", "asset": "a", "binding": binding.hex(), "spec": "00", "code": "0", "key": "k"}
    reserve = Reserve(
        **fields,
        guarantee=kernel.guarantee(),
        output="o",
        names=(),
        who="w",
        time=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    )
    with pytest.raises(EngineError, match="some parts were not written"):
        write_parts(
            Forgetful(), FingerprintedTable(None, spans, marks), kernel, Reservation(reserve, key, binding),  # type: ignore[arg-type]
            name="t", purpose="p", guarantee=kernel.guarantee(), place=folder,
        )  # fmt: skip
