"""The contract as JSON Schema 2020-12, made from its types: `contracts/v1/memory-provider.schema.json`.

`python -m memoranda.service.schema` prints the document; `make contract` writes it to its place. The root describes the
document by which an engine instance declares itself; `$defs.context` is the context of every operation, and
`$defs.operations` names the request and the result of each. All else stands under the name of its type.
"""

from __future__ import annotations

import inspect
import json
from types import ModuleType
from typing import Any

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from memoranda.engines import contract as c
from memoranda.engines.contract import Model
from memoranda.service import answers

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODULES: tuple[ModuleType, ...] = (c, answers)
ID = "urn:memoranda:contract:v1:memory-provider"


class ItemNamed(Model):
    """One item by its id; `exact` asks for that very one and not for the head of its chain."""

    item_id: c.ItemId
    exact: bool = False


class ItemChange(c.UpdateRequest):
    """What an item says from now on, if its head still has the etag `if_match`."""

    item_id: c.ItemId
    if_match: str | None = None


class ItemEnd(Model):
    """One item whose chain is to end, if its head still has the etag `if_match`."""

    item_id: c.ItemId
    if_match: str | None = None


class ListRequest(Model):
    """One page of what a context may read, newest first, behind the place `after`."""

    scope: c.Scope | None = None
    limit: int = Field(50, ge=1, le=200)
    after: tuple[str, str] | None = None


class DatasetNamed(Model):
    """One dataset by its id."""

    dataset_id: c.ItemId


class Nothing(Model):
    """An operation that needs no more than its context."""


class DatasetStates(Model):
    """The datasets that an operation touched, as they stand after it."""

    items: tuple[c.Dataset, ...]


# operation -> (request, result); each has the context beside it.
OPERATIONS: dict[c.MemoryCapability | c.KnowledgeCapability, tuple[type[BaseModel], type[BaseModel]]] = {
    "remember": (c.RememberRequest, c.Item),
    "recall": (c.RecallRequest, c.Found),
    "search": (c.RecallRequest, c.Found),
    "update": (ItemChange, c.Item),
    "forget": (ItemEnd, c.Gone),
    "list": (ListRequest, c.Listed),
    "get": (ItemNamed, c.Item),
    "purge": (c.PurgeRequest, c.Purged),
    "get_health": (Nothing, c.Health),
    "get_capabilities": (Nothing, c.CapabilityDocument),
    "ingest_knowledge": (c.IngestRequest, c.Dataset),
    "build_graph": (c.GraphRequest, DatasetStates),
    "search_graph": (c.GraphSearchRequest, c.GraphFound),
    "get_relations": (DatasetNamed, c.Relations),
    "delete_dataset": (DatasetNamed, c.Purged),
}


def models_of(module: ModuleType) -> list[type[BaseModel]]:
    """The types of the contract that a module defines, by name."""
    found = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, BaseModel)]
    return sorted((model for model in found if model.__module__ == module.__name__), key=lambda model: model.__name__)


def definitions(models: list[type[BaseModel]], template: str = "#/$defs/{model}") -> dict[str, Any]:
    """Name -> schema, for these types and all that they are made of."""
    _, document = models_json_schema([(model, "validation") for model in models], ref_template=template)
    found: dict[str, Any] = document["$defs"]
    return found


def schema_document() -> dict[str, Any]:
    """The whole document."""
    models = {model.__name__: model for module in MODULES for model in models_of(module)}
    models |= {model.__name__: model for pair in OPERATIONS.values() for model in pair}
    models.pop("Model")
    found = definitions(list(models.values()))
    found["context"] = found.pop("OperationContext")
    operations = {
        name: {
            "type": "object",
            "properties": {
                "context": {"$ref": "#/$defs/context"},
                "request": {"$ref": f"#/$defs/{request.__name__}"},
                "result": {"$ref": f"#/$defs/{result.__name__}"},
                "error": {"$ref": "#/$defs/Problem"},
            },
        }
        for name, (request, result) in OPERATIONS.items()
    }
    return {
        "$schema": DIALECT,
        "$id": ID,
        "title": "Navin memory provider",
        "description": "What every engine of agents' memory keeps to: how an instance declares itself, the context and "
        "the operations, each with its request and its result, and the errors.",
        "$ref": "#/$defs/CapabilityDocument",
        "$defs": {
            **dict(sorted(found.items())),
            "operations": {
                "title": "Operations",
                "description": "Each operation's context, request, result and error.",
                "type": "object",
                "properties": operations,
            },
        },
    }


def text() -> str:
    """The file as it is checked in."""
    return json.dumps(schema_document(), ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(text())
