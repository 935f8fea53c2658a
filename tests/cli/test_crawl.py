"""recrawl crawl: its output, and every way in which it can fail."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.commands import Answer, Recrawl, Site

FAR = "2100-01-01T00:00Z"


def test_a_url_is_registered_and_its_domain_crawled_to_the_end(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("crawl", site.url, "--allow-private", "--json")

    assert done.code == 0, done.err
    found = done.json
    assert found["domains"] == [site.name]
    assert (found["visits"], found["added"], found["failed"], found["unchanged"]) == (3, 3, 0, 0)
    assert found["received_bytes"] == sum(len(answer.body) for answer in site.answers.values())
    assert found["by_domain"][site.name]["visits"] == 3
    assert datetime.fromisoformat(found["next_due_at"]) > datetime.now(UTC)
    assert sorted(set(site.asked)) == ["/", "/one", "/robots.txt", "/two"]
    assert done.err == f"Registered {site.url}\n"


def test_the_summary_shows_the_counts(recrawl: Recrawl, site: Site) -> None:
    site.page("/one", "/two", "/missing")

    done = recrawl("crawl", site.url, "--allow-private")

    assert done.code == 0
    facts = dict(line.split("  ", 1) for line in done.out.splitlines() if "  " in line)
    assert facts["Visited"].strip() == "4 pages"
    assert facts["Added"].strip() == "3 (fetched for the first time)"
    assert facts["New URLs"].strip().startswith("3 (")
    assert facts["Gone"].strip() == "0"
    assert facts["Dead links"].strip() == "1 (not found, and never fetched before)"
    assert "/missing" not in done.out
    assert "\x1b" not in done.out + done.err  # no colors in a pipe
    assert "Next due: " in done.out


def test_dead_links_are_dead_links_wherever_they_are_counted_and_whenever(recrawl: Recrawl, site: Site) -> None:
    site.page("/one", "/two", "/missing")
    recrawl("crawl", site.url, "--allow-private", "--at", "2026-01-01T00:00Z")

    report = recrawl("report", site.name, "--at", "2026-01-01T01:00Z", "--json").json["domains"][0]
    again = recrawl("refresh", site.name, "--at", "2026-03-01T00:00Z")
    later = recrawl("crawl", site.name, "--at", "2026-03-01T00:00Z", "--json").json

    assert again.code == 0, again.err
    assert "gone" not in report["changes"]
    assert (later["visits"], later["unchanged"], later["gone"], later["dead_links"]) == (4, 3, 0, 1)


def test_a_mistyped_url_is_listed_as_a_dead_link(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("crawl", f"{site.url}typo", "--allow-private")

    assert f"Dead links:\n  {site.url}typo\n" in done.out
    assert recrawl("crawl", site.name, "--json").json["dead_link_urls"] == []


def test_without_due_pages_the_next_due_time_is_shown(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    asked = len(site.asked)

    done = recrawl("crawl", site.name)

    assert done.code == 0
    assert f"{site.name} has nothing due before 20" in done.out
    assert len(site.asked) == asked


def test_another_instant_makes_other_pages_due(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    site.page("/one", "/two", text="quite other words")

    done = recrawl("crawl", "--due", "--at", "2090-01-01T00:00Z", "--json")

    assert done.json["changed"] == 1
    assert done.json["unchanged"] == 2
    assert done.json["at"].startswith("2090-01-01T00:00:0")


def test_no_instant_before_the_last_visit_is_taken(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--at", FAR)
    asked = len(site.asked)

    for arguments in (
        ("crawl", site.name, "--at", "2099-12-31"),
        ("crawl", site.name),
        ("crawl", "--due", "--at", "2099-12-31"),
        ("crawl", "--due", "--dry-run", "--at", "2099-12-31"),
        ("refresh", site.name, "--at", "2099-12-31"),
        ("pages", "--state", "failed", "--at", "2099-12-31"),
        ("report", "--at", "2099-12-31"),
        ("report", site.name, "--at", "2099-12-31"),
        ("changes", "--at", "2099-12-31"),
        ("explain", site.url, "--at", "2099-12-31"),
        ("domains", "show", site.name, "--at", "2099-12-31"),
        ("domains", "set", site.name, "--budget", "5", "--at", "2099-12-31"),
    ):
        done = recrawl(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert f"{site.name} was last visited at 2100-01-01 00:00Z" in done.complaint
    assert len(site.asked) == asked


def test_reports_without_an_instant_stand_at_the_last_visit(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--at", FAR)

    report = recrawl("report", site.name, "--json").json["domains"][0]

    assert report["at"] == report["last_visit_at"]
    assert report["freshness"] == pytest.approx(1)


def test_the_page_limit_is_respected(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("crawl", site.url, "--allow-private", "--pages", "2", "--json")

    assert done.json["visits"] == 2
    assert recrawl("crawl", site.name, "--json").json["visits"] == 1


def test_a_url_with_a_path_is_fetched_even_if_not_due_or_unknown(recrawl: Recrawl, site: Site) -> None:
    site.page("/hidden")
    recrawl("crawl", site.url, "--allow-private")
    site.asked.clear()

    known = recrawl("crawl", f"{site.url}one", "--json")
    unknown = recrawl("crawl", f"{site.url}hidden", "--json")
    only_if_due = recrawl("crawl", f"{site.url}two", "--due", "--json")

    assert (known.json["visits"], known.json["unchanged"]) == (1, 1)
    assert (unknown.json["visits"], unknown.json["added"]) == (1, 1)
    assert only_if_due.json["visits"] == 0
    assert site.asked == ["/one", "/hidden"]


def test_settings_for_a_registered_domain_are_ignored_with_a_remark(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")

    same = recrawl("crawl", site.url, "--allow-private")
    other = recrawl("crawl", site.url, "--parallelism", "3")

    assert same.err == ""
    assert "the settings given here are ignored" in other.complaint
    assert recrawl("domains", "show", site.name, "--json").json["settings"]["parallelism"] is None


def test_new_settings_hold_for_what_is_registered(recrawl: Recrawl, site: Site) -> None:
    site.page("/", "/one", "/two", "/one.pdf")
    options = ("--exclude", "*.pdf$", "--delay", "0.01", "--max-depth", "1", "--parallelism", "2", "--budget", "100")

    done = recrawl("crawl", site.url, "--allow-private", *options, "--json")

    assert done.json["visits"] == 3
    settings = recrawl("domains", "show", site.name, "--json").json["settings"]
    assert settings["exclude"] == ["*.pdf$"]
    assert (settings["delay_seconds"], settings["max_depth"], settings["parallelism"]) == (0.01, 1, 2)
    assert settings["budget_per_day"] == 100


def test_a_dry_run_shows_the_plan_and_changes_nothing(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--pages", "1")
    asked, before = len(site.asked), recrawl("domains", "list", "--json").json

    soon = recrawl("crawl", site.name, "--dry-run", "--json").json["plans"][0]
    later = recrawl("crawl", "--due", "--dry-run", "--at", FAR, "--json").json["plans"][0]
    unknown = recrawl("crawl", "nowhere.test", "--dry-run", "--json").json
    shown = recrawl("crawl", site.name, "--dry-run")

    assert (soon["requests"], soon["backlog"]["unfetched"], soon["backlog"]["due"]) == (2, 2, 0)
    assert {page["url"] for page in soon["first"]} == {f"{site.url}one", f"{site.url}two"}
    assert soon["max_bytes"] == pytest.approx(2 * len(site.answers["/"].body))
    assert (later["requests"], later["backlog"]["due"]) == (3, 1)
    assert unknown == {"at": unknown["at"], "plans": [], "unregistered": ["nowhere.test"]}
    assert "2 requests" in shown.out
    assert len(site.asked) == asked
    assert recrawl("domains", "list", "--json").json == before


def test_a_dry_run_of_a_page_that_is_not_due_counts_it_as_the_crawl_would(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    page = f"{site.url}one"

    whole = recrawl("crawl", site.name, "--dry-run", "--json").json["plans"][0]
    named = recrawl("crawl", page, "--dry-run", "--json").json["plans"][0]
    shown = recrawl("crawl", page, "--dry-run").out

    assert named["requested_urls"] == [page]
    assert named["requests"] == whole["requests"] + 1
    assert "(requested)" in shown


def test_the_plan_of_a_dry_run_keeps_to_the_budget(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--pages", "1", "--budget", "4")

    plan = recrawl("crawl", site.name, "--dry-run", "--json").json["plans"][0]

    assert plan["backlog"]["unfetched"] == 2
    assert plan["requests"] == 2  # robots.txt and the root took two


def test_the_response_at_registration_is_the_first_visit_and_charged_once(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("crawl", site.url, "--allow-private", "--budget", "3", "--json").json

    assert site.asked[:2] == ["/robots.txt", "/"]
    assert len(site.asked) == 3
    assert done["visits"] == 2
    assert done["received_bytes"] == sum(len(site.answers[path].body) for path in site.asked[1:])
    assert spent_today(recrawl) == 3


def test_the_response_at_registration_is_charged_without_a_visit(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", f"{site.url}one", "--allow-private", "--pages", "1")

    assert site.asked == ["/robots.txt", "/", "/one"]
    assert spent_today(recrawl) == 3


def test_a_page_that_robots_txt_forbids_is_reported_as_excluded(recrawl: Recrawl, site: Site) -> None:
    site.answers["/robots.txt"] = Answer(b"User-agent: *\nDisallow: /one")

    first = recrawl("crawl", f"{site.url}one", "--allow-private")
    again = recrawl("crawl", f"{site.url}one", "--json")
    why = recrawl("explain", f"{site.url}one").out

    assert (first.code, again.code) == (1, 1)
    assert f"{site.url}one was not fetched: robots.txt forbids it for recrawl" in first.err
    assert again.json["excluded_urls"] == {f"{site.url}one": "robots.txt forbids it for recrawl"}
    assert "/one" not in site.asked
    assert "but now" not in why
    assert "visits found" not in why
    assert "the server sends no validators" not in why


def test_a_crawl_at_a_future_time_is_remarked(recrawl: Recrawl, site: Site) -> None:
    ahead = recrawl("crawl", site.url, "--allow-private", "--at", "2090-01-01T00:00Z")
    now = recrawl("crawl", site.name)

    assert "visits are recorded as of 2090-01-01 00:00Z; until then, pass --at to later commands" in ahead.err
    assert (
        "use a later time, such as --at 2090-01-01T00:01Z; if the last visit has a wrong time: "
        f"recrawl domains reset-clock {site.name}" in now.complaint
    )


def spent_today(recrawl: Recrawl) -> int:
    return int(recrawl("report", "--json").json["domains"][0]["spent_today"])


def test_registering_counts_as_part_of_the_days_budget(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private", "--budget", "3")
    recrawl("crawl", site.name)

    assert site.asked == ["/robots.txt", "/", "/"]


def test_a_budget_of_nothing_sends_nothing_at_registration_either(
    recrawl: Recrawl, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = recrawl("domains", "add", site.url, "--allow-private", "--budget", "0")
    recrawl("domains", "remove", site.name, "--yes")
    monkeypatch.setenv("RECRAWL_BUDGET_PER_DAY", "0")
    together = recrawl("domains", "add", site.url, "--allow-private")

    assert (own.code, together.code, site.asked) == (0, 0, [])
    assert f"{site.name} was not fetched: the budget allows no request today" in own.complaint


def test_a_spent_budget_is_shown_and_is_not_a_problem(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--budget", "3")

    done = recrawl("crawl", site.name)

    assert done.code == 0
    assert "has spent its daily budget of 3 requests and continues at " in done.out


def test_a_paused_domain_is_a_problem_with_its_remedy(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private")
    recrawl("domains", "pause", site.name)

    done = recrawl("crawl", site.name)

    assert done.code == 1
    assert f"is paused; to continue: recrawl domains resume {site.name}" in done.complaint


def test_everything_that_is_due_is_crawled_without_naming_it(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private")

    done = recrawl("crawl", "--due", "--json")

    assert done.json["visits"] == 3
    assert recrawl("crawl", "--due").out == "Nothing was due\n"


# Errors of servers and users: each is a recorded finding or a one-line message, never a traceback.


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("http://no-such-host.invalid/", "no-such-host.invalid cannot be resolved"),
        ("file:///etc/passwd", "only http and https"),
        ("http://", "not a URL"),
        ("ht!tp://%%%", "not a URL"),
        ("http://me:secret@example.com/", "user name or password"),
        ("http://127.0.0.1:9/", "private address"),
        ("http://[::1]/", "private address"),
        ("http://169.254.169.254/latest/meta-data", "may not be requested"),
        ("http://" + "a" * 9000, "longer than"),
        ("", "the URL is empty"),
        ("mailto:me@example.com", "only http and https"),
        ("\x1b[31mred", "not a URL"),
    ],
    ids=lambda text: text[:30],
)
def test_what_cannot_be_crawled_is_one_line_and_registers_nothing(recrawl: Recrawl, name: str, complaint: str) -> None:
    done = recrawl("crawl", name)

    assert done.code == 2
    assert done.out == ""
    assert complaint in done.complaint
    assert "secret" not in done.err
    assert "\x1b" not in done.err
    assert recrawl("domains", "list", "--json").json["domains"] == []


def test_of_several_names_none_is_crawled_while_one_is_garbage(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("crawl", site.url, "file:///x", "--allow-private")

    assert done.code == 2
    assert site.asked == []


def test_a_port_that_refuses_is_a_recorded_finding(recrawl: Recrawl) -> None:
    done = recrawl("crawl", "http://127.0.0.1:9/", "--allow-private")
    again = recrawl("crawl", "http://127.0.0.1:9/")

    assert done.code == again.code == 1
    assert "is suspended until" in done.err
    assert ": connection refused" in done.err
    assert "is suspended until" in again.complaint
    report = recrawl("report", "127.0.0.1:9", "--json").json["domains"][0]
    assert report["suspension_reason"] == "refused"


def test_failed_counts_failed_visits_in_crawl_and_report(recrawl: Recrawl, site: Site) -> None:
    site.answers["/one"] = Answer(b"oh no", status=500)

    down = recrawl("crawl", "http://127.0.0.1:9/", "--allow-private")
    some = recrawl("crawl", site.url, "--allow-private")
    found = recrawl("crawl", "http://localhost:9/", "--allow-private", "--json").json

    down_facts, some_facts = (
        dict(line.split("  ", 1) for line in d.out.splitlines() if "  " in line) for d in (down, some)
    )
    assert (down_facts["Failed"].strip(), down_facts["Suspended"].strip()) == ("0", "1 domain (connection refused: 1)")
    assert (some_facts["Failed"].split()[0], "Suspended" in some_facts) == ("1", False)
    assert (found["failed"], found["reasons"], found["outages"]) == (0, {}, {"refused": 1})
    for name, failed in (("127.0.0.1:9", "0 visits"), (site.name, "1 visit")):
        reported = dict(line.split("  ", 1) for line in recrawl("report", name).out.splitlines() if "  " in line)
        assert reported["Failed"].strip().startswith(failed)


def test_whatever_a_page_is_it_becomes_a_finding(recrawl: Recrawl, site: Site) -> None:
    site.page("/", "/pdf", "/empty", "/error", "/huge", "/latin", "/binary", "/bomb")
    pdf = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF"
    site.answers["/pdf"] = Answer(pdf, headers=(("Content-Type", "application/pdf"),))
    site.answers["/empty"] = Answer(b"")
    site.answers["/error"] = Answer(b"oh no", status=500)
    site.answers["/huge"] = Answer(endless=True)
    site.answers["/latin"] = Answer("<title>é</title>Größe\0".encode("latin-1"))
    site.answers["/binary"] = Answer(bytes(range(256)) * 10, headers=(("Content-Type", "image/png"),))
    site.answers["/bomb"] = Answer(b"not gzip", headers=(("Content-Encoding", "gzip"), ("Content-Type", "text/html")))

    done = recrawl("crawl", site.url, "--allow-private", "--json")

    assert done.code == 0, done.err
    assert done.json["visits"] == 8
    assert done.json["reasons"] == {"http_500": 1, "too_large": 1, "garbage": 1}
    assert done.json["received_bytes"] < 11_000_000
    states = {page["url"]: page for page in recrawl("pages", site.name, "--json").json["pages"]}
    assert {states[f"{site.url}{name}"]["version"] for name in ("pdf", "empty", "latin", "binary")} == {1}
    assert {states[f"{site.url}{name}"]["version"] for name in ("error", "huge", "bomb")} == {0}
    assert states[f"{site.url}huge"]["reason"] == "too_large"
    assert recrawl("db", "check").code == 0


def test_a_retry_after_header_suspends_the_domain(recrawl: Recrawl, site: Site) -> None:
    site.answers["/one"] = Answer(b"", status=429, headers=(("Retry-After", "7200"),))

    done = recrawl("crawl", site.url, "--allow-private", "--json")

    assert done.code == 1
    hold = done.json["suspensions"][site.name]
    assert hold["reason"] == "http_429"
    assert datetime.fromisoformat(hold["until"]) - datetime.now(UTC) > timedelta(minutes=115)
    assert recrawl("db", "check").code == 0


def test_a_page_that_moves_out_of_scope_leaves_the_database_in_order(recrawl: Recrawl, site: Site) -> None:
    site.page("/", "/old", "/far")
    site.answers["/old"] = Answer(b"", status=301, headers=(("Location", "/x.pdf"),))
    site.answers["/far"] = Answer(b"", status=301, headers=(("Location", "/beyond/the/depth"),))

    done = recrawl("crawl", site.url, "--allow-private", "--exclude", "*.pdf$", "--max-depth", "1", "--json")

    assert done.json["moved"] == 2
    assert recrawl("db", "check").code == 0
    assert recrawl("explain", f"{site.url}old", "--json").json["next"].startswith("it moved away;")
