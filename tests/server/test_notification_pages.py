"""The pages and forms of notifications, without a browser."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from crawler.format.kinds import NEWS
from crawler.server.ui.notification_pages import ACTIONS, FORMS, NAMES, PAGES
from tests.cli.test_notify import FLOUR, Hook, hooking
from tests.commands import Recrawl, Site
from tests.databases import execute
from tests.server.conftest import Visitor
from tests.server.test_hostile import SCRIPT, SQL, TEMPLATE, hostile, safe
from tests.server.test_made_up_parameters import VALUES

POSTS = (*FORMS, *ACTIONS)
DETAILS = "/notifications/subscription?number=1"
KINDS = "\n".join(sorted(NEWS))  # those that the form of a new subscription has selected


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hooking() as found:
        yield found


def test_list_and_details_show_the_state_of_a_subscription(
    crawled: Site, recrawl: Recrawl, visitor: Visitor, hook: Hook, database_url: str
) -> None:
    assert "No subscriptions yet" in visitor.get("/notifications").words
    assert '<option value="no" selected>no</option>' in visitor.get("/notifications/edit").text
    seen = visitor.send(
        "/notifications/save", target=hook.url, domain=crawled.name, allow_private="yes", digest="1h", kind=KINDS
    )
    assert f"Subscription 1 was added: {hook.url} receives changes of {crawled.name}: digest 1h, UTC." in seen.words
    assert "working nothing sent yet" in visitor.get("/notifications").words

    visitor.send(
        "/notifications/save", number="1", target=hook.url, domain=crawled.name, allow_private="yes", kind=KINDS
    )
    hook.status = 503
    crawled.page("/", "/one", "/two", text=f"{FLOUR} Friday.")
    recrawl("refresh", crawled.name)
    recrawl("crawl", crawled.name)
    words = visitor.get("/notifications").words
    assert "failing since now , 1 failure in a row: status 503; next try now" in words
    execute(database_url, "UPDATE subscription SET resume_at = now() + interval '10 minutes 2 seconds'")
    assert "status 503; next try in 10 minutes" in visitor.get(DETAILS).words

    assert "Subscription 1 is paused; 1 change waiting" in visitor.send("/notifications/pause", number="1").words
    assert "paused since now" in visitor.get("/notifications").words
    hook.status = 200
    seen = visitor.send("/notifications/resume", number="1", include_missed="1")
    assert "is resumed: it receives the changes found during the pause" in seen.words
    assert "1 change sent in 1 message" in visitor.send("/notifications/send", number="1").words
    assert "working last sent now" in visitor.get("/notifications").words
    seen = visitor.send("/notifications/remove", number="1")
    assert "Subscription 1 to" in seen.words
    assert recrawl("notify", "list", "--json").json == {"subscriptions": []}


def test_missing_secret_is_named(visitor: Visitor) -> None:
    seen = visitor.send("/notifications/save", target="env:NO_SUCH_TARGET", kind=KINDS)

    assert "NO_SUCH_TARGET" in seen.words
    assert "nothing is sent" in seen.words
    failed = visitor.send("/notifications/test", number="1")
    assert "The test message to env:NO_SUCH_TARGET failed: env:NO_SUCH_TARGET is not available" in failed.words


def test_rejected_form_keeps_what_was_typed_beside_the_reason(crawled: Site, visitor: Visitor) -> None:
    wrong = {
        "domain": ("unknown.test", "Unknown.test is not registered"),
        "page": ("https://unknown.test/", "Unknown.test is not registered"),
        "prefix": ("https://unknown.test/", "Unknown.test is not registered"),
        "pattern": ("docs", "must begin with"),
        "min_magnitude": ("much", "'much' is not a share"),
        "condition": ("never", "Choose a condition"),
        "value": ("5", "A condition needs a text or a number"),
        "selector": (".price", "(--selector) needs one of"),
        "tag": ("none", "There is no tag none"),
        "value_name": ("2nd price", "'2nd price' is not the name of a value"),
        "digest": ("hourly", "'hourly' is not a digest"),
        "quiet_hours": ("22", "not quiet hours"),
        "time_zone": ("Mars/Phobos", "'Mars/Phobos' is not a time zone"),
    }
    for name, (text, reason) in wrong.items():
        seen = visitor.send("/notifications/save", target="env:X", kind="gone", **{name: text})
        assert seen.status == 400, name
        assert reason in seen.words, name
        assert 'name="target" value="env:X"' in seen.text
        assert name == "condition" or f'name="{name}" value="{text}"' in seen.text
        assert 'value="gone" checked' in seen.text
        assert seen.text.count(" checked") == 1
    assert set(wrong) | {"target", "secret", "allow_private"} == set(NAMES)
    assert "No subscriptions yet" in visitor.get("/notifications").words


@pytest.mark.parametrize(
    "form",
    [
        {"target": "mailto://me:hunter2@mail.test?to=a@b.test"},
        {"target": "hunter2"},
        {"target": "https://x.test/", "secret": "hunter2"},
        {"target": "https://x.test/", "secret": "hunter2", "digest": "hourly"},
        {"target": "mailto://me:hunter2@mail.test?to=a@b.test", "digest": "hourly", "domain": "unknown.test"},
    ],
    ids=["password", "token", "key", "key-and-another-error", "password-and-other-errors"],
)
def test_secret_is_not_shown_again(visitor: Visitor, form: dict[str, str]) -> None:
    seen = visitor.send("/notifications/save", **form)

    assert seen.status == 400
    assert "hunter2" not in seen.text


def test_kinds_are_those_that_the_form_shows(recrawl: Recrawl, visitor: Visitor) -> None:
    form = {"target": "env:X", "condition": "appears", "value": "mill"}

    seen = visitor.send("/notifications/save", **form)
    assert (seen.status, "choose at least one kind" in seen.words.lower()) == (400, True)
    assert visitor.send("/notifications/save", **form, kind=KINDS).status == 200

    def read_kinds() -> list[str]:
        kinds: list[str] = recrawl("notify", "list", "--json").json["subscriptions"][0]["kinds"]
        return kinds

    assert "added" in read_kinds(), "the default of a new subscription with a condition"
    for kinds in (KINDS, "added\nchanged"):
        visitor.send("/notifications/save", **form, number="1", kind=kinds)
        assert read_kinds() == kinds.splitlines()


def test_program_cannot_be_added_or_changed_over_the_network(recrawl: Recrawl, visitor: Visitor) -> None:
    assert recrawl("notify", "add", "command:/bin/true").code == 0
    for number, target in (("", "command:/bin/false"), ("1", "command:/bin/false")):
        seen = visitor.send("/notifications/save", number=number, target=target, kind=KINDS)
        assert (seen.status, "program can only be added on its machine" in seen.words) == (400, True)

    changed = {"number": "1", "target": "command:/bin/true", "digest": "1h", "kind": KINDS}
    assert visitor.send("/notifications/save", **changed).status == 200
    (one,) = recrawl("notify", "list", "--json").json["subscriptions"]
    assert (one["target"], one["digest"], one["not_run_here"]) == ("command:/bin/true", "1h", None)


def test_dead_letters_of_one_subscription_are_sent_again_or_deleted(
    crawled: Site, recrawl: Recrawl, visitor: Visitor, hook: Hook, database_url: str
) -> None:
    for path in ("one", "two"):
        recrawl("notify", "add", hook.url, "--page", f"{crawled.url}{path}", "--allow-private")
    hook.status = 400
    crawled.page("/one", "/two", text=f"{FLOUR} Friday.")
    crawled.page("/two", "/", text=f"{FLOUR} Sunday.")
    recrawl("refresh", crawled.name)
    recrawl("crawl", crawled.name)
    execute(database_url, "UPDATE message SET state = 'dead'")
    assert [len(recrawl("notify", "dead", n, "--json").json["dead_letters"]) for n in "12"] == [1, 1]
    (letter,) = recrawl("notify", "dead", "2", "--json").json["dead_letters"]
    assert "status 400" in visitor.get(DETAILS).words
    hook.status = 200

    foreign = visitor.send("/notifications/redeliver", number="1", letter=str(letter["number"]))
    assert "this is no dead letter any more" in foreign.words
    assert "1 change sent in 1 message" in visitor.send("/notifications/redeliver", number="1").words
    assert [len(recrawl("notify", "dead", n, "--json").json["dead_letters"]) for n in "12"] == [0, 1]
    assert "1 dead letter deleted" in visitor.send("/notifications/discard", number="2").words
    assert recrawl("notify", "dead").out == "There are no dead letters\n"


def test_hostile_texts_are_escaped(site: Site, recrawl: Recrawl, visitor: Visitor, database_url: str) -> None:
    hostile(site, "summer")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    target = f"command:/bin/sh -c 'echo \"{SCRIPT}\" >&2; exit 1' {TEMPLATE.replace(chr(39), '')}"
    assert recrawl("notify", "add", target, "--match", SCRIPT, "--pattern", "re:/<script>").code == 0
    assert recrawl("notify", "add", target).code == 0
    hostile(site, "winter")
    recrawl("refresh", site.name)
    recrawl("crawl", site.name)
    execute(database_url, "UPDATE message SET state = 'dead'")

    pages = ["/notifications", DETAILS, DETAILS.replace("1", "2"), "/notifications/edit?number=1", "/"]
    seen = {path: visitor.get(path) for path in pages}
    for page in seen.values():
        assert page.status == 200
        safe(page.text, address=visitor.address)
    assert "<script>alert(1)</script>" in seen["/notifications"].words
    assert "Changed: </pre></title><script>alert(1)" in seen[pages[2]].words, "the title of a dead letter"
    for text in (SCRIPT, SQL, TEMPLATE, "\x00", "%ff%fe", "é" * 1500):
        for path in PAGES:
            safe(visitor.get(f"{path}?number={quote(text)}&after={quote(text)}").text, address=visitor.address)
        for path in POSTS:
            form = {**dict.fromkeys((*NAMES, "number", "letter", "back"), text), "kind": f"{text}\ngone"}
            safe(visitor.send(path, **form).text, address=visitor.address)
    assert visitor.get("/notifications").status == 200


def test_made_up_parameters_are_rejected(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    assert recrawl("notify", "add", "env:X").code == 0
    usual = {"target": "env:X", "kind": "gone", "condition": "below", "value": "5", "selector": ".p", "number": "1"}
    token = visitor.find_csrf_token()
    answers = {}
    for kind, value in VALUES.items():
        for path in PAGES:
            for name in ("number", "after"):
                answers[kind, path, name] = visitor.get(f"{path}?{name}={quote(value)}").status
        for path in POSTS:
            for name in NAMES if path in FORMS else ("number", "letter"):
                form = usual | {name: value, "csrf_token": token}
                if path != "/notifications/remove" or name == "number":
                    answers[kind, path, name] = visitor.post(path, form).status

    assert {asked: status for asked, status in answers.items() if status not in {200, 303, 400}} == {}
    assert recrawl("notify", "list").out.startswith("1  ")


def test_forms_need_the_token_of_their_session(anonymous: Visitor, recrawl: Recrawl) -> None:
    assert recrawl("notify", "add", "env:X").code == 0
    assert {anonymous.get(path).status for path in PAGES} == {401}
    assert {anonymous.post(path, {"number": "1"}).status for path in POSTS} == {401}
    anonymous.log_in()
    for form in ({"number": "1"}, {"number": "1", "csrf_token": "0" * 64}):
        assert {anonymous.post(path, form).status for path in POSTS} == {403}
    token = {"csrf_token": anonymous.find_csrf_token(), "number": "1"}
    assert {anonymous.post(path, token, Origin="http://evil.example").status for path in POSTS} == {403}
    assert {anonymous.get(path).status for path in POSTS} == {405}
    assert len(recrawl("notify", "list", "--json").json["subscriptions"]) == 1


def test_long_list_is_shown_in_parts(visitor: Visitor, recrawl: Recrawl) -> None:
    for n in range(16):
        assert recrawl("notify", "add", f"env:X{n}").code == 0

    first, second = visitor.get("/notifications"), visitor.get("/notifications?after=15")

    assert ("env:X14" in first.words, "env:X15" in first.words, "/notifications?after=15" in first.text) == (
        *(True, False, True),
    )
    assert ("env:X14" in second.words, "env:X15" in second.words) == (False, True)
