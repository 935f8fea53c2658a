"""Apprise services have the limits of webhooks, open no files, and send no mentions from crawled text."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from apprise import Apprise, NotifyBase
from apprise.plugins.discord import NotifyDiscord
from apprise.plugins.slack import NotifySlack

from crawler.engine.machine_load import build_child_environment
from crawler.errors import BadInput
from crawler.notify.message_text import neutralize_mentions
from crawler.notify.sender import run_program
from crawler.notify.target import check_target
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answered, answering, register
from tests.notify.receivers import deliver_at, first_crawl, recrawl_at, subscribe
from tests.ports import next_port

METADATA = "169.254.169.254"
CALLS = (
    "@everyone",
    "@here",
    "@channel",
    "@all",
    "@room",
    "@somebody",
    "<!channel>",
    "!here>",
    "<@U123>",
    "<users/all>",
)


@dataclass(slots=True)
class Sentinel(asyncio.DatagramProtocol):
    """A server for TCP and UDP on one loopback port that redirects and logs all requests."""

    location: str = ""
    log: list[bytes] = field(default_factory=list)
    port: int = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.log.append(data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.log.append(b"")
        with_head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in with_head.decode().lower().split("\r\n") if line.startswith("content-length:")]
        self.log[-1] = with_head + await reader.readexactly(int(length[0].partition(":")[2]) if length else 0)
        status = f"307 X\r\nLocation: {self.location}" if self.location else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def sentinel(location: str = "") -> AsyncIterator[Sentinel]:
    found = Sentinel(location, port=next_port())
    server = await asyncio.start_server(found.serve, "127.0.0.1", found.port)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: found, local_addr=("127.0.0.1", found.port)
    )
    try:
        yield found
    finally:
        server.close()
        transport.close()


async def send(url: str, *, text: str = "told", allow_private: bool = False) -> str:
    given = {"url": url, "subject": "a subject", "text": text, "allow_private": allow_private}
    words = [sys.executable, "-m", "crawler.notify.services"]
    deadline = timedelta(seconds=60)
    return await run_program(
        words, json.dumps(given).encode(), deadline=deadline, environment=build_child_environment({})
    )


INSIDE = [
    "json://{host}:{port}/hook",
    "xml://{host}:{port}/hook",
    "form://{host}:{port}/hook",
    "mailto://{host}:{port}?from=a@example.com&to=b@example.com",
    "mailto://example.com?smtp={host}&from=a@example.com&to=b@example.com",
    "rsyslog://{host}:{port}",
    "irc://{host}:{port}/channel",
    "gotify://{host}:{port}/token-of-ours",
]


# Those that take another way into the library; each starts a process that imports all of it.
WAYS = ("json", "mailto://example.com", "rsyslog", "irc")


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=() if form.startswith(WAYS) else pytest.mark.soak) for form in INSIDE],
    ids=[form.partition("{")[0] for form in INSIDE],
)
async def test_service_cannot_reach_private_addresses(form: str) -> None:
    async with sentinel() as inside:
        # A host name, resolved by the library or by the socket.
        host = "localhost" if form.startswith(("xml", "irc")) else "127.0.0.1"
        ended = await send(form.format(host=host, port=inside.port))

        assert inside.log == []
    assert ended.endswith(("127.0.0.1 is a private address", "::1 is a private address"))


@pytest.mark.soak
async def test_service_on_an_allowed_private_address_gets_messages() -> None:
    async with sentinel() as inside:
        sent = [
            await send(f"{scheme}:{inside.port}", allow_private=True)
            for scheme in ("json://127.0.0.1", "json://localhost", "rsyslog://localhost")
        ]
        metadata = await send(f"json://{METADATA}/latest", allow_private=True)

    assert list(sent) == ["", "", ""]
    assert len(inside.log) == 3
    assert f"{METADATA} is an address that serves no websites" in metadata


@pytest.mark.parametrize("form", ["json://127.0.0.1:{}/hook?redirect=yes", "gotify://127.0.0.1:{}/token-of-ours"])
async def test_redirects_are_not_followed(form: str) -> None:
    async with sentinel() as inside, sentinel(f"http://127.0.0.1:{inside.port}/admin") as receiver:
        ended = await send(form.format(receiver.port), allow_private=True)

    assert len(receiver.log) == 1
    assert inside.log == []
    assert "the address redirects (status 307), and redirects are not followed" in ended


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with sentinel() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        ended = await send("json://10.1.2.3/hook")

    assert proxy.log == []
    assert ended.endswith("10.1.2.3 is a private address")


FILES = [
    "fcm://project/token?keyfile=/etc/passwd",
    "vapid://subscriber@example.com/?keyfile=/etc/passwd",
    "vapid://subscriber@example.com/?subfile=/etc/passwd",
    "mailto://example.com?from=a@example.com&to=b@example.com&pgp=yes&pgpkey=/etc/passwd",
    "discord://1234/token?template=/etc/passwd",
    "discord://1234/token?Template=file:///etc/passwd",
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=/etc/passwd",
]


@pytest.mark.parametrize("url", FILES, ids=range(len(FILES)))
def test_address_that_opens_a_file_is_rejected_in_one_line(url: str) -> None:
    why = "contains a secret" if "subscriber@" in url else r"the option \w+= would open a local file"
    with pytest.raises(BadInput, match=why) as refused:
        check_target(url)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("url", FILES[3:5])
async def test_sender_rejects_address_that_opens_a_file(url: str) -> None:
    assert "would open a local file" in await send(url)


@pytest.mark.parametrize(
    ("target", "is_curable"),
    [
        ("http://127.0.0.1/hook", True),
        ("http://[::1]:8080/hook", True),
        ("http://localhost./hook", True),
        ("https://10.1.2.3/hook", True),
        ("json://192.168.0.1/hook", True),
        ("mailto://localhost?from=a@example.com&to=b@example.com", True),
        ("mailto://example.com?smtp=10.0.0.1&from=a@example.com&to=b@example.com", True),
        (f"http://{METADATA}/latest", False),
        (f"json://{METADATA}/latest", False),
    ],
)
def test_private_address_is_rejected_when_it_is_added(target: str, is_curable: bool) -> None:
    with pytest.raises(BadInput, match="are not allowed, since") as refused:
        check_target(target)

    assert ("add the subscription with --allow-private" in str(refused.value)) is is_curable
    if is_curable:
        assert check_target(target, allow_private=True) == target
    else:
        with pytest.raises(BadInput, match="are not allowed, since"):
            check_target(target, allow_private=True)


@pytest.mark.parametrize("service", ["json://127.0.0.1:{}", "mmost://127.0.0.1:{}/3ccdd113474722377935511fc85d3dd4"])
async def test_crawled_text_sends_no_mentions(db: Database, service: str) -> None:
    said = ["nothing yet"]

    def respond(target: str) -> bytes:
        words = " ".join(said).replace("<", "&lt;")
        body = f"<title>{words}</title><h1>Kettles</h1><p>We say {words} here.</p>"
        return answered(200, body.encode()) if target == "/" else answered(404, b"")

    async with sentinel() as receiver, answering(respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, service.format(receiver.port))
        said[:] = CALLS
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + DAY)

    assert done.failed == {}
    (got,) = receiver.log
    told = got.partition(b"\r\n\r\n")[2].decode().encode().decode("unicode_escape")
    assert "somebody" in told
    assert not [call for call in CALLS if call in told]


@pytest.mark.parametrize("call", [*CALLS, "x!channel>", "a@U123>", "!here|all of you>", "https://evil.test|bank>"])
async def test_apprise_creates_no_mentions_from_crawled_text(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = neutralize_mentions(f"Today it says {call} and no more")
    async with sentinel() as receiver:
        # The code of the services, with a test server instead of Slack and Discord.
        monkeypatch.setattr(NotifySlack, "webhook_url", f"http://127.0.0.1:{receiver.port}")
        monkeypatch.setattr(NotifyDiscord, "notify_url", f"http://127.0.0.1:{receiver.port}")
        for url in ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "discord://1234/token-of-ours"):
            service = Apprise.instantiate(url)
            assert isinstance(service, NotifyBase)
            assert await asyncio.to_thread(service.notify, body=text, title="told")
        bodies = [json.loads(got.partition(b"\r\n\r\n")[2]) for got in receiver.log]

    slack_text = bodies[0]["attachments"][0]["text"]
    # apprise still adds < and >, but no Slack name is between them.
    assert not re.search("<(?!\u2060|[!@]\u2060)", slack_text)
    assert f"says {call}" not in slack_text
    assert "allow_mentions" not in bodies[1]
    assert call not in json.dumps(bodies[1], ensure_ascii=False)
