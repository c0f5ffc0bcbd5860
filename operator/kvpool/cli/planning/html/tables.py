"""Tables and lines of a screen as HTML: what the terminal shows, in the page too."""

from collections.abc import Sequence

from kvpool.cli.planning.html.markup import Markup, element, joined, text
from kvpool.cli.screen import Column, Lines, Section, Table


def section_markup(section: Section) -> Markup:
    """Return one section of a screen."""
    if isinstance(section, Lines):
        return lines_markup(section.title, section.lines)
    if not section.rows:
        return lines_markup(section.title, [section.note or "none"])
    return _table(section)


def lines_markup(title: str, lines: Sequence[str]) -> Markup:
    """Return lines under a heading."""
    heading = [element("h3", text(title))] if title else []
    return element(
        "section", *heading, element("ul", *(element("li", text(words.strip())) for words in lines))
    )


def _table(table: Table) -> Markup:
    head = element("tr", *(_cell("th", column, column.name, "col") for column in table.columns))
    rows = [
        element(
            "tr",
            *(
                _cell("th" if place == 0 else "td", column, words, "row" if place == 0 else "")
                for place, (column, words) in enumerate(zip(table.columns, row, strict=True))
            ),
        )
        for row in table.rows
    ]
    body = element(
        "table",
        element("caption", text(table.title)),
        element("thead", head),
        element("tbody", joined(rows)),
    )
    scrolled = element("div", body, class_="scroll", tabindex="0", role="region", aria_label=table.title)
    note = [element("p", text(line), class_="note") for line in table.note.split("\n") if line]
    return element("section", scrolled, *note)


def _cell(name: str, column: Column, words: str, scope: str) -> Markup:
    attributes: dict[str, str] = {"scope": scope} if scope else {}
    if column.right:
        attributes["class_"] = "right"
    return element(name, text(words), **attributes)
