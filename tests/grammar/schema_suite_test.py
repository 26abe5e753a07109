#!/usr/bin/env python3
"""Holds the grammars of JSON Schemas against the JSON Schema Test Suite, draft 2020-12:
schema_suite_test.py SCHEMA_CHECK BUILD_FOLDER [--table]

For each schema of the suite: either it is refused by name, or its grammar lets every valid instance
through and no invalid one. The suite is unpacked from a pinned source package in BUILD_FOLDER. Skips
(exit code 77) where that cannot be downloaded, unless the environment has CI=true."""

import collections
import json
import pathlib
import sys
import tarfile

from checking import Checker

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from python_packages import download_source

PACKAGE = "jsonschema==4.23.0"
FOLDER = "json/tests/draft2020-12"

# The files that count of the optional part: formats, and what regular expressions can be asked for.
OPTIONAL = ["optional/ecmascript-regex", "optional/non-bmp-regex"] + [
    f"optional/format/{name}" for name in
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "json-pointer",
     "relative-json-pointer", "time", "uri", "uri-reference", "uuid")]

# Files that hold schemas to be something else than what docs/do/constrain.md says.
LEFT_OUT = {
    "format": "formats must hold here, while by default they only annotate",
}

# Valid instances that are not let through, as docs/do/constrain.md says: e-mail addresses
# are plain ones, hosts are no IPv6 addresses, leap seconds are those of UTC.
NARROWER = {
    "optional/format/email": [
        "a quoted string with a space in the local part is valid",
        "a quoted string with a double dot in the local part is valid",
        "a quoted string with a @ in the local part is valid",
        "an IPv4-address-literal after the @ is valid",
        "an IPv6-address-literal after the @ is valid"],
    "optional/format/date-time": [
        "a valid date-time with a leap second, with minus offset"],
    "optional/format/uri": ["a valid URL "],
    "optional/format/time": [
        "valid leap second, positive time-offset",
        "valid leap second, large positive time-offset",
        "valid leap second, negative time-offset",
        "valid leap second, large negative time-offset"],
}


def unpacked_suite(folder):
    suite = folder / "suite"
    if suite.exists():
        return suite
    download_source(folder, PACKAGE)
    part = folder / "suite.part"
    with tarfile.open(next(folder.glob("jsonschema-*.tar.gz"))) as packed:
        packed.extractall(part, filter="data")
    next(part.iterdir()).rename(suite)
    return suite


class Tally:
    def __init__(self):
        self.passed = self.refused = self.narrower = 0
        self.reasons = collections.Counter()


def check_file(name, groups, checker, problems):
    tally = Tally()
    for group in groups:
        answer = checker.check(group["schema"], [test["data"] for test in group["tests"]])
        if "refused" in answer:
            tally.refused += len(group["tests"])
            tally.reasons[answer["refused"]] += len(group["tests"])
            nothing = not any(test["valid"] for test in group["tests"])
            if "no value matches it" in answer["refused"] and not nothing:
                problems.append(f"{name}: {group['description']}: {answer['refused']}")
            continue
        for test, accepted in zip(group["tests"], answer["accepted"]):
            if accepted == test["valid"]:
                tally.passed += 1
                continue
            if not accepted and test["description"] in NARROWER.get(name, []):
                tally.narrower += 1
                continue
            problems.append(f"{name}: {group['description']}: {test['description']}: "
                            f"{'let through' if accepted else 'not let through'}: "
                            f"{json.dumps(test['data'], ensure_ascii=False)[:200]} by "
                            f"{json.dumps(group['schema'], ensure_ascii=False)[:300]}")
    return tally


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    tests = unpacked_suite(folder) / FOLDER
    names = sorted(path.stem for path in tests.glob("*.json")) + OPTIONAL
    problems = []
    total = Tally()
    checker = Checker(program)
    for name in names:
        if name in LEFT_OUT:
            continue
        groups = json.loads((tests / f"{name}.json").read_text(encoding="utf-8"))
        before = len(problems)
        tally = check_file(name, groups, checker, problems)
        total.passed += tally.passed
        total.refused += tally.refused
        total.narrower += tally.narrower
        print(f"{name}: {tally.passed} passed, {tally.refused} refused by name, "
              f"{tally.narrower} narrower, {len(problems) - before} failed")
        for reason, count in tally.reasons.most_common() if "--table" in sys.argv else []:
            print(f"    {count} {reason}")
    print(f"in all: {total.passed} passed, {total.refused} refused by name, "
          f"{total.narrower} narrower, {len(problems)} failed")
    if problems:
        sys.exit("\n".join(problems))
    if total.passed < 600:
        sys.exit("fewer tests ran than the suite has")


if __name__ == "__main__":
    main()
