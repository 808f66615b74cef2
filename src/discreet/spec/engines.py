"""Where a release runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Tag, model_validator

from discreet.spec.strict import Strict

_SECRETS = re.compile(r"secret|password|token|credential|(access|account|private)\.key", re.IGNORECASE)


def _master(text: str) -> str:
    if not re.fullmatch(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|yarn|k8s://.+", text):
        raise ValueError("is no Spark master: write local[4], spark://HOST:7077, yarn or k8s://…")
    return text


def _setting(key: str) -> str:
    if not key.startswith("spark."):
        raise ValueError(f"{key!r} is none of Spark's settings: they begin with 'spark.'")
    return key


class SparkEngineSpec(Strict):
    """A Spark master: spark://host:7077, yarn, k8s://…, local[4]. `config` takes Spark's own settings, no secrets."""

    spark: Annotated[str, AfterValidator(_master)]
    config: dict[Annotated[str, AfterValidator(_setting)], str] = {}

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:
        """Before anything else: other refusals quote what they found."""
        config = data.get("config") if isinstance(data, dict) else None
        for key in config if isinstance(config, dict) else ():
            if _SECRETS.search(str(key)):
                raise ValueError(f"config has the secret {key!r}; put it into the spark-defaults.conf of its owner")
        return data


def _engine_kind(data: Any) -> str | None:
    return "Spark" if isinstance(data, dict | SparkEngineSpec) else "DuckDB" if data == "duckdb" else None


EngineSpec = Annotated[
    Annotated[Literal["duckdb"], Tag("DuckDB")] | Annotated[SparkEngineSpec, Tag("Spark")],
    Discriminator(
        _engine_kind,
        custom_error_type="engine",
        custom_error_message="expected 'duckdb', or key 'spark' with a master",
    ),
]
