"""recrawl try: one look at a page, and what of it would be compared."""

from datetime import datetime
from pathlib import Path

from rich.text import Text

from crawler.app import try_page as app
from crawler.app.running.maintenance import check_plugins
from crawler.cli.output import out, pick, print_json, printable, say, show, show_facts
from crawler.cli.session import DONE, PROBLEM, settings, with_database
from crawler.errors import BadInput
from crawler.format.reasons import NO_NEWS_WORDS, RENDERING_WORDS
from crawler.format.values import format_bytes, format_count, format_instant

MOST_SHOWN = 400  # characters of a piece


def try_url(text: str, *, again: bool, screenshot: Path | None, at: datetime | None, as_json: bool) -> int:
    """screenshot: where the picture goes."""
    check_plugins(settings())
    how = app.TryWay(again=again, screenshot=screenshot is not None)
    seen = with_database(lambda db, _: app.try_url(db, text, how=how, at=at))
    if screenshot is not None:
        _save(screenshot, seen)
    if as_json:
        print_json(_document(seen))
    else:
        _show(seen)
    return DONE if seen.parsed is not None else PROBLEM


def _save(file: Path, seen: app.TryResult) -> None:
    """Write the picture of the page; it must not be lost for want of a folder."""
    picture = seen.read.screenshot if seen.read is not None else None
    if picture is None:
        raise BadInput(f"there is no picture of it: {_shown_scripts(seen) or seen.refusal or 'it is no web page'}")
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise BadInput(f"the picture cannot be written to {file}: {error.strerror}") from error


def _show(seen: app.TryResult) -> None:
    blocks = app.list_blocks(seen)
    found = app.list_differences(seen)
    # Some refusals are words of a program, others sentences.
    refusal = seen.refusal if " " in seen.refusal else seen.refusal.replace("_", " ")
    show_facts(
        [
            ("URL", seen.target.url),
            ("Not asked", refusal if seen.answer is None else ""),
            ("Answer", _shown_answer(seen)),
            ("Scripts", _shown_scripts(seen)),
            ("Compared with", _shown_version(seen)),
            ("Found", _shown_verdict(seen)),
            ("Blocks", _shown_count(blocks) if blocks else ""),
        ]
    )
    if found:
        say("")
        show(["news", "part", "was", "is"], [(_news(why), *_row(each)) for each, why in found])
    if seen.second_fetches:
        taught = app.list_volatile(seen)
        say("\nLooks at once: nothing differs" if not taught else "")
        if taught:
            show(["seconds later", "here", "there"], [_row(each) for each in taught])
    if blocks:
        say("")
    for piece in blocks:
        out().print(_shown_piece(piece), soft_wrap=True)


def _news(why: app.Why) -> str:
    return f"no: {NO_NEWS_WORDS[why]}" if why else "yes"


def _sides(each: app.Difference) -> tuple[str, str | None, str | None]:
    """Return what a difference is in, what that said, and what it says; None where there was or is nothing."""
    ((before, after),) = each.sides
    return each.blocks[0].kind.value, before.text if before else None, after.text if after else None


def _row(each: app.Difference) -> tuple[str, str, str]:
    part, was, now = _sides(each)
    return part, _cut(was or ""), _cut(now or "")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _shown_answer(seen: app.TryResult) -> str:
    match seen.answer:
        case app.Fetched(status=status, received_bytes=received):
            return f"{status}, {format_bytes(received)}" + (f"; {seen.refusal}" if seen.refusal else "")
        case app.Unreached(reason=reason, detail=detail):
            return f"none ({reason.value}: {detail})"
        case _:
            return ""


def _shown_scripts(seen: app.TryResult) -> str:
    """What the page says without its scripts, and what a browser adds."""
    read = seen.read
    if read is None or not read.rendering.word:
        return ""
    said = RENDERING_WORDS[read.rendering.word]
    if read.choice is app.RenderChoice.NO_BROWSER:
        return f"{said}. {seen.no_browser}"
    if read.gain is None:
        return said
    gain = read.gain
    without = f"{format_count(gain.words_before, 'word')} and {format_count(gain.links_before, 'link')}"
    added = f"{format_count(gain.words, 'word')} and {format_count(gain.links, 'link')}"
    kept = "as rendered" if read.kept.parsed and read.kept.parsed.version.is_rendered else "without them"
    return f"{said}: {without} without scripts, they add {added}; kept {kept}"


def _shown_version(seen: app.TryResult) -> str:
    if seen.answer is None:
        return ""
    if seen.target.version is None:
        return "nothing: no version of it is kept"
    at = f" of {format_instant(seen.baseline.at)}" if seen.baseline else ", whose text cannot be read any more"
    return f"version {seen.target.version.number}{at}"


def _shown_verdict(seen: app.TryResult) -> str:
    visit = seen.visit
    if visit is None:
        return ""
    reason = f" ({visit.reason.replace('_', ' ')})" if visit.reason else ""
    if visit.change is app.Change.FIRST:
        return f"a first version{reason}"
    parts = ", ".join(sorted(visit.verdict.significant.kinds))
    rung = visit.verdict.rung.value.replace("_", " ")
    return f"{visit.change.value}, by {rung}{reason}{f': {parts}' if parts else ''}"


def _shown_count(blocks: list[app.ExplainedBlock]) -> str:
    whole = sum(piece.is_whole for piece in blocks)
    words = sum(len(piece.masked) for piece in blocks if not piece.is_whole)
    return f"{len(blocks)}, of which {whole} are masked, and {format_count(words, 'word')} in the others"


def _shown_piece(piece: app.ExplainedBlock) -> Text:
    """A line: what is masked stands in brackets, and is dim where there are colours."""
    line = Text(f"{piece.kind.value:6}")
    if piece.is_whole:
        return line.append(f"[{printable(_cut(piece.text))}]", "dim").append(_shown_why(piece), "yellow")
    end = 0
    for start, stop in piece.masked:
        line.append(printable(piece.text[end:start])).append(f"[{printable(piece.text[start:stop])}]", "dim")
        end = stop
        if end > MOST_SHOWN:
            break
    line.append(printable(_cut(piece.text[end:])))
    return line.append(_shown_why(piece), "yellow")


def _shown_why(piece: app.ExplainedBlock) -> str:
    if piece.why is app.Why.RULE:
        return f"  <- {NO_NEWS_WORDS[piece.why]}" + (f": {piece.rule}" if piece.rule else "")
    said = [NO_NEWS_WORDS[piece.why], f"a rule of yours leaves some of it out: {piece.rule}" if piece.rule else ""]
    return "".join(f"  <- {each}" for each in said if each)


def _document(seen: app.TryResult) -> dict[str, object]:
    version, visit = seen.target.version, seen.visit
    return {
        "url": seen.target.url,
        "at": seen.at,
        "refused": seen.refusal,
        "status": seen.answer.status if isinstance(seen.answer, app.Fetched) else None,
        "version": version.number if version else None,
        "version_at": seen.baseline.at if seen.baseline else None,
        "change": visit.change if visit else None,
        "rung": visit.verdict.rung if visit else None,
        "reason": visit.reason if visit else "",
        "parts": sorted(visit.verdict.significant.kinds) if visit else [],
        "differs": [_pair(each) | {"news": not why, "why": why} for each, why in app.list_differences(seen)],
        "seconds_later": [_pair(each) for each in app.list_volatile(seen)],
        "blocks": [_piece(piece) for piece in app.list_blocks(seen)],
    }


def _pair(each: app.Difference) -> dict[str, object]:
    return dict(zip(("part", "was", "is"), _sides(each), strict=True))


def _piece(piece: app.ExplainedBlock) -> dict[str, object]:
    return {
        "part": piece.kind,
        "masked": [piece.text[start:end] for start, end in piece.masked],
        "is_masked": piece.is_whole,
        **pick(piece, "text", "why", "rule"),
    }
