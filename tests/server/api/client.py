"""A client of the HTTP API that knows nothing but its OpenAPI document, like one that a generator writes.

Each call is built from the document, and its body and its response are validated with the schemas in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from jsonschema import Draft202012Validator

from tests.server.conftest import Seen, Visitor


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the document."""

    method: str
    path: str
    scope: str
    described: Mapping[str, Any]

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.described

    @property
    def parameters(self) -> dict[str, Mapping[str, Any]]:
        return {each["name"]: each for each in self.described.get("parameters", ())}


@dataclass
class Client:
    """A client with a token."""

    visitor: Visitor
    token: str = ""
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # the last successful one of each operation

    @cached_property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.visitor.get("/api/v1/openapi.json").text)
        return document

    @cached_property
    def operations(self) -> dict[str, Operation]:
        return {
            described["operationId"]: Operation(method.upper(), path, described["security"][0]["token"][0], described)
            for path, methods in self.document["paths"].items()
            for method, described in methods.items()
        }

    def send(
        self, operation: str, body: object = None, headers: Mapping[str, str] = {}, /, **parameters: object
    ) -> Seen:
        """Send a request for an operation as the document describes it."""
        about = self.operations[operation]
        assert parameters.keys() <= about.parameters.keys(), "the document has no such parameter"
        path, query = about.path, dict[str, str]()
        for name, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if about.parameters[name]["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(text, safe=""))
            else:
                query[name] = text
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if about.has_body:
            given["Content-Type"] = "application/json"
        content = json.dumps(body).encode() if about.has_body else b""
        address = f"{path}?{urlencode(query)}" if query else path
        return self.visitor.ask(about.method, address, content, {**given, **headers})

    def call(self, operation: str, body: object = None, /, **parameters: object) -> Any:
        """Call an operation that succeeds, and return its document."""
        about = self.operations[operation]
        if about.has_body:
            self.validate(about.described["requestBody"]["content"]["application/json"]["schema"], body)
        seen = self.send(operation, body, **parameters)
        expected = next(iter(about.described["responses"]))
        assert str(seen.status) == expected, seen.text
        call: dict[str, Any] = {"parameters": parameters} if parameters else {}
        self.calls[operation] = call | ({"body": body} if about.has_body else {})
        if not seen.text:
            assert "content" not in about.described["responses"][expected]
            return None
        found = json.loads(seen.text)
        self.validate(about.described["responses"][expected]["content"]["application/json"]["schema"], found)
        self.calls[operation]["response"] = found
        return found

    def validate(self, schema: Mapping[str, Any], value: object) -> None:
        """Raise ValidationError if a value does not fit a schema of the document."""
        Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)
