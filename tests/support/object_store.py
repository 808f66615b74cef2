"""An object store for tests: a server on loopback that speaks S3."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow.fs import FileSelector, FileSystem, FileType

BUCKET = "protected"


class S3Server:
    """A server that speaks S3, with one bucket."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.system, _ = FileSystem.from_uri(self.uri("").replace("&region", "&allow_bucket_creation=true&region"))
        self.system.create_dir(BUCKET)

    def uri(self, prefix: str, bucket: str = BUCKET, port: int | None = None) -> str:
        where = f"endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"
        return f"s3://{bucket}/{prefix}?{where}"

    def objects(self, prefix: str) -> dict[str, bytes]:
        """All objects below a prefix, including folder markers."""
        actual = self.system.get_file_info(FileSelector(f"{BUCKET}/{prefix}", allow_not_found=True, recursive=True))
        start = len(f"{BUCKET}/{prefix}/")
        return {
            item.path[start:]: self.system.open_input_stream(item.path).read() if item.type == FileType.File else b""
            for item in actual
        }

    def files(self, prefix: str) -> dict[str, bytes]:
        return {name: content for name, content in self.objects(prefix).items() if content}

    def put(self, name: str, content: bytes) -> None:
        with self.system.open_output_stream(f"{BUCKET}/{name}") as file:
            file.write(content)


@contextmanager
def s3_server() -> Iterator[int]:
    """Run a server; yields its port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    actual = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    actual.start()
    yield actual.get_host_and_port()[1]
    actual.stop()


def set_s3_credentials(patch: pytest.MonkeyPatch) -> None:
    """Set credentials that the server accepts."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "test")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
