"""Install packages with uv where it can be had, otherwise with pip: `python scripts/install.py ARGUMENTS_OF_PIP`.

uv takes a fifth of pip's time. It does not read pip's settings, so those that say where packages are found are handed
to it. Where pip has been told something else that could matter, or uv does not manage, pip does the work.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# pip would compile every file of every package, most of which nothing ever imports: half of its time.
INSTALL = [*PIP, "install", "--quiet", "--progress-bar", "off", "--no-compile"]
# Where pip's settings are from; what comes later counts.
SECTIONS = ("global", "install", ":env:")
# Settings of pip that change neither what is installed nor from where.
NO_MATTER = {
    *("cache-dir", "default-timeout", "disable-pip-version-check", "no-cache-dir", "no-color", "no-compile"),
    *("no-input", "no-warn-script-location", "progress-bar", "quiet", "retries", "root-user-action", "timeout"),
}
SEVERAL = {"find-links": ("UV_FIND_LINKS", ","), "extra-index-url": ("UV_INDEX", " ")}
ONE = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}


def as_uv_has_it(listed: str) -> dict[str, str] | None:
    """Pip's settings, as `pip config list` shows them, as uv's environment; None where uv has nothing like one."""
    told: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        name, _, shown = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in told and key not in NO_MATTER:
            told[section][key] = str(ast.literal_eval(shown))
    settings = {key: value for section in SECTIONS for key, value in told[section].items()}
    if not settings.keys() <= SEVERAL.keys() | ONE.keys():
        return None
    found = {ONE[key]: value for key, value in settings.items() if key in ONE}
    for key, (variable, between) in SEVERAL.items():
        if key in settings:
            found[variable] = between.join(settings[key].split())
    return found


def install_with_uv(arguments: list[str]) -> bool:
    aloud = os.environ | {"PIP_QUIET": "0"}  # or else nothing is listed where pip is told to be quiet
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, env=aloud)
    settings = None if listed.returncode else as_uv_has_it(listed.stdout)
    if settings is None:
        return False
    if subprocess.run([*INSTALL, "-c", "constraints.txt", "uv"], stderr=subprocess.DEVNULL).returncode:
        return False
    # As with pip, the best version counts that any of the places has.
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--index-strategy", "unsafe-best-match"]
    options = ["--quiet", "--python", sys.executable]
    done = subprocess.run([*uv, *options, *arguments], env=settings | os.environ, stderr=subprocess.DEVNULL)
    return done.returncode == 0


if __name__ == "__main__":
    wanted = sys.argv[1:]
    sys.exit(0 if install_with_uv(wanted) else subprocess.run([*INSTALL, *wanted]).returncode)
