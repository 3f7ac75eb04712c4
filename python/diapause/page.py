"""A report as one HTML file: style and pictures are inside, nothing is fetched, and no script runs.

Its contents come from files that anybody may have written: every text goes through escape(), and
the policy in the head forbids the browser to run or load anything but the pictures inside.
"""

from __future__ import annotations

import base64
from html import escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 64rem; padding: 2rem 1.5rem 4rem; color: #222; background: #fff;
       font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .7rem; padding-bottom: .25rem;
     border-bottom: 1px solid #ddd; }
p { margin: .5rem 0; max-width: 46rem; }
.quiet { color: #666; overflow-wrap: anywhere; }
.kind { display: inline-block; border-radius: .3rem; padding: .05rem .5rem; font-size: .85rem;
        font-weight: 600; }
.measured { background: #d8f0e6; color: #00513a; }
.modelled { background: #fdf0cf; color: #6b4a00; }
.emulated, .replayed, .none { background: #eee; color: #444; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0 .6rem; }
.card { flex: 1 1 10rem; border: 1px solid #ddd; border-radius: .5rem; padding: .7rem 1rem; }
.card b { display: block; font-size: 1.45rem; line-height: 1.3;
          font-variant-numeric: tabular-nums; }
.card span { color: #666; font-size: .85rem; }
.notes { border-left: 3px solid #E69F00; padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
.notes li { margin: .25rem 0; overflow-wrap: anywhere; }
.notes ul { margin: .3rem 0; padding-left: 1rem; }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; display: block; }
figcaption { color: #666; font-size: .85rem; max-width: 46rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .22rem .9rem .22rem 0; text-align: right; white-space: nowrap;
         border-bottom: 1px solid #eee; }
th { font-weight: 600; color: #555; border-bottom: 1px solid #bbb; vertical-align: bottom; }
th.text, td.text { text-align: left; }
td.long { white-space: normal; overflow-wrap: anywhere; max-width: 26rem; }
tr.sum td { font-weight: 600; border-top: 1px solid #bbb; }
@media (max-width: 40rem) {
  body { padding: 1rem .8rem 3rem; font-size: 16px; }
  h1 { font-size: 1.35rem; }
  .card { flex-basis: 100%; }
  figure { overflow-x: auto; }
  figure img { width: 50rem; max-width: none; }
  th, td { padding-right: .7rem; }
}
"""


class Number:
    """A cell that shows `text` and holds `value` for programs that read the
    page; None: not known."""

    def __init__(self, text, value=None):
        self.text, self.value = text, value


def table(name, columns, rows, sums=0):
    """`columns`: heads, "<" before one whose cells are text. The last `sums` rows stand out."""
    heads = "".join(f'<th class="text">{escape(head[1:])}</th>' if head[:1] == "<"
                    else f"<th>{escape(head)}</th>"
                    for head in columns)
    body = []
    for place, row in enumerate(rows):
        mark = ' class="sum"' if place >= len(rows) - sums else ""
        body.append(f"<tr{mark}>" + "".join(_cell(head, cell) for head, cell in zip(columns, row))
                    + "</tr>\n")
    return (f'<div class="wide"><table id="{escape(name)}"><thead><tr>{heads}</tr></thead>\n'
            f'<tbody>\n{"".join(body)}</tbody></table></div>\n')


def _cell(head, cell):
    if isinstance(cell, Number):
        value = "" if cell.value is None else f' data-value="{cell.value!r}"'
        return f"<td{value}>{escape(cell.text)}</td>"
    kinds = (["text"] if head[:1] == "<" else []) + (["long"] if len(cell) > 32 else [])
    marks = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<td{marks}>{escape(cell)}</td>"


def kind_mark(kind):
    """A mark in the colour of "measured", "modelled", ...; the word is beside the colour."""
    known = ("emulated", "replayed", "modelled", "measured")
    classes = [word for word in known if word in kind] + ["none"]
    return f'<span class="kind {classes[0]}">{escape(kind or "no source of energy")}</span>'


def cards(pairs):
    return '<div class="cards">' + "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for what, value in pairs) + "</div>\n"


def notes(texts):
    if not texts:
        return ""
    return ('<div class="notes"><ul>' + "".join(f"<li>{escape(text)}</li>" for text in texts)
            + "</ul></div>\n")


def picture(svg, about, caption=""):
    """Embeds a picture as an image and not as elements of the page, so what is in it can never
    be a part of the page."""
    data = base64.b64encode(svg).decode("ascii")
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (f'<figure><img alt="{escape(about)}" '
            f'src="data:image/svg+xml;base64,{data}">{below}</figure>\n')


def heading_of_page(text):
    return f"<h1>{escape(text)}</h1>\n"


def quiet(text):
    return f'<span class="quiet">{escape(text)}</span>'


def heading(text):
    return f"<h2>{escape(text)}</h2>\n"


def paragraph(text, quiet=False):
    mark = ' class="quiet"' if quiet else ""
    return f"<p{mark}>{escape(text)}</p>\n"


def document(title, parts):
    """The page as bytes. `parts` are pieces that the functions above made."""
    text = (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n{''.join(parts)}</body>\n</html>\n")
    return text.encode("utf-8", errors="replace")
