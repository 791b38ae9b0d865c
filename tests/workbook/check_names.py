"""The names of all checks, as the tests' sources have them."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]


def all_of_them():
    texts = (re.sub(r'"\s*\n\s*"', "", test.read_text()) for test in TESTS.rglob("*_test.cpp"))
    found = (name for text in texts for name in re.findall(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', text))
    return {name.replace('\\"', '"').replace("\\\\", "\\") for name in found}
