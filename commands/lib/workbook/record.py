"""Runs every wrong version of a chapter and records which checks it fails: ./learn test NN --record."""
import json
import os
import sys

import checks
import house
import mistakes


def main(name):
    fails = {}
    wrong = mistakes.patches(name)
    for i, (mistake, _, _) in enumerate(wrong):
        if sys.stderr.isatty():
            print(f"\r\033[K  {name}: {i}/{len(wrong)} {mistake}", end="", file=sys.stderr)
        result = checks.run(house.BUILD / f"{name}_{mistake}", os.environ)
        if not result.failures:
            house.die(f"{name}: {mistake} fails no check; {result.ended or 'it ended well'}")
        fails[mistake] = mistakes.fails_of(result.failures)
    sites = sorted({site for one in fails.values() for site in one})
    number = {site: i for i, site in enumerate(sites)}
    lines = [f"  {json.dumps(m)}: {json.dumps({number[s]: n for s, n in sorted(one.items())})}" for m, one in fails.items()]
    texts = [f"  {json.dumps(site, ensure_ascii=False)}" for site in sites]
    mistakes.record_of(name).write_text(
        '{"checks": [\n' + ",\n".join(texts) + '\n], "mistakes": {\n' + ",\n".join(lines) + "\n}}\n")
    print(f"\r\033[K{name}: {len(wrong)} wrong versions recorded" if sys.stderr.isatty() else
          f"{name}: {len(wrong)} wrong versions recorded")


if __name__ == "__main__":
    for chapter in sys.argv[1:]:
        main(chapter)
