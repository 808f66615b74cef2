"""Models of the API's requests and responses, from which its OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1, max_length=1_000)]


class _Camel(BaseModel):
    """Names in camel case, as in PxWeb."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Link(_Camel):
    """A link relative to the server, so that it is valid behind any proxy."""

    rel: str
    hreflang: str = "en"
    href: str


class TableResponse(_Camel):
    """A summary of a table."""

    type: Literal["Table"] = "Table"
    language: str = "en"
    id: str
    label: str
    description: str = Field(description="The title, and the first sentence of the notes.")
    updated: str
    source: str = Field(description="The release that published it.")
    category: Literal["public"] = "public"
    variable_names: list[str]
    discontinued: bool = False
    simulation: bool = Field(
        description="Whether noise was drawn with a fixed test key: such numbers are unprotected and must not be used."
    )
    links: list[Link]
    extension: dict[str, Any] = Field(description="The method, the differential privacy guarantee and its caveats.")


class Page(_Camel):
    page_number: int
    page_size: int
    total_elements: int
    total_pages: int


class TablesResponse(_Camel):
    """A page of the catalogue."""

    language: str = "en"
    tables: list[TableResponse]
    page: Page
    links: list[Link]


class Value(_Camel):
    code: str
    label: str
    value_map: list[str] = Field(description="The finer codes that this code groups.")


class CodeListResponse(_Camel):
    """A coarser variable: its codes, and the finer codes that each groups."""

    id: str
    label: str
    language: str = "en"
    type: Literal["Aggregation"] = "Aggregation"
    elimination: bool
    values: list[Value]
    links: list[Link]


class Language(_Camel):
    id: str = "en"
    label: str = "English"


class Feature(_Camel):
    id: str
    params: list[dict[str, str]] = []


class ConfigResponse(_Camel):
    """Limits and formats of the server."""

    api_version: str
    app_version: str
    languages: list[Language]
    default_language: str = "en"
    max_data_cells: int
    max_calls_per_time_window: int
    time_window: int = Field(description="Length of the time window in seconds.")
    default_data_format: str
    data_formats: list[str]
    features: list[Feature]


class CodeListInformation(_Camel):
    id: str
    label: str
    type: Literal["Aggregation"] = "Aggregation"
    links: list[Link]


class DatasetCategory(_Camel):
    index: dict[str, int]
    label: dict[str, str]
    unit: dict[str, dict[str, Any]] | None = None


class DimensionExtension(_Camel):
    model_config = ConfigDict(extra="allow")
    elimination: bool | None = Field(
        None, description="Whether the variable may be left out; numbers are then summed over it."
    )
    codelists: list[CodeListInformation] | None = None


class DatasetDimension(_Camel):
    label: str
    category: DatasetCategory
    extension: DimensionExtension | None = None


class Role(_Camel):
    metric: list[str]


class Dataset(_Camel):
    """JSON-stat 2.0."""

    version: Literal["2.0"] = "2.0"
    class_: Literal["dataset"] = Field("dataset", alias="class")
    label: str
    source: str
    updated: str
    note: list[str]
    role: Role
    id: list[str]
    size: list[int]
    dimension: dict[str, DatasetDimension]
    link: dict[str, list[dict[str, Any]]] | None = None
    extension: dict[str, Any]


class DataResponse(Dataset):
    """Numbers, row-major; `status` marks those that are unreliable, suppressed or absent, by position."""

    value: list[float | None]
    status: dict[str, str]


class VariableSelection(_Camel):
    """A variable to show, with these codes or with all (`*`)."""

    model_config = ConfigDict(extra="forbid")
    variable_code: Text
    value_codes: list[Text] = []
    codelist: Text | None = None
    code_list: Text | None = Field(None, description="The same as `codelist`, in the spelling of some clients.")
    output_values: Literal["aggregated", "single"] | None = Field(
        None,
        description="`aggregated` shows sums for the codes of a code list, `single` the finer codes in them.",
    )


class VariableLimit(_Camel):
    """All numbers are limited to these codes of a variable."""

    model_config = ConfigDict(extra="forbid")
    variable_code: Text
    value_codes: list[Text]


class Placement(_Camel):
    """PxWeb's page layout. Accepted and ignored: an answer has the order of the query."""

    model_config = ConfigDict(extra="forbid")
    heading: list[Text] = []
    stub: list[Text] = []


class VariablesSelection(_Camel):
    """A query."""

    model_config = ConfigDict(extra="forbid")
    selection: list[VariableSelection] = []
    where: list[VariableLimit] = []
    placement: Placement | None = None


class Health(_Camel):
    status: Literal["ok"] = "ok"
    tables: int
    requests: dict[str, int] = Field(
        description="Numbers of responses by class of HTTP status since this process started."
    )
