"""Checks the site in Chromium: check.py [names of unittest]. Status 77 where Chromium is not installed: then the checks did
not run, and a line says so.

Each file of checks has a process and a browser of its own, and there are as many at a time as processors.
"""
import concurrent.futures
import io
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402

FILES = ["pages_test", "reading_test", "folder_test", "pieces_test", "replay_test"]  # the longest first


def run(name):
    """(how many checks ran, whether all passed, what unittest said)."""
    said = io.StringIO()
    result = unittest.TextTestRunner(said, verbosity=1).run(unittest.defaultTestLoader.loadTestsFromName(name))
    browser.close()
    return result.testsRun, result.wasSuccessful(), said.getvalue()


if __name__ == "__main__":
    if not browser.chromium():
        print("Chromium is not installed, so that the site is not checked (Debian: apt-get install chromium).")
        sys.exit(77)
    start, count, passed = time.monotonic(), 0, True
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as processes:
        for ran, good, said in processes.map(run, sys.argv[1:] or FILES):
            count, passed = count + ran, passed and good
            print(said, end="", flush=True)
    print(f"{count} checks of the site, {len(browser.pages())} pages, {time.monotonic() - start:.0f} s")
    sys.exit(not passed)
