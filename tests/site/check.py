"""Checks the site in Chromium: check.py [names of unittest]. Status 77 where Chromium is not installed: then the checks did
not run, and a line says so."""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402

if __name__ == "__main__":
    if not browser.chromium():
        print("Chromium is not installed, so that the site is not checked (Debian: apt-get install chromium).")
        sys.exit(77)
    start = time.monotonic()
    names = sys.argv[1:] or ["pages_test", "reading_test", "folder_test", "pieces_test", "replay_test"]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(sys.stdout, verbosity=1).run(suite)
    browser.close()
    print(f"{result.testsRun} checks of the site, {len(browser.pages())} pages, {time.monotonic() - start:.0f} s")
    sys.exit(not result.wasSuccessful())
