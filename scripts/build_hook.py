"""The build hook of hatchling: put the compiled page reader into the wheel where there is a C compiler."""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledReaderHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compile the reader, and tag the wheel for this platform. Without a compiler, the wheel is pure Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # `make setup` compiles the reader in the checkout
            return
        script = runpy.run_path(str(Path(self.root, "scripts", "compile_reader.py")))
        if problem := script["compile_reader"]():
            self.app.display_warning(problem)
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        library = script["get_library"]()
        build_data["force_include"][str(library)] = library.relative_to(self.root).as_posix()
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
