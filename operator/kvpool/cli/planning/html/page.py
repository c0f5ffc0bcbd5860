"""One HTML file that needs nothing beside it: what binds, key figures, plots, tables, where it is from."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.cli.planning.html.markup import Markup, element, joined, text
from kvpool.cli.planning.html.style import STYLE
from kvpool.cli.planning.html.tables import lines_markup, section_markup
from kvpool.cli.screen import Section


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the report comes to."""

    words: str
    reasons: Sequence[str]
    is_well: bool
    """Whether there is nothing to mend."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that a report says."""

    title: str
    kind: str
    """Which command made it, and from what."""
    verdict: Verdict
    tiles: Sequence[tuple[str, str]]
    """Key figures: what, and how much."""
    figures: Sequence[Markup]
    tables: Sequence[Section]
    provenance: Sequence[str]
    inputs: Sequence[tuple[str, str]]
    """Files as text: what they are, and their lines."""


def page_text(page: Page) -> str:
    """Return the file. Equal reports give equal bytes."""
    head = element(
        "head",
        Markup('<meta charset="utf-8"/>'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1"/>'),
        # Nothing of any page that this text is put into may be fetched or run.
        Markup(
            '<meta http-equiv="Content-Security-Policy"'
            " content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        ),
        element("title", text(f"{page.title} \u00b7 {page.kind}")),
        element("style", Markup(STYLE)),
    )
    body = element("body", _header(page), element("main", *_parts(page)), _footer(page))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _header(page: Page) -> Markup:
    verdict = [element("p", text(page.verdict.words))]
    if page.verdict.reasons:
        verdict.append(element("ul", *(element("li", text(words)) for words in page.verdict.reasons)))
    tiles = [
        element("div", element("dt", text(what)), element("dd", text(much))) for what, much in page.tiles
    ]
    return element(
        "header",
        element("p", text(page.kind), class_="kind"),
        element("h1", text(page.title)),
        element("div", *verdict, class_="verdict well" if page.verdict.is_well else "verdict"),
        element("dl", *tiles, class_="tiles"),
    )


def _parts(page: Page) -> list[Markup]:
    return [
        element("h2", text("Plots")),
        element("div", *page.figures, class_="plots"),
        element("h2", text("The same as tables")),
        joined([section_markup(section) for section in page.tables]),
    ]


def _footer(page: Page) -> Markup:
    files = [
        element("section", element("h3", text(what)), element("pre", text(lines)))
        for what, lines in page.inputs
    ]
    return element(
        "footer", element("h2", text("Made from")), lines_markup("", page.provenance), joined(files)
    )
