"""Shared by the demonstrations: what they print, and what the runs leave behind."""

import json
import os
import subprocess
import sys
import time


class DemoError(Exception):
    """Something that ends the demonstration; the text says what."""


# ---- terminal ------------------------------------------------------------------------------------

TTY = sys.stdout.isatty()
COLOUR = TTY and "NO_COLOR" not in os.environ
STYLES = {"dim": "2", "bold": "1", "red": "1;31", "green": "32", "good": "1;32", "yellow": "33",
          "blue": "34",
          "cyan": "36", "plain": "0"}


def paint(style, text):
    return f"\033[{STYLES[style]}m{text}\033[0m" if COLOUR else text


def say(text=""):
    print(text, flush=True)


class ProgressBar:
    """A bar that is redrawn on a terminal; elsewhere a line every tenth of the way."""

    WIDTH = 40

    def __init__(self, label):
        self.label = label
        self.start_s = time.monotonic()
        self.last_tenth = 0

    def show(self, done, total, note=""):
        share = done / total if total else 0
        seconds = time.monotonic() - self.start_s
        if TTY:
            filled = round(share * self.WIDTH)
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            print(f"\r  {self.label} {bar} {share:4.0%} {seconds:5.1f} s  {note}\033[K", end="",
                  flush=True)
        elif int(share * 10) != self.last_tenth:
            self.last_tenth = int(share * 10)
            say(f"  {self.label} {share:4.0%} {seconds:5.1f} s  {note}")

    def interrupt(self, text):
        print("\r\033[K" if TTY else "", end="")
        say("  " + text)

    def end(self):
        if TTY:
            print()


# ---- programs ------------------------------------------------------------------------------------


def find_program(build, name):
    found = [path for path in build.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        raise DemoError(f"there is no program '{name}' under {build}; build it first")
    return found[0]


def plain_environment():
    """Without what the user may have set for other jobs."""
    return {key: value for key, value in os.environ.items() if not key.startswith("DIAPAUSE_")}


def told(diapause, verb, job, config):
    """Returns what the command says about the job."""
    done = subprocess.run([diapause, verb, job, "--config", config], env=plain_environment(),
                          capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise DemoError(
            f"diapause {verb} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.rstrip()


def print_history(text):
    """Checkpoints in the colours of their levels, starts, failures and
    restarts, and what it cost."""
    styles = {"L2": "cyan", "L3": "blue", "L4": "green", "FAILED": "red", "went on": "yellow",
              "L1": "dim"}
    head, *lines = text.splitlines()
    say("  " + paint("bold", head))
    for line in lines:
        style = next((style for words, style in styles.items() if words in line), "plain")
        say("  " + paint(style, line))


# ---- what the runs leave behind ------------------------------------------------------------------


def read_ledger(global_path):
    """The events of the job's ledger, without lines that are still being written or
    that a crash cut short."""
    events = []
    for ledger in global_path.glob("*/ledger.jsonl"):
        for line in ledger.read_text(errors="replace").splitlines():
            try:
                events.append(json.loads(line))
            except json.JSONDecodeError:
                pass
    return events


def tail(path, lines=15):
    return "\n".join("    " + line
                     for line in path.read_text(errors="replace").splitlines()[-lines:])
