"""What the API answers, so that its OpenAPI document says it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1, max_length=1_000)]


class _Camel(BaseModel):
    """In camel case, as PxWeb writes names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Link(_Camel):
    """Relative to the server, so that it holds behind any proxy."""

    rel: str
    hreflang: str = "en"
    href: str


class TableResponse(_Camel):
    """A table, briefly."""

    type: Literal["Table"] = "Table"
    language: str = "en"
    id: str
    label: str
    description: str = Field(description="The title, and the first sentence of what its notes say.")
    updated: str
    source: str = Field(description="The release that published it.")
    category: Literal["public"] = "public"
    variable_names: list[str]
    discontinued: bool = False
    simulation: bool = Field(description="Drawn with a fixed test key: it protects nobody and means nothing.")
    links: list[Link]
    extension: dict[str, Any] = Field(description="How it is protected: its method, guarantee and caveats.")


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
    value_map: list[str] = Field(description="The finer codes that it groups.")


class CodeListResponse(_Camel):
    """A coarser variable: its codes, and the finer ones in each."""

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
    """What the server allows."""

    api_version: str
    app_version: str
    languages: list[Language]
    default_language: str = "en"
    max_data_cells: int
    max_calls_per_time_window: int
    time_window: int = Field(description="Seconds.")
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
    elimination: bool | None = Field(None, description="Whether it may be left out, and is then added up.")
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
    """Numbers, row-major; `status` marks those that are not reliable, withheld or absent, by position."""

    value: list[float | None]
    status: dict[str, str]


class VariableSelection(_Camel):
    """A variable, with these codes or with all (`*`)."""

    model_config = ConfigDict(extra="forbid")
    variable_code: Text
    value_codes: list[Text] = []
    codelist: Text | None = None
    code_list: Text | None = Field(None, description="The same, as some clients write it.")
    output_values: Literal["aggregated", "single"] | None = Field(
        None, description="Whether a code list shows its own codes, or the finer ones in them."
    )


class VariableLimit(_Camel):
    """Everything is limited to these codes of a variable."""

    model_config = ConfigDict(extra="forbid")
    variable_code: Text
    value_codes: list[Text]


class Placement(_Camel):
    """PxWeb's layout of pages. It changes nothing: an answer has the order that it was asked for."""

    model_config = ConfigDict(extra="forbid")
    heading: list[Text] = []
    stub: list[Text] = []


class VariablesSelection(_Camel):
    """A question."""

    model_config = ConfigDict(extra="forbid")
    selection: list[VariableSelection] = []
    where: list[VariableLimit] = []
    placement: Placement | None = None


class Health(_Camel):
    status: Literal["ok"] = "ok"
    tables: int
    requests: dict[str, int] = Field(description="Counts by class of status since the start of this process.")
