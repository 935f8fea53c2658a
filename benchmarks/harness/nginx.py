"""Serve sites on loopback with nginx: a compiled server, to measure the crawler and not the server.

Uses the nginx of the machine or else Debian's package, unpacked into the cache of the checkout. nginx runs as the
current user on free ports, in a temporary folder with its own configuration, and stops when the block or this process
ends.
Validators, keep-alive and everything else are defaults of nginx.
"""

import grp
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from crawler.runtime.machine import find_free_port
from tests.engine.corpus import CorpusError, unpacked

PATIENCE_S = 30.0  # time limit of its start and stop; both take milliseconds
POLL_S = 0.01
OUR_OWN = "/-/is-it-logged"  # a path that no site has and that is not logged
FIELDS = "$server_port\t$msec\t$request_time\t$status\t$bytes_sent\t$http_if_none_match$http_if_modified_since\t"
CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html htm; text/css css; text/plain txt; application/javascript js; application/xml xml;
             image/png png; image/svg+xml svg; }}
    default_type application/octet-stream;
    log_format timed '{fields}$request_uri';
    access_log {folder}/access.log timed;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{sites}
}}
"""


class NginxError(Exception):
    """nginx is missing or does not start; the message says why."""


@dataclass(frozen=True, slots=True)
class Site:
    """The nginx directives of one port. http: directives outside the server block."""

    server: str
    http: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its response. began, ended: seconds of the monotonic clock, to the millisecond."""

    port: int
    path: str
    status: int
    sent_bytes: int  # including the head
    began: float
    ended: float
    is_conditional: bool


class Nginx:
    """A running server."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self._log = folder / "access.log"
        self._ports = ports

    @property
    def urls(self) -> list[str]:
        """Return the root URLs of its sites, in order."""
        return [f"http://127.0.0.1:{port}/" for port in self._ports]

    @property
    def url(self) -> str:
        """Return the root URL of its only site."""
        (url,) = self.urls
        return url

    def requests(self) -> Iterator[Request]:
        """Yield all requests since the start or the last clear(), in the order of their ends."""
        self._await_log()
        since = time.time() - time.monotonic()
        with self._log.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                port, at, took, status, sent, conditions, path = line.rstrip("\n").split("\t", 6)
                if path == OUR_OWN:
                    continue
                ended = float(at) - since
                is_conditional = conditions.replace("-", "") != ""
                yield Request(int(port), path, int(status), int(sent), ended - float(took), ended, is_conditional)

    def clear(self) -> None:
        """Discard the requests so far. nginx appends, which lets the log continue after truncation."""
        self._await_log()
        os.truncate(self._log, 0)

    def _await_log(self) -> None:
        """Wait for the log. The single worker logs a request before it handles the next one."""
        connection = HTTPConnection("127.0.0.1", self._ports[0], timeout=PATIENCE_S)
        connection.request("GET", OUR_OWN)
        connection.getresponse().read()
        connection.close()


@contextmanager
def serving(*sites: Site) -> Iterator[Nginx]:
    """Serve the sites on loopback until the block ends. Raise NginxError on errors."""
    program = find_nginx()
    with tempfile.TemporaryDirectory(prefix="nginx-") as place:
        folder = Path(place)
        ports = free_ports(place, len(sites))
        configuration = folder / "nginx.conf"
        configuration.write_text(configured(folder, dict(zip(ports, sites, strict=True))), encoding="utf-8")
        command = [*stop_with_parent(), program, "-e", str(folder / "error.log"), "-p", place, "-c", str(configuration)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                await_start(process, folder, ports)
                yield Nginx(folder, ports)
            finally:
                process.terminate()
                process.wait(PATIENCE_S)


def folder_site(root: Path) -> Site:
    """Return a site with the files of a folder."""
    return Site(server=f'root "{root.resolve()}";')


def find_nginx() -> str:
    """Return the path of nginx; download it if the machine has none. Raise NginxError on errors."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
    if found := shutil.which("nginx", path=places):
        return found
    try:
        return str(unpacked("nginx") / "usr/sbin/nginx")
    except CorpusError as reason:
        raise NginxError(f"nginx is not installed, and Debian's package cannot be downloaded: {reason}") from reason


def configured(folder: Path, sites: dict[int, Site]) -> str:
    servers = "\n".join(
        f"{site.http}\nserver {{ listen 127.0.0.1:{port}; {site.server} }}" for port, site in sites.items()
    )
    return CONFIGURATION.format(folder=folder, user=own_user(), fields=FIELDS, sites=servers)


def own_user() -> str:
    """Return the user directive. Without it, a root nginx runs its worker as an account that may not read our files."""
    if os.geteuid() != 0:
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"


def stop_with_parent() -> list[str]:
    """Return a command prefix that stops a process with its parent; empty if util-linux is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def free_ports(key: str, many: int) -> list[int]:
    """Return unused ports, all different."""
    found: list[int] = []
    for _ in range(many):
        found.append(find_free_port(key, excluded=tuple(found)))
    return found


def await_start(process: subprocess.Popen[bytes], folder: Path, ports: Sequence[int]) -> None:
    """Wait until every port accepts connections. Raise NginxError on errors."""
    deadline = time.monotonic() + PATIENCE_S
    for port in ports:
        while not is_listening(port):
            if process.poll() is not None or time.monotonic() > deadline:
                log = folder / "error.log"
                stderr = log.read_text(encoding="utf-8").strip() if log.exists() else ""
                raise NginxError(f"nginx did not start: {stderr.splitlines()[-1] if stderr else 'no error message'}")
            time.sleep(POLL_S)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    return True
