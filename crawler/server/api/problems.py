"""What is wrong with a request, as a problem document (RFC 9457)."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A request that is not answered. headers: of the refusal."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    @property
    def response(self) -> Response:
        document = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        headers = {"cache-control": "no-store", **self.headers}
        return Response(json.dumps(document), status_code=self.status, media_type=MEDIA_TYPE, headers=headers)
