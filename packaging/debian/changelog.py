#!/usr/bin/env python3
"""Writes the changelog of the Debian packages, which leads to CHANGES.md: an entry
for each of its versions.

changelog.py CHANGES.md CONTACT OUTPUT.gz
"""

import datetime
import email.utils
import gzip
import pathlib
import re
import sys

ENTRY = """diapause ({version}) unstable; urgency=medium

  * /usr/share/doc/diapause/CHANGES.md tells what is new in version {version}.

 -- {contact}  {date}
"""


def changelog(changes, contact):
    entries = []
    for version, day in re.findall(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", changes, re.MULTILINE):
        date = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.timezone.utc)
        entries.append(ENTRY.format(version=version, contact=contact,
                                    date=email.utils.format_datetime(date)))
    if not entries:
        sys.exit("packaging/debian: CHANGES.md has no section of a version")
    return "\n".join(entries)


def main():
    changes, contact, output = sys.argv[1:]
    text = changelog(pathlib.Path(changes).read_text(), contact)
    pathlib.Path(output).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
