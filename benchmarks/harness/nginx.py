"""nginx over one or more sites on loopback: a compiled server, so that the crawler is what is measured.

The machine's own nginx where there is one, else Debian's package, unpacked into the checkout's cache. It runs as
whoever runs the benchmark, in a temporary folder with a configuration of its own, on free ports, and ends with the
block, or with this process. Validators, keep-alive and all else are as nginx has them by default.
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

PATIENCE_S = 30.0  # for its start and for its end; both take milliseconds
POLL_S = 0.01
OUR_OWN = "/-/is-it-logged"  # a path that no site has, and no log shows
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
    """There is no nginx, or it does not start; the message says why."""


@dataclass(frozen=True, slots=True)
class Site:
    """What one port serves, in nginx's own words. http: directives outside of the server's block."""

    server: str
    http: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request and its answer; began and ended in seconds of the machine's monotonic clock, by milliseconds."""

    port: int
    path: str
    status: int
    sent_bytes: int  # with the head
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
        """The roots of its sites, in their order."""
        return [f"http://127.0.0.1:{port}/" for port in self._ports]

    @property
    def url(self) -> str:
        """The root of its only site."""
        (url,) = self.urls
        return url

    def requests(self) -> Iterator[Request]:
        """Every request since the start or the last clearing, in the order in which they ended."""
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
        """Forget the requests so far; nginx appends, so a shortened log goes on from its start."""
        self._await_log()
        os.truncate(self._log, 0)

    def _await_log(self) -> None:
        """A request is logged after its answer is sent; the only worker answers the next one after that."""
        connection = HTTPConnection("127.0.0.1", self._ports[0], timeout=PATIENCE_S)
        connection.request("GET", OUR_OWN)
        connection.getresponse().read()
        connection.close()


@contextmanager
def serving(*sites: Site) -> Iterator[Nginx]:
    """The sites on loopback until the block ends. Raises NginxError."""
    program = find_nginx()
    with tempfile.TemporaryDirectory(prefix="nginx-") as place:
        folder = Path(place)
        ports = free_ports(place, len(sites))
        configuration = folder / "nginx.conf"
        configuration.write_text(configured(folder, dict(zip(ports, sites, strict=True))), encoding="utf-8")
        command = [*on_a_leash(), program, "-e", str(folder / "error.log"), "-p", place, "-c", str(configuration)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                await_start(process, folder, ports)
                yield Nginx(folder, ports)
            finally:
                process.terminate()
                process.wait(PATIENCE_S)


def folder_site(root: Path) -> Site:
    """The files below a folder."""
    return Site(server=f'root "{root.resolve()}";')


def find_nginx() -> str:
    """The program, fetched where the machine has none. Raises NginxError."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
    if found := shutil.which("nginx", path=places):
        return found
    try:
        return str(unpacked("nginx") / "usr/sbin/nginx")
    except CorpusError as reason:
        raise NginxError(f"there is no nginx, and Debian's cannot be had: {reason}") from reason


def configured(folder: Path, sites: dict[int, Site]) -> str:
    servers = "\n".join(
        f"{site.http}\nserver {{ listen 127.0.0.1:{port}; {site.server} }}" for port, site in sites.items()
    )
    return CONFIGURATION.format(folder=folder, user=own_user(), fields=FIELDS, sites=servers)


def own_user() -> str:
    """As root, nginx would give its worker to an account that may not read what is ours."""
    if os.geteuid() != 0:
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"


def on_a_leash() -> list[str]:
    """What lets the system end a process with the one that has started it; nothing where util-linux is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def free_ports(key: str, many: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    found: list[int] = []
    for _ in range(many):
        found.append(find_free_port(key, excluded=tuple(found)))
    return found


def await_start(process: subprocess.Popen[bytes], folder: Path, ports: Sequence[int]) -> None:
    """Until every port answers. Raises NginxError."""
    deadline = time.monotonic() + PATIENCE_S
    for port in ports:
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                log = folder / "error.log"
                said = log.read_text(encoding="utf-8").strip() if log.exists() else ""
                raise NginxError(f"nginx did not start: {said.splitlines()[-1] if said else 'without a word'}")
            time.sleep(POLL_S)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    return True
