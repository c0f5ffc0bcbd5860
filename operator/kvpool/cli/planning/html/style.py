"""How a report looks: light and dark by what the reader has chosen, one or two columns, and on paper."""

from typing import Final

_LIGHT: Final = """
--page: #ffffff; --card: #ffffff; --edge: #dfe3e8; --ink: #1d2430; --quiet: #5b6675; --grid: #e4e8ed;
--track: #eef1f5; --halo: #ffffff; --good: #1f8a70; --bad: #b4402c;
--c0: #8a94a1; --c1: #2f6fb3; --c2: #a6c8e8; --c3: #2a9d8f; --c4: #8661b5; --c5: #d9822b; --c6: #c9503c;
""".strip()
_DARK: Final = """
--page: #12161c; --card: #191f27; --edge: #2c3540; --ink: #e6eaf0; --quiet: #9aa6b5; --grid: #2a323d;
--track: #252d37; --halo: #191f27; --good: #58c7aa; --bad: #ef8672;
--c0: #77828f; --c1: #6aa9e8; --c2: #3c638b; --c3: #4dbdae; --c4: #b296db; --c5: #eda653; --c6: #ec7f6c;
""".strip()
_COLOURS: Final = " ".join(
    f".fill.c{place} {{ fill: var(--c{place}); }} .stroke.c{place} {{ stroke: var(--c{place}); }}"
    f" .dot.c{place} {{ fill: var(--c{place}); }}"
    for place in range(7)
)

STYLE: Final = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }}
body {{
  margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 74rem; background: var(--page); color: var(--ink);
  font: .94rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }}
h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .8rem; }}
h3 {{ font-size: .95rem; margin: 1.4rem 0 .3rem; }}
.kind {{ margin: 0 0 .3rem; color: var(--quiet); font-size: .85rem; }}
.verdict {{
  border: 1px solid var(--edge); border-left: 5px solid var(--bad); border-radius: 6px;
  background: var(--card); padding: .9rem 1.1rem;
}}
.verdict.well {{ border-left-color: var(--good); }}
.verdict p {{ margin: 0; font-size: 1.1rem; font-weight: 600; }}
.verdict ul {{ margin: .5rem 0 0; padding-left: 1.1rem; color: var(--quiet); }}
.tiles {{
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1rem 0 0;
}}
.tiles div {{
  border: 1px solid var(--edge); border-radius: 6px; background: var(--card); padding: .6rem .9rem;
}}
.tiles dt {{ color: var(--quiet); font-size: .8rem; }}
.tiles dd {{ margin: 0; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem; }}
figure {{
  margin: 0; padding: 1rem 1.1rem 1.1rem; border: 1px solid var(--edge); border-radius: 6px;
  background: var(--card); min-width: 0; break-inside: avoid;
}}
figcaption strong {{ display: block; }}
figcaption span {{ color: var(--quiet); font-size: .85rem; }}
figure > svg {{ display: block; width: 100%; height: auto; margin-top: .8rem; }}
.legend {{
  display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .5rem 0 0; padding: 0; list-style: none;
  font-size: .82rem; color: var(--quiet);
}}
.swatch {{ width: 18px; height: 12px; margin-right: .4rem; vertical-align: -1px; }}
svg text {{ font-size: 12px; fill: var(--quiet); font-variant-numeric: tabular-nums; }}
svg .strong {{ fill: var(--ink); font-weight: 600; }}
svg .quiet {{ font-size: 11px; }}
svg .halo {{ stroke: var(--halo); stroke-width: 3px; paint-order: stroke; }}
.grid {{ stroke: var(--grid); }}
.track {{ fill: var(--track); }}
.stroke {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.dashed {{ stroke-dasharray: 5 4; }}
.moment {{ stroke: var(--c6); stroke-dasharray: 2 3; }}
.stroke.promise {{ stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 4; }}
.span {{ stroke: var(--c0); stroke-width: 3; stroke-linecap: round; }}
.dot {{ stroke: var(--halo); stroke-width: 1.5; }}
{_COLOURS}
.scroll {{ overflow-x: auto; margin-top: 1rem; }}
table {{
  border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; overflow-wrap: normal;
}}
caption {{
  text-align: left; white-space: nowrap; font-weight: 600; font-size: .95rem; padding-bottom: .3rem;
}}
th, td {{
  padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid var(--edge); white-space: nowrap;
}}
thead th {{ color: var(--quiet); font-weight: 500; font-size: .78rem; }}
.right {{ text-align: right; }}
.note {{ margin: .3rem 0 0; color: var(--quiet); font-size: .82rem; }}
section ul {{ margin: .3rem 0; padding-left: 1.1rem; }}
pre {{
  margin: 0; padding: .9rem 1.1rem; border: 1px solid var(--edge); border-radius: 6px;
  background: var(--card); font: .8rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; columns: 24rem; column-gap: 2rem;
}}
@media print {{
  :root {{ color-scheme: light; {_LIGHT} }}
  @page {{ margin: 12mm; }}
  html {{ font-size: 11px; }}
  body {{ max-width: none; padding: 0; print-color-adjust: exact; }}
  .plots {{ grid-template-columns: 1fr 1fr; gap: 4mm; }}
  .scroll {{ overflow: visible; }}
  table {{ font-size: .78rem; }}
  h2, h3, caption {{ break-after: avoid; }}
  section, pre {{ break-inside: avoid-page; }}
}}
"""
"""Holds neither `<` nor `&`, so that it may stand in a page as it is."""
