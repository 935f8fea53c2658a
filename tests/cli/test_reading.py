"""The commands that read: pages, report, changes, explain and others."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawler import times
from tests.commands import Answer, Recrawl, Site
from tests.databases import execute


def crawl_every_kind(recrawl: Recrawl, site: Site) -> None:
    """Crawl a site with every kind of URL once."""
    site.page("/", "/one", "/two", "/private/x", "/gone", "/old", "/a.pdf")
    site.answers["/gone"] = Answer(b"", status=410)
    site.answers["/old"] = Answer(b"", status=301, headers=(("Location", "/two"),))
    site.answers["/robots.txt"] = Answer(
        b"User-agent: *\nDisallow: /private/", headers=(("Content-Type", "text/plain"),)
    )
    assert recrawl("crawl", site.url, "--allow-private", "--exclude", "*.pdf$", "--max-depth", "3").code == 0


@pytest.fixture
def crawled(recrawl: Recrawl, site: Site) -> Site:
    """Return a site with every kind of URL, crawled once."""
    crawl_every_kind(recrawl, site)
    return site


@pytest.fixture(scope="module")
def explored(read: Recrawl, shared_site: Site) -> Site:
    """Return such a site beside a domain that was never crawled, for tests that only read."""
    crawl_every_kind(read, shared_site)
    assert read("domains", "add", "a.test", "--offline").code == 0
    return shared_site


def test_pages_come_by_importance(read: Recrawl, explored: Site) -> None:
    pages = read("pages", explored.name, "--json").json["pages"]
    shown = read("pages", explored.name, "--limit", "1").out

    ranks = [page["importance"] for page in pages if page["importance"] is not None]
    assert ranks == sorted(ranks, reverse=True)
    assert len(pages) == 6
    assert {page["url"].removeprefix(explored.url): page["state"] for page in pages} == {
        "": "fetched",
        "one": "fetched",
        "two": "fetched",
        "private/x": "excluded",
        "gone": "gone",
        "old": "moved",
    }
    assert shown.count(explored.url) == 1


def test_a_long_url_is_not_cut_in_a_pipe(recrawl: Recrawl, site: Site) -> None:
    long = "/" + "x" * 3000
    site.page("/", long)
    site.page(long)
    recrawl("crawl", site.url, "--allow-private")

    shown = recrawl("pages", site.name).out

    assert f"{site.url}{long[1:]} " in shown
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_the_report_of_one_and_of_all_domains(read: Recrawl, explored: Site) -> None:
    every = read("report", "--json").json["domains"]
    one = read("report", explored.name, "--days", "1").out
    table = read("report").out

    assert [each["domain"] for each in every] == sorted([explored.name, "a.test"])
    found = next(each for each in every if each["domain"] == explored.name)
    assert (found["fetched"], found["dead_links"], found["moved"], found["excluded"]) == (3, 1, 1, 1)
    assert found["freshness"] == pytest.approx(1, abs=0.001)
    assert found["requests"] == 5
    assert found["spent_today"] == 6  # including robots.txt and the registration
    assert found["window"] == timedelta(days=30).total_seconds()
    assert "Fresh (by importance)" in one
    assert "100%" in one
    assert "a.test" in table


SOURCE = """
    INSERT INTO domain_source (domain_id, no, source, signals, measured_at, recall, noise, effective_recall,
                               applied_recall,
                               applied_noise, applied_effective_recall, record)
    SELECT id, 0, 'cms', 12, now(), 0.6, 0.01, 0.6, 0.6, 0.01, 0.6, '{"true_signals": 9, "false_signals": 3}'
      FROM domain
"""


def test_the_report_shows_signal_sources_with_their_accuracy(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    before = recrawl("report", crawled.name).out
    execute(database_url, SOURCE)
    told = recrawl("report", crawled.name).out
    (source,) = recrawl("report", "--json").json["domains"][0]["sources"]

    assert "signal source" not in before
    assert re.search(r"cms +12 +60% +75%", told)
    assert (source["source"], source["signals"], source["precision"]) == ("cms", 12, 0.75)


# An audit and a scheduled visit of each page yesterday: two of four copies were fresh.
LOOKS = """
    INSERT INTO visit (domain_id, key, at, outcome, change, evidence, conditional, requests, received_bytes,
                       saved_bytes,
                       elapsed_ms, expected, audit)
    SELECT p.domain_id, p.key, now() - interval '1 day' - audit::int * interval '1 minute', 'fetched',
           CASE WHEN n % 2 = 0 THEN 'unchanged' ELSE 'changed' END, 'text', false, 1, 100, 0, 5, 0.1, audit
      FROM (SELECT domain_id, key, row_number() OVER (ORDER BY key) AS n FROM page ORDER BY key LIMIT 4) p,
           (VALUES (false), (true)) AS v(audit)
"""


PLAN = """
    INSERT INTO domain_plan (domain_id, importance, planned_at, price_request, price_byte, longest_s, budget_per_day,
                             price_correction, finding)
    SELECT id, 1, now(), 2, 0, 86400, 40, 1.5, 'not to be had' FROM domain
"""


def test_the_report_shows_target_price_finding_and_audit_results(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    recrawl("domains", "set", crawled.name, "--target-freshness", "95%")
    execute(database_url, LOOKS, PLAN)

    before = recrawl("report", crawled.name).out
    audited = recrawl("audit")
    told = recrawl("report", crawled.name).out
    table = recrawl("report")
    (found,) = recrawl("report", "--json").json["domains"]

    assert "none yet; run recrawl audit" in before
    assert audited.code == 0
    assert (found["target_freshness"], found["max_age"]) == (0.95, None)
    assert (found["price"], found["is_default_price"], found["finding"]) == (3.0, False, "not to be had")
    for visits in found["calibration"].values():
        assert (visits["visits"], visits["found_fresh"], visits["is_off"]) == (4, 0.5, False)
        assert visits["expected_fresh"] == pytest.approx(0.9)
    assert "50% of 4 visits found the copy fresh; expected 90%" in told
    assert "95% fresh" in told
    assert "6 of 40 that its target needs" in told
    assert "3 importance x days per request" in told
    assert "not to be had" in told
    assert "50%" in table.out
    assert table.complaint == f"{crawled.name}: not to be had"


def test_an_audit_draws_pages_once_a_day_and_reports_inaccuracies(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    (first,) = recrawl("audit", crawled.name, "--json").json["domains"]
    (again,) = recrawl("audit", "--json").json["domains"]
    done = recrawl("crawl", crawled.name, "--json").json
    execute(database_url, LOOKS, "UPDATE visit SET expected = 0.0001 WHERE audit")

    off = recrawl("audit", crawled.name)
    (finding,) = recrawl("audit", "--json").json["findings"]

    assert (first["drawn"], again["drawn"]) == (1, 0)
    assert first["audits"]["expected_fresh"] is None
    assert (done["visits"], done["unchanged"]) == (1, 1)
    assert off.code == 1
    assert f"The freshness predicted for {crawled.name} is wrong: of 4 audit visits, 100%" in off.err
    assert (finding["name"], finding["by_chance"], finding["found_fresh"]) == (crawled.name, True, 0.5)


def test_without_domains_there_is_nothing_to_report(recrawl: Recrawl) -> None:
    assert recrawl("report", "--json").json == {"domains": []}
    assert "No domain is registered" in recrawl("report").out
    assert recrawl("audit", "--json").json == {"domains": [], "findings": []}
    assert "No domain is registered" in recrawl("audit").out
    for command in ("pages", "report", "refresh", "audit"):
        done = recrawl(command, "a.test")
        assert done.code == 2
        assert "a.test is not registered" in done.complaint


def test_changes_are_read_on_from_a_cursor(recrawl: Recrawl, crawled: Site) -> None:
    first = recrawl("changes", "--json").json
    crawled.page("/one", "/two", text="quite other words")
    recrawl("crawl", crawled.name, "--at", "2100-01-01")
    second = recrawl("changes", "--since", str(first["next"]), "--json").json
    nothing = recrawl("changes", "--since", str(second["next"]), "--json").json

    assert {change["change"] for change in first["changes"]} == {"added"}
    assert [(change["change"], change["url"]) for change in second["changes"]] == [("changed", f"{crawled.url}one")]
    assert second["changes"][0]["version"] == 2
    assert (second["changes"][0]["parts"], second["changes"][0]["blocks"]) == (["text"], [])
    piece = {"part": "text", "before": "some words to read", "after": "quite other words"}
    assert recrawl("changes", "--since", str(first["next"]), "--diff", "--json").json["changes"][0]["blocks"] == [piece]
    shown = recrawl("changes", "--since", str(first["next"]), "--diff").out
    assert "text   [-some words to read-]{+quite other words+}\n" in shown
    explained = recrawl("explain", f"{crawled.url}one", "--json").json["content"]
    assert (explained["blocks"], explained["last_change"]["blocks"]) == (3 + 1, [piece])
    assert "text: [-some words to read-]{+quite other words+}" in recrawl("explain", f"{crawled.url}one").out
    assert nothing == {"changes": [], "next": second["next"], "more": False}


def test_changes_of_a_span_of_time_and_of_one_domain(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "add", "a.test", "--offline")
    recrawl("crawl", crawled.name, "--at", "2100-01-01")

    recent = recrawl("changes", "--since", "7d", "--at", "2100-01-02", "--json").json
    ever = recrawl("changes", "--since", "5200w", "--at", "2100-01-02", "--json").json
    other = recrawl("changes", "--domain", "a.test", "--json").json
    few = recrawl("changes", "--limit", "2", "--json").json

    assert recent["changes"] == []
    assert len(ever["changes"]) == 3
    assert other["changes"] == []
    assert (len(few["changes"]), few["more"]) == (2, True)


def test_the_next_command_is_suggested(read: Recrawl, explored: Site) -> None:
    done = read("changes")

    assert "3 pages added: recrawl changes --kind added" in done.out
    assert "recrawl changes --since 3" in done.complaint
    assert f"{explored.url}one" in read("changes", "--kind", "added").out


def test_a_page_is_explained(read: Recrawl, explored: Site) -> None:
    done = read("explain", f"{explored.url}two", "--why")
    found = read("explain", f"{explored.url}two", "--json").json

    assert done.code == 0
    assert "/two" in done.out
    assert "it is due at" in done.out
    assert "the default for pages without data" in done.out
    assert found["prior_source"] == {"level": "nothing", "kind": "", "pages": 0, "domains": 0}
    assert found["tracked"] is True
    assert found["page"]["version"] == 1
    assert found["value"] < found["shadow_price"]
    assert [visit["change"] for visit in found["visits"]] == ["added"]
    assert {linker["url"] for linker in found["linking_pages"]} == {explored.url, f"{explored.url}one"}
    assert datetime.fromisoformat(found["page"]["due_at"]) > datetime.fromisoformat(found["at"])


def test_pages_of_a_new_domain_have_the_rate_of_other_sites(recrawl: Recrawl, site: Site, database_url: str) -> None:
    execute(database_url, "INSERT INTO kind_prior VALUES ('*', 2, 40, 700, 7, now())")
    recrawl("crawl", site.url, "--allow-private")

    assert "like pages of other sites (7 sites) (a 2, b 40 days)" in recrawl("explain", f"{site.url}two", "--why").out


# A page that was visited often, last a day ago, and is due tomorrow.
SEEN_OFTEN = """
    UPDATE page SET visits = 9, rate_a = 1, rate_b = 40, last_good_at = now() - interval '1 day'
     WHERE url LIKE '%/two'
"""
DUE_TOMORROW = "UPDATE frontier SET due_at = now() + interval '1 day' WHERE state = 'fetched'"


DUE_BY_RULE: list[tuple[tuple[str, ...], tuple[str, str]]] = [
    ((), ("price", "by an earlier plan or earlier rules; today the value of a visit reaches the minimum")),
    (("--min-interval", "200d"), ("least", "reaches the minimum sooner, but a rule sets an interval of 200 days")),
    (("--max-interval", "2d"), ("most", "reaches the minimum later, but a rule sets an interval of 48 hours")),
    (("--once",), ("once", "it was fetched once, and a rule excludes further visits")),
]


def test_an_explanation_names_the_bound_that_makes_a_page_due(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    execute(database_url, SEEN_OFTEN, DUE_TOMORROW)
    for rule, due in DUE_BY_RULE:
        if rule:
            recrawl("rules", "add", crawled.name, "/two", *rule, "--weight", "2.5")

        found = recrawl("explain", f"{crawled.url}two", "--json").json
        told = recrawl("explain", f"{crawled.url}two", "--why").out
        recrawl("rules", "remove", crawled.name, "/two")

        assert (found["due_today"]["bound"], found["due_today"]["by_rule"]) == (due[0], bool(rule)), rule
        assert due[1] in found["next"]
        assert len(found["rules"]) == (1 if rule else 0)
        assert ("2.5 times as important" in told) == bool(rule)
        assert ("with a rule's weight of 2.5" in told) == bool(rule)


def test_an_explanation_shows_todays_price_and_the_spread_first_interval(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    execute(database_url, "UPDATE frontier SET due_at = now() + interval '1 hour' WHERE state = 'fetched'")
    first = recrawl("explain", f"{crawled.url}two", "--json").json
    execute(database_url, SEEN_OFTEN)
    at = recrawl("explain", f"{crawled.url}two", "--json").json["due_today"]["at"]
    execute(database_url, f"UPDATE frontier SET due_at = '{at}' WHERE state = 'fetched'")
    later = recrawl("explain", f"{crawled.url}two", "--json").json
    execute(database_url, "UPDATE page SET rate_a = 1e6, rate_b = 1e4", DUE_TOMORROW)
    never = recrawl("explain", f"{crawled.url}two", "--json").json

    assert (
        "pages added together are spread over their first interval; after that, the value of a visit" in first["next"]
    )
    assert ", because the value of a visit reaches the minimum" in later["next"]
    assert (never["due_today"]["bound"], never["due_today"]["gap"]) == ("most", timedelta(days=180).total_seconds())
    assert "the maximum interval is 180 days" in never["next"]


@pytest.mark.parametrize(
    ("path", "next_"),
    [
        ("gone", "it is gone (410 Gone)"),
        ("old", "it moved to {root}two"),
        ("private/x", "it may not be fetched (robots.txt forbids it for recrawl)"),
    ],
)
def test_pages_that_are_no_longer_fetched_are_explained(read: Recrawl, explored: Site, path: str, next_: str) -> None:
    found = read("explain", f"{explored.url}{path}", "--json").json

    assert found["next"].startswith(next_.format(root=explored.url))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.pdf", "the domain's settings exclude *.pdf$"),
        ("private/y", "robots.txt forbids it for recrawl"),
        ("never/heard/of", "no fetched page links to it"),
    ],
)
def test_an_untracked_url_is_explained(read: Recrawl, explored: Site, path: str, reason: str) -> None:
    found = read("explain", f"{explored.url}{path}", "--json").json
    shown = read("explain", f"{explored.url}{path}")

    assert found["tracked"] is False
    assert found["reason"].startswith(reason)
    assert reason in shown.out
    assert shown.code == 0


def test_a_url_beyond_the_maximum_depth_is_explained(recrawl: Recrawl, site: Site) -> None:
    site.page("/two", "/three")
    site.page("/three")
    recrawl("crawl", site.url, "--allow-private", "--max-depth", "1")

    found = recrawl("explain", f"{site.url}three", "--json").json

    assert found["reason"] == "it is 2 links away from the nearest seed, and the domain's maximum depth is 1"


def test_a_url_beyond_the_maximum_number_of_pages_is_explained(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--max-pages", "2")

    reasons = [recrawl("explain", f"{site.url}{name}", "--json").json.get("reason") for name in ("one", "two")]

    assert sorted(reasons, key=str) == [None, "the domain is full: it has 2 of at most 2 pages"]


def test_pages_without_cash_count_toward_the_maximum(recrawl: Recrawl, site: Site) -> None:
    site.page("/", "/gone", "/one")
    site.answers["/gone"] = Answer(b"", status=410)
    recrawl("crawl", site.url, "--allow-private", "--max-pages", "2")

    found = recrawl("explain", f"{site.url}one", "--json").json

    assert found["reason"] == "the domain is full: it has 2 of at most 2 pages"


def test_a_url_of_an_unregistered_domain_is_explained(recrawl: Recrawl) -> None:
    done = recrawl("explain", "https://a.test/x")

    assert done.code == 1
    assert "a.test is not registered: recrawl domains add a.test" in done.out


def test_a_refresh_of_a_pages_url_makes_that_page_due_and_no_other(recrawl: Recrawl, crawled: Site) -> None:
    page = recrawl("refresh", f"{crawled.url}one", "--json").json
    whole = recrawl("refresh", crawled.url, "--json").json
    unknown = recrawl("refresh", f"{crawled.url}t")

    assert (page["url"], page["pages"]) == (f"{crawled.url}one", 1)
    assert whole["url"] == f"{crawled.url}*"
    assert (unknown.code, "add *" in unknown.complaint) == (2, True)


def test_a_day_without_since_gets_a_suggestion(read: Recrawl, explored: Site) -> None:
    told = read("changes", "today")

    assert told.code == 2
    assert "recrawl changes --since today" in told.err


def test_a_refresh_makes_what_lies_beneath_due(recrawl: Recrawl, crawled: Site) -> None:
    whole = recrawl("refresh", f"{crawled.name}/t*", "--json").json
    done = recrawl("crawl", crawled.name, "--json").json
    everything = recrawl("refresh", crawled.name)
    again = recrawl("crawl", crawled.name, "--json").json

    assert whole == {"domain": crawled.name, "url": f"{crawled.url}t*", "pages": 1, "run": None, "wait": None}
    assert (done["visits"], done["unchanged"]) == (1, 1)
    assert f"Next: recrawl crawl {crawled.name}" in everything.out
    assert again["visits"] == 5


def test_inbox_entries_are_explained_before_the_due_time(recrawl: Recrawl, crawled: Site) -> None:
    def told(path: str = "two") -> str:
        return str(recrawl("explain", f"{crawled.url}{path}", "--json").json.get("next"))

    taken_up = "this waits in the inbox until the next crawl; until then, it is due at 20"
    before = told()

    recrawl("refresh", f"{crawled.name}/t*")
    refreshed, beside = told(), told("one")
    shown = recrawl("explain", f"{crawled.url}two", "--why").out
    recrawl("crawl", crawled.name)
    after = told()
    recrawl("rules", "add", crawled.name, "/t", "--max-interval", "2h")
    ruled = told()
    recrawl("domains", "set", crawled.name, "--boost", "/t")
    boosted, new = told(), recrawl("explain", f"{crawled.url}two", "--json").json["waiting"]

    assert before.startswith("it is due at 20")
    assert refreshed.startswith(f"it was requested: {taken_up}")
    assert f"it was requested: {taken_up}" in " ".join(shown.split())
    assert beside.startswith("it is due at 20")
    assert after.startswith("it is due at 20")
    assert ruled.startswith(f"its due time may change because of a new plan, settings or rules: {taken_up}")
    assert (boosted, new) == (ruled, ["reorder", "reprice"])


def test_a_url_that_waits_in_the_inbox_is_explained(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "a.test", "--offline")

    done = recrawl("explain", "a.test")

    assert "it was requested, and the next crawl fetches it" in done.out


def test_times_have_one_form_in_text_and_iso_in_json(recrawl: Recrawl, crawled: Site) -> None:
    asked = datetime(2099, 1, 31, 12, 0, 30, tzinfo=UTC)
    told = recrawl("refresh", crawled.name, "--at", asked.isoformat()).out
    early = recrawl("report", "--at", "2020-01-01").complaint
    typed = early.partition("--at ")[2].partition(";")[0]
    commands = ("report", "domains list", f"explain {crawled.url}", f"pages {crawled.name}", "changes", "plan")
    said = "".join(recrawl(*line.split()).out for line in commands) + told + early

    assert f"are due at {times.format_instant(asked)}" in told
    assert f"recrawl crawl {crawled.name} --at {times.format_typed_instant(asked)} " in told
    assert asked <= times.parse_instant(times.format_typed_instant(asked)) < asked + timedelta(minutes=1)
    assert recrawl("report", "--at", typed).code == 0
    assert re.findall(r"\d[T ]\d\d:\d\d:\d\d", said) == []
    assert re.findall(r"(?<!--at )\d{4}-\d\d-\d\dT", said) == []
    assert "+00:00" in recrawl("report", "--json").json["domains"][0]["at"]


def test_the_check_prints_text_and_json(read: Recrawl, explored: Site) -> None:
    assert read("db", "check").out == "No inconsistency found in 2 domains\n"
    assert read("db", "check", "--json").json == {"is_consistent": True, "domains": 2, "findings": []}


def test_an_inconsistency_gives_exit_code_1(recrawl: Recrawl, crawled: Site, database_url: str) -> None:
    assert recrawl("db", "check").out == "No inconsistency found in 1 domain\n"
    execute(database_url, "UPDATE domain_state SET dormant = dormant - 5")

    done = recrawl("db", "check")
    found = recrawl("db", "check", "--json")

    assert done.code == found.code == 1
    assert "5 is missing" in done.out
    assert found.json["findings"][0]["rule"] == "cash"


def test_without_a_stack_its_status_is_a_problem(recrawl: Recrawl) -> None:
    done = recrawl("status", "--json")

    assert done.code == 1
    assert done.json["running"] is False
    assert recrawl("down", "--json").json == {"stopped": False}


def test_a_mixed_importance_is_shown_in_its_parts(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.url, "--order", "mixed", "--url-weight", "0.25")

    listed = recrawl("pages", crawled.url, "--why").out
    every = recrawl("pages", crawled.url, "--json").json["pages"]
    explained = recrawl("explain", f"{crawled.url}two", "--why").out

    assert listed.split()[:5] == ["importance", "link", "score", "URL", "score"]
    pages = [page for page in every if page["importance"] is not None]
    assert pages
    assert all(p["importance"] == pytest.approx(0.75 * p["popularity"] + 0.25 * p["url_score"]) for p in pages)
    assert "75% links (" in explained
    assert "25% URL (" in explained


def test_a_hint_does_not_force_a_visit(recrawl: Recrawl, crawled: Site) -> None:
    stdin = f"{crawled.url}one\n\n{crawled.url}two\nhttp://elsewhere.test/x\n"

    taken = recrawl("hint", "-", "--source", "my-cms", "--json", stdin=stdin).json
    done = recrawl("crawl", crawled.name, "--json").json
    shown = recrawl("explain", f"{crawled.url}one", "--why").out
    told = recrawl("hint", f"{crawled.url}one", "--source", "my-cms")

    assert taken["accepted"] == {crawled.name: 2}
    assert taken["rejected"] == {"not_registered": 1}
    assert done["visits"] == 0
    assert "my-cms: signaled a change once since the last visit" in " ".join(shown.split())
    assert f"{crawled.name}: 1 hint from my-cms accepted for the next crawl" in told.out


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("http://",), "", "http://"),
        (("-",), "http://a.test/\nno url at all\n", "line 2: "),
        (("http://a.test/", "--source", "No Name"), "", "is not a valid source name"),
        (("-",), f"http://a.test/{'x' * 9000}\n", "line 1 is longer than 8,192 characters"),
        (("-",), "http://a.test/\n" * 10_001, "more than 10,000 URLs"),
    ],
)
def test_an_invalid_hint_is_a_one_line_error(
    recrawl: Recrawl, arguments: tuple[str, ...], stdin: str, said: str
) -> None:
    done = recrawl("hint", *arguments, stdin=stdin)

    assert done.code != 0
    assert said in done.err
    assert done.err.count("\n") == 1


def test_rejected_hints_show_the_reason(recrawl: Recrawl) -> None:
    done = recrawl("hint", "http://nobody.test/")

    assert done.code == 1
    assert "1 hint rejected: not registered" in done.out


def test_due_pages_without_a_worker_are_remarked(recrawl: Recrawl, crawled: Site, tmp_path: Path) -> None:
    recrawl("refresh", crawled.name)
    recrawl("crawl", crawled.name, "--pages", "1")  # which makes all of them due
    alone = [recrawl("report", crawled.name), recrawl("explain", crawled.url + "one")]
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "tag").write_text("of a stack that is down")

    set_up = [recrawl("report", crawled.name), recrawl("report")]
    pages = [
        recrawl("explain", crawled.url + path) for path in ("one", "two")
    ]  # one of them may just have been fetched
    recrawl("domains", "set", crawled.name, "--budget", "0")
    without_budget = recrawl("report", crawled.name)

    assert not any("no worker is running" in done.err for done in alone)
    assert [done.err for done in set_up if "no worker is running" not in done.err] == []
    assert any("no worker is running" in done.out for done in pages)
    assert "no worker is running" not in without_budget.err
