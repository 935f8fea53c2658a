"""The program of the Prefect server: what `prefect server start` runs, behind a check of who asks.

    python -m crawler.runtime.prefect.program    all of its settings come by the environment, as environment.py makes it

Prefect has no setting for the Host that it answers to. One that listens for other machines has names that nobody here
knows; it lets in who has the auth string, which no page of another site has.
"""

import socket
import sys
from ipaddress import ip_address

import uvicorn
from prefect.server.api.server import create_app
from prefect.settings import get_current_settings

from crawler.runtime.host_check import require_own_address

NEVER_STARTED = 3  # uvicorn's exit code


def main() -> int:
    """Serve until it is told to end. 1: the port is taken."""
    server_settings = get_current_settings().server
    port, auth = server_settings.api.port, server_settings.api.auth_string
    if auth is None:
        raise SystemExit("PREFECT_SERVER_API_AUTH_STRING is not set: recrawl up starts this server")
    # Before anything else, so that of two that want the same port the second ends at once.
    family = socket.AF_INET6 if ":" in server_settings.api.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((server_settings.api.host, port))
            listener.listen()
        except OSError as error:
            raise SystemExit(f"port {port} is not to be had: {error.strerror}") from error
        print(f"Prefect server: starting at http://{server_settings.api.host}:{port}", flush=True)  # noqa: T201  into its log
        app = create_app(final=True)
        is_for_others = not ip_address(server_settings.api.host).is_loopback
        config = uvicorn.Config(
            app if is_for_others else require_own_address(app, port=port, auth=auth.get_secret_value()),
            log_level=server_settings.logging_level.lower(),
            timeout_keep_alive=server_settings.api.keepalive_timeout,
            ws_ping_interval=server_settings.api.websocket_ping_interval,
            ws_ping_timeout=server_settings.api.websocket_ping_timeout,
        )
        server = uvicorn.Server(config)
        server.run(sockets=[listener])
    return 0 if server.started else NEVER_STARTED


if __name__ == "__main__":
    sys.exit(main())
