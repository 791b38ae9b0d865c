"""Runs every wrong version of a chapter and records which checks it fails, and which checks call
each of the chapter's parts: ./learn test NN --record."""
import concurrent.futures
import os

from workbook import book, checks
from workbook.programs import callers
from workbook.wrong_versions import expect_rejected, keys, mistakes, wrong


def main(*chapters) -> None:
    for chapter in chapters:
        _record(chapter)


def _record(chapter: str) -> None:
    patches, fails = wrong.patches(chapter), {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: fails_of(chapter, *one[:2]), patches)
        for i, ((name, _, _), one) in enumerate(zip(patches, found), 1):
            fails[name] = one
            book.at_work(f"{chapter}: {i}/{len(patches)} {name}")
    sites = sorted({site for one in fails.values() for site in one})
    number = {site: str(i) for i, site in enumerate(sites)}
    recorded = {name: {number[site]: numbers for site, numbers in one.items()}
                for name, one in fails.items()}
    keys.renew(chapter, {"recorded": keys.of_checks(chapter), "checks": sites,
                         "mistakes": recorded})
    if chapter in book.chapters():
        callers.renew(chapter)
    book.at_work("")
    print(f"{chapter}: {len(patches)} wrong versions recorded")


def fails_of(chapter: str, mistake: str, part: str):
    """Check and expression -> numbers, first a check that rejects the mistake alone."""
    program = str(book.BUILD / wrong.program(chapter, mistake, part))
    environment = dict(os.environ, T2T_WRONG=mistake)
    result = checks.run(program, environment)
    if not result.failures and result.ended:  # it may end before a check that it fails: each alone
        each = (checks.only(program, environment, [name])
                for name in sum(checks.names(program), []))
        result = next((one for one in each if one.failures), result)
    if not result.failures:
        book.die(f"{chapter}: {mistake} fails no check; {result.ended or 'it ended well'}")
    fails = mistakes.fails_of(result.failures)
    first = next((site for site in fails if expect_rejected.by_check(
        site.split(" | ")[0], mistake, program)), None)
    if first is None:
        book.die(f"{chapter}: no check rejects {mistake} alone")
    return {first: fails[first], **dict(sorted(fails.items()))}
