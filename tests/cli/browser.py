"""Looks at a page as a reader's browser does: headless Chromium, of Debian."""

import base64
import html.parser
import json
import pathlib
import shutil
import subprocess

LIMIT_S = 120
# Tells what became of the page. It gets in by a word that only the copy under test lets in.
WORD = "looked-at"
PROBE = """<script nonce="%s">
const troubles = [];
addEventListener("error", event => troubles.push(
  "error: " + (event.message || event.target.outerHTML)), true);
addEventListener("securitypolicyviolation", event => troubles.push(
  event.violatedDirective + " " + event.blockedURI));
addEventListener("load", () => {
  const seen = {
    troubles,
    images: [...document.images].map(
      image => [image.naturalWidth, image.clientWidth, image.clientHeight]),
    fetched: performance.getEntriesByType("resource").map(entry => entry.name.slice(0, 100)),
    scripts: document.scripts.length,
    elements: [...new Set([...document.querySelectorAll("*")].map(element => element.localName))],
    width: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight,
  };
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = btoa(encodeURIComponent(JSON.stringify(seen)));
  document.body.append(out);
});
</script>""" % WORD


class _Reader(html.parser.HTMLParser):
    """Tables by their names, as rows of cells (text, value), and what the probe has left."""

    def __init__(self):
        super().__init__()
        self.tables, self.seen = {}, None
        self._rows, self._text, self._value, self._is_seen = None, None, None, False

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "table":
            self._rows = self.tables.setdefault(attributes.get("id"), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._text, self._value = "", attributes.get("data-value")
        elif tag == "pre" and attributes.get("id") == "seen":
            self._text, self._is_seen = "", True

    def handle_data(self, data):
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self._text is not None:
            self._rows[-1].append((self._text, self._value and float(self._value)))
            self._text = None
        elif tag == "pre" and self._is_seen:
            import urllib.parse

            self.seen = json.loads(urllib.parse.unquote(base64.b64decode(self._text).decode()))
            self._is_seen = False


def is_there():
    return shutil.which("chromium") is not None


def look(page, scratch, picture=None, size="1200,4000"):
    """(tables, what the probe saw) of the page; saves what is to be seen in a window of that size
    to the file `picture`."""
    text = pathlib.Path(page).read_text()
    assert text.count("default-src 'none'") == 1 and text.count("<head>") == 1
    copy = pathlib.Path(scratch) / "looked-at.html"
    copy.write_text(text.replace("default-src 'none'",
                                 f"default-src 'none'; script-src 'nonce-{WORD}'")
                    .replace("<style>", PROBE + "<style>", 1))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
               "--no-first-run", "--mute-audio",
               f"--user-data-dir={scratch}/browser", f"--window-size={size}", "--dump-dom"]
    command += [f"--screenshot={picture}"] if picture else []
    done = subprocess.run([*command, copy.as_uri()], capture_output=True, text=True,
                          timeout=LIMIT_S)
    reader = _Reader()
    reader.feed(done.stdout)
    assert reader.seen, f"the page did not load\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return reader.tables, reader.seen
