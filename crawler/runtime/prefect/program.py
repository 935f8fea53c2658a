"""The Prefect server with checks of the Host and Origin headers, instead of `prefect server start`.

    python -m crawler.runtime.prefect.program    all settings come from the environment, see environment.py

Prefect has no setting for allowed hosts. A server for other machines has no such checks, because its host names are
unknown; it is protected by its auth string, which pages of other sites do not have.
"""

import socket
import sys
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from prefect.server.api.server import create_app
from prefect.settings import get_current_settings

from crawler.runtime.host_check import require_own_address, set_login_redirect


def main() -> int:
    """Serve until a signal ends the process. Return the exit code."""
    server_settings = get_current_settings().server
    api = server_settings.api
    port, auth = api.port, api.auth_string
    if auth is None:
        raise SystemExit("PREFECT_SERVER_API_AUTH_STRING is not set: recrawl up starts this server")
    # Listen first, so that the second of two servers on one port ends at once.
    family = socket.AF_INET6 if ":" in api.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((api.host, port))
            listener.listen()
        except OSError as error:
            raise SystemExit(f"cannot listen on port {port}: {error.strerror}") from error
        print(f"Prefect server: starting at http://{api.host}:{port}", flush=True)  # noqa: T201  for the log file
        app, is_for_others = create_app(final=True), not ip_address(api.host).is_loopback
        index = Path(server_settings.ui.static_directory or "", "v1", "index.html")
        if index.exists():
            set_login_redirect(index, is_wanted=not is_for_others)
        config = uvicorn.Config(
            app if is_for_others else require_own_address(app, port=port, auth=auth.get_secret_value()),
            log_level=server_settings.logging_level.lower(),
            timeout_keep_alive=api.keepalive_timeout,
            ws_ping_interval=api.websocket_ping_interval,
            ws_ping_timeout=api.websocket_ping_timeout,
        )
        server = uvicorn.Server(config)
        server.run(sockets=[listener])
    return 0 if server.started else 3  # uvicorn's exit code


if __name__ == "__main__":
    sys.exit(main())
