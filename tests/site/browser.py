"""Chromium, as the site's checks use it: without a window, and with a note of each message and each request of a page.

The folder of the site is the first argument of check.py; Chromium is $T2T_CHROMIUM, or the first of a few usual names.
"""
import contextlib
import os
import pathlib
import shutil

from playwright.sync_api import sync_playwright

HOME = pathlib.Path(__file__).resolve().parents[2]
SITE = pathlib.Path(os.environ.get("T2T_SITE", HOME / "build/site")).resolve()
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def chromium():
    named = os.environ.get("T2T_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Reader:
    """A page of the browser. `messages` are errors and warnings of its console; `left` are requests for anything outside of
    the folder; `missing` are files that it wanted and that are not there."""

    def __init__(self, context):
        self.page, self.messages, self.left, self.missing = context.new_page(), [], [], []
        self.page.on("console", lambda m: self.messages.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("requestfailed", lambda request: self.missing.append(request.url))

    def _request(self, request):
        if not request.url.startswith((f"file://{SITE}/", "data:", "blob:")):
            self.left.append(request.url)

    def open(self, name):
        self.page.goto(f"file://{SITE}/{name}")
        return self.page

    def take(self):
        """What was noted since the last call: {what: [...]}, of what there is."""
        noted = {"console": self.messages[:], "requests that leave the folder": self.left[:], "missing files": self.missing[:]}
        self.messages.clear(), self.left.clear(), self.missing.clear()
        return {what: found for what, found in noted.items() if found}


class Browser:
    """Started once for all checks."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        playwright = self.stack.enter_context(sync_playwright())
        sandbox = [] if os.getuid() else ["--no-sandbox"]  # which Chromium does not start for root
        self.browser = playwright.chromium.launch(executable_path=chromium(), args=sandbox + ["--disable-features=BackForwardCache"])
        self.stack.callback(self.browser.close)

    def reader(self, width=1400, scheme="light", **settings):
        context = self.browser.new_context(viewport={"width": width, "height": 400}, color_scheme=scheme, **settings)
        context.set_default_timeout(120_000)  # milliseconds: other programs may use the processor as well
        return Reader(context)


_started = []


def browser():
    if not _started:
        _started.append(Browser())
    return _started[0]


def close():
    while _started:
        _started.pop().stack.close()


def pages():
    """The book's own pages, without those of sources."""
    return sorted(one.name for one in SITE.glob("*.html") if one.name not in ("404.html",))
