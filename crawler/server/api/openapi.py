"""The OpenAPI document of the API, made of its endpoints and of the classes of what they give."""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from crawler import __version__
from crawler.server.api.endpoints import ENDPOINTS, Endpoint

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
PLAIN: Mapping[object, Mapping[str, object]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "number", "description": "seconds"},
    type(None): {"type": "null"},
}
REFUSALS = {
    "400": "What was asked for cannot be used; a cursor beyond the end of the feed, too: it is of another database.",
    "401": "No token is shown, or none that is good.",
    "404": "There is no such thing.",
    "410": "Changes after that cursor are not kept any more: take all pages anew.",
    "429": "Too many requests; Retry-After says when.",
    "503": "The database is silent, too much is asked at once, or the index to search is being made.",
}


def document(server: str) -> dict[str, object]:
    """OpenAPI 3.1. server: its address."""
    schemas: dict[str, object] = {"Problem": PROBLEM}
    paths = {each.path: {"get": _operation(each, schemas)} for each in ENDPOINTS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl",
            "version": __version__,
            "description": "What recrawl keeps, read-only, by the names of its commands.",
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "recrawl tokens add NAME"},
            },
            "schemas": schemas,
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, object]) -> dict[str, object]:
    item = schema_of(endpoint.item, schemas)
    answer: Mapping[str, object] = item
    if endpoint.is_list:
        answer = {
            "type": "object",
            "required": ["items", "next"],
            "properties": {
                "items": {"type": "array", "items": item},
                "next": {"type": ["string", "null"], "description": "the cursor to go on from; null at the end"},
            },
        }
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [each.described for each in endpoint.parameters],
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": answer}}},
            **{status: {"description": why, "content": problem} for status, why in REFUSALS.items()},
        },
    }


def schema_of(kind: Any, schemas: dict[str, object]) -> Mapping[str, object]:
    """The schema of values of a type, as they are in JSON; those of dataclasses are put into `schemas`."""
    kind = getattr(kind, "__supertype__", kind)  # of a NewType
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return {"anyOf": [schema_of(each, schemas) for each in inner]}
    if origin in {tuple, list, frozenset, set, Sequence}:
        return {"type": "array", "items": schema_of(inner[0], schemas)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], schemas)}
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [each.value for each in kind]}
    name = str(kind.__name__)
    if name not in schemas:
        hints = get_type_hints(kind)
        shown = [each.name for each in dataclasses.fields(kind) if each.repr]
        schemas[name] = {}  # while it is made
        schemas[name] = {
            "type": "object",
            "required": shown,
            "properties": {each: schema_of(hints[each], schemas) for each in shown},
        }
    return {"$ref": f"#/components/schemas/{name}"}
