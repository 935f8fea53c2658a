"""Output of recrawl try: the fetched page, which of its blocks would be compared, and its differences."""

from datetime import datetime
from pathlib import Path

from rich.text import Text

from crawler.app import try_page as app
from crawler.app.running.maintenance import check_plugins
from crawler.cli.output import get_stdout, make_printable, print_json, say, show_facts, show_table
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import BadInput
from crawler.format.reasons import FINDING_WORDS, MASK_REASON_WORDS, RENDERING_WORDS, format_reading
from crawler.format.values import format_bytes, format_count, format_instant

MAX_SHOWN_CHARS = 400  # per block


def show_trial(text: str, *, again: bool, screenshot: Path | None, at: datetime | None, as_json: bool) -> int:
    """Try a page and print the result. screenshot: the file to write, or None."""
    check_plugins(settings())
    how = app.TryOptions(again=again, screenshot=screenshot is not None)
    result = run_on_database(lambda db, _: app.try_url(db, text, how=how, at=at))
    if screenshot is not None:
        _save_screenshot(screenshot, result)
    if as_json:
        print_json(app.describe_trial(result))
    else:
        _show_result(result)
    return DONE if result.parsed is not None else PROBLEM


def _save_screenshot(file: Path, result: app.TryResult) -> None:
    """Write the screenshot. Raises BadInput if there is none or the file cannot be written."""
    picture = result.page.screenshot if result.page is not None else None
    if picture is None:
        reason = _format_scripts(result) or result.problem or "it is not a web page"
        raise BadInput(f"no screenshot could be taken: {reason}")
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise BadInput(f"the screenshot cannot be written to {file}: {error.strerror}") from error


def _show_result(result: app.TryResult) -> None:
    blocks = app.list_blocks(result)
    differences = app.list_differences(result)
    masked = sum(block.is_whole for block in blocks)
    words = format_count(sum(len(block.masked) for block in blocks if not block.is_whole), "masked word")
    # Some reasons are identifiers, others are sentences.
    refusal = result.problem if " " in result.problem else result.problem.replace("_", " ")
    show_facts(
        [
            ("URL", result.target.url),
            ("Not fetched", refusal if result.response is None else ""),
            ("Response", _format_response(result)),
            ("Scripts", _format_scripts(result)),
            ("Compared with", _format_version(result)),
            ("Verdict", _format_verdict(result)),
            *((f"Value {each.name}", _format_value(each)) for each in (result.parsed.values if result.parsed else ())),
            ("Blocks", f"{len(blocks)}, of which {masked} are masked; {words} in the others" if blocks else ""),
        ]
    )
    if differences:
        say("")
        counted = [f"no: {MASK_REASON_WORDS[reason]}" if reason else "yes" for _, reason in differences]
        rows = [(counts, *_format_row(each)) for counts, (each, _) in zip(counted, differences, strict=True)]
        show_table(["counts", "part", "before", "after"], rows)
    if result.second_fetches:
        volatile = app.list_volatile_differences(result)
        say("\nFetched again seconds later: no difference" if not volatile else "")
        if volatile:
            show_table(["seconds later", "before", "after"], map(_format_row, volatile))
    if blocks:
        say("")
    for block in blocks:
        get_stdout().print(_format_block(block), soft_wrap=True)


def _format_value(value: app.PageValue) -> str:
    finding = f" ({FINDING_WORDS[value.finding]})" if value.finding and value.number is not None else ""
    return f"{format_reading(value.number, value.unit, value.finding)}{finding}"


def _format_row(each: app.Difference) -> tuple[str, str, str]:
    part, was, now = app.get_sides(each)
    return part, _truncate(was or ""), _truncate(now or "")


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def _format_response(result: app.TryResult) -> str:
    match result.response:
        case app.Fetched(status=status, received_bytes=received):
            return f"{status}, {format_bytes(received)}" + (f"; {result.problem}" if result.problem else "")
        case app.Unreached(reason=reason, detail=detail):
            return f"none ({reason.value}: {detail})"
        case _:
            return ""


def _format_scripts(result: app.TryResult) -> str:
    """Describe how much text and links the page has without its scripts, and what rendering adds."""
    read = result.page
    if read is None or not read.rendering.outcome:
        return ""
    description = RENDERING_WORDS[read.rendering.outcome]
    if read.choice is app.RenderChoice.NO_BROWSER:
        return f"{description}. {result.no_browser_reason}"
    if read.gain is None:
        return description
    gain = read.gain
    without = f"{format_count(gain.words_before, 'word')} and {format_count(gain.links_before, 'link')}"
    added = f"{format_count(gain.words, 'word')} and {format_count(gain.links, 'link')}"
    stored = "rendered" if read.stored.parsed and read.stored.parsed.version.is_rendered else "raw"
    return f"{description}: {without} without scripts, which add {added}; the {stored} version is stored"


def _format_version(result: app.TryResult) -> str:
    if result.response is None:
        return ""
    if result.target.version is None:
        return "nothing: no version is stored"
    at = f" of {format_instant(result.baseline.at)}" if result.baseline else ", whose text is no longer stored"
    return f"version {result.target.version.number}{at}"


def _format_verdict(result: app.TryResult) -> str:
    visit = result.visit
    if visit is None:
        return ""
    reason = f" ({visit.reason.replace('_', ' ')})" if visit.reason else ""
    if visit.change is app.Change.ADDED:
        return f"added: this would be its first version{reason}"
    parts = ", ".join(sorted(visit.verdict.significant.kinds))
    evidence = visit.verdict.evidence.value.replace("_", " ")
    return f"{visit.change.value}, by {evidence}{reason}{f': {parts}' if parts else ''}"


def _format_block(block: app.ExplainedBlock) -> Text:
    """Format a block as a line, with masked text in brackets, and dim where colors are supported."""
    line = Text(f"{block.kind.value:6}")
    if block.is_whole:
        return line.append(f"[{make_printable(_truncate(block.text))}]", "dim").append(_format_why(block), "yellow")
    end = 0
    for start, stop in block.masked:
        line.append(make_printable(block.text[end:start])).append(f"[{make_printable(block.text[start:stop])}]", "dim")
        end = stop
        if end > MAX_SHOWN_CHARS:
            break
    line.append(make_printable(_truncate(block.text[end:])))
    return line.append(_format_why(block), "yellow")


def _format_why(block: app.ExplainedBlock) -> str:
    if block.why is app.MaskReason.RULE:
        return f"  <- {MASK_REASON_WORDS[block.why]}" + (f": {block.rule}" if block.rule else "")
    reasons = [MASK_REASON_WORDS[block.why], f"a rule ignores part of it: {block.rule}" if block.rule else ""]
    return "".join(f"  <- {each}" for each in reasons if each)
