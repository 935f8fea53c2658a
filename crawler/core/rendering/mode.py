"""The setting that says when to render pages in a browser."""

from typing import Literal

RenderMode = Literal["auto", "always", "never"]
