"""The importance commands of `python -m labs`, on small graphs."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.commands import Recrawl, Site

SMALL = ("--pages", "300")


def test_opic_shows_where_each_selection_ends_and_its_curves(labs: Recrawl) -> None:
    done = labs("opic", *SMALL, "--passes", "5", "--reaction", "--interpolation")

    assert done.code == 0
    assert "Random compared with greedy:" in done.out
    assert "Interpolation compared with the exact window" in done.out
    assert all(f"\n{name} " in done.out for name in ("greedy", "cycle", "random", "off-line"))
    assert "power-law: 300 pages" in done.out
    assert "Remaining error increase after one window" in done.out
    assert "● greedy   ○ cycle" in done.out
    assert "\x1b" not in done.out


def test_opic_as_json_holds_every_point(labs: Recrawl) -> None:
    arguments = ("opic", *SMALL, "--passes", "3", "--selection", "cycle", "--window", "variable:2", "--json")
    found = labs(*arguments).json

    assert found["graph"]["pages"] == 300
    assert found["window"] == "variable:2"
    assert [(curve["label"], len(curve["points"])) for curve in found["curves"]] == [("cycle", 3), ("off-line", 3)]
    assert found["curves"][0]["points"][2]["errors"]["every"] > 0
    assert found["reaction"] is None
    assert labs(*arguments).json == found


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            ("opic", "--passes", "2", "--reaction", "--interpolation"),
            {"error-all", "error-top", "error-factor", "random-greedy", "reaction", "interpolation"},
        ),
        (("windows", "--passes", "2", "--rate", "0.01", "--rate", "0.1"), {"window-sizes", "window-policies"}),
        (("discovery",), {"discovery"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_figures_are_files_that_a_browser_can_show(
    labs: Recrawl, tmp_path: Path, arguments: tuple[str, ...], names: set[str]
) -> None:
    folder = tmp_path / "some" / "figures"

    done = labs(*arguments, *SMALL, "--figures", str(folder))

    assert done.code == 0
    assert {path.stem for path in folder.iterdir()} == names
    for path in folder.iterdir():
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_windows_has_a_row_for_each_policy_and_rate(labs: Recrawl) -> None:
    arguments = ("--passes", "2", "--rate", "0.1", "--rate", "0", "--window", "blocks:8", "--window", "interpolation")
    found = labs("windows", *SMALL, *arguments, "--json").json

    assert [(row["rate"], row["policy"], row["numbers"]) for row in found["standings"]] == [
        (0.0, "blocks:8", 4.0),
        (0.0, "interpolation", 2.0),
        (0.1, "blocks:8", 4.0),
        (0.1, "interpolation", 2.0),
    ]


def test_windows_of_a_graph_at_rest_have_no_curve_to_draw(labs: Recrawl, tmp_path: Path) -> None:
    done = labs("windows", *SMALL, "--passes", "1", "--rate", "0", "--figures", str(tmp_path / "figures"))

    assert done.code == 0
    assert "0%   interpolation" in done.out
    assert "No figures" in done.err
    assert not (tmp_path / "figures").exists()


def test_discovery_compares_all_orders(labs: Recrawl) -> None:
    found = labs("discovery", *SMALL, "--json").json

    ends = {each["way"]: each["shares"][-1] for each in found["coverages"]}
    assert set(ends) == {"opic", "breadth", "depth", "mixed", "random", "omniscient"}
    assert found["limit"] == 30
    assert ends["random"] < ends["opic"] <= found["best"]


def test_nutch_shows_its_table(labs: Recrawl) -> None:
    done = labs("nutch")

    assert "4   E        1*         1.25*      0.5*       0.25       0.75*" in done.out
    assert "truth            0.33      1.70      0.47      1.05      1.45" in done.out
    assert labs("nutch", "--json").json["rounds"][5]["scores"]["B"] == 1.25


def test_a_folder_of_html_can_be_measured(labs: Recrawl, tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"{n}.html").write_text(f'<p>words <a href="{(n + 1) % 20}.html">next</a>', encoding="utf-8")

    found = labs("discovery", "--graph", str(tmp_path), "--way", "opic", "--limit", "0.5", "--json").json

    assert (found["graph"]["pages"], found["graph"]["links"]) == (20, 20)
    assert abs(found["coverages"][0]["shares"][-1] - 0.5) < 1e-9


def test_a_domain_that_was_crawled_can_be_measured(recrawl: Recrawl, labs: Recrawl, site: Site) -> None:
    site.page("/", *(f"/{n}" for n in range(12)))
    for n in range(12):
        site.page(f"/{n}", "/", f"/{(n + 1) % 12}")
    assert recrawl("crawl", site.url, "--allow-private", "--delay", "0").code == 0

    found = labs("opic", "--graph", site.name, "--passes", "10", "--selection", "greedy", "--json").json

    assert (found["graph"]["pages"], found["graph"]["links"]) == (13, 12 + 24)
    assert found["curves"][0]["points"][-1]["errors"]["every"] < 0.1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("opic", "--selection", "luck"), "unknown selection 'luck'; choose one of greedy, cycle, random"),
        (("opic", "--window", "sliding"), "'sliding' is not a window"),
        (("opic", "--window", "fixed:0"), "above 0"),
        (("opic", "--pages", "100001"), "--pages"),
        (("discovery", "--way", "best"), "unknown way 'best'"),
        (("discovery", "--limit", "1.5"), "--limit"),
        (("windows", "--graph", "./nowhere"), "the folder ./nowhere does not exist"),
        (("windows", "--graph", "a.test"), "a.test is not registered"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_invalid_input_is_a_one_line_error(labs: Recrawl, arguments: tuple[str, ...], complaint: str) -> None:
    done = labs(*arguments)

    assert (done.code, done.out) == (2, "")
    assert complaint in done.complaint


def test_graph_of_few_pages_is_an_error(labs: Recrawl, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("alone", encoding="utf-8")

    done = labs("opic", "--graph", str(tmp_path))

    assert done.code == 2
    assert "has 1 of the 10 pages" in done.complaint


def test_figures_that_cannot_be_written_are_an_error(labs: Recrawl, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = labs("discovery", *SMALL, "--figures", str(tmp_path / "file"), "--json")

    assert done.code == 1
    assert "the figures cannot be written" in done.complaint
