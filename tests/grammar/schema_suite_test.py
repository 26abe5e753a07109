#!/usr/bin/env python3
"""Holds the grammars of JSON Schemas against the JSON Schema Test Suite, draft 2020-12:
schema_suite_test.py SCHEMA_CHECK BUILD_FOLDER [--table]

For each schema of the suite: either it is refused by name, or its grammar lets every valid instance
through and no invalid one. The suite is unpacked from a pinned source package in BUILD_FOLDER. Skips
(exit code 77) where that cannot be downloaded, unless the environment has CI=true.

An instance counts as let through if some order of its members is: a grammar has one order. Numbers
are written as grammars write them: whole ones without a fraction or an exponent."""

import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tarfile

SKIPPED = 77
PACKAGE = "jsonschema==4.23.0"  # Its source has the suite in it.
FOLDER = "json/tests/draft2020-12"
MOST_TEXTS = 5000  # Orders of one instance.

# Of the optional part: formats, and what regular expressions can be asked for.
OPTIONAL = ["optional/ecmascript-regex", "optional/non-bmp-regex"] + [
    f"optional/format/{name}" for name in
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid")]

# Files that hold schemas to be something else than what docs/constrained_decoding.md says.
LEFT_OUT = {
    "format": "formats must hold here, while by default they only annotate",
}

# Valid instances that are not let through, as docs/constrained_decoding.md says: e-mail addresses
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


def unavailable(reason):
    if os.environ.get("CI") == "true":
        sys.exit(f"failed: {reason}, and with CI=true this test may not be skipped")
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def unpacked_suite(folder):
    suite = folder / "suite"
    if suite.exists():
        return suite
    folder.mkdir(parents=True, exist_ok=True)
    environment = folder / "environment"
    commands = [
        [sys.executable, "-m", "venv", environment],
        [environment / "bin" / "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
         "--dest", folder, PACKAGE]]
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            unavailable(f"the suite's package {PACKAGE} cannot be downloaded: "
                        f"{result.stderr.strip().splitlines()[-1:]}")
    archive = next(folder.glob("jsonschema-*.tar.gz"))
    part = folder / "suite.part"
    with tarfile.open(archive) as packed:
        packed.extractall(part, filter="data")
    next(part.iterdir()).rename(suite)
    return suite


def orders(value):
    """The texts of a value: one for each order of the members of its objects."""
    if isinstance(value, dict):
        members = [[json.dumps(key, ensure_ascii=False) + ":" + text for text in orders(member)]
                   for key, member in value.items()]
        return ["{" + ",".join(chosen) + "}" for order in itertools.permutations(members)
                for chosen in itertools.product(*order)]
    if isinstance(value, list):
        return ["[" + ",".join(chosen) + "]"
                for chosen in itertools.product(*[orders(item) for item in value])]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return [json.dumps(int(value))]
    return [json.dumps(value, ensure_ascii=False)]


class Tally:
    def __init__(self):
        self.passed = self.refused = self.narrower = 0
        self.reasons = collections.Counter()


def check_file(name, groups, checker, problems):
    tally = Tally()
    for group in groups:
        request = {"schema": json.dumps(group["schema"], ensure_ascii=False),
                   "texts": [orders(test["data"])[:MOST_TEXTS] for test in group["tests"]]}
        checker.stdin.write(json.dumps(request) + "\n")
        checker.stdin.flush()
        answer = json.loads(checker.stdout.readline())
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
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as checker:
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
        checker.stdin.close()
    print(f"in all: {total.passed} passed, {total.refused} refused by name, "
          f"{total.narrower} narrower, {len(problems)} failed")
    if problems:
        sys.exit("\n".join(problems))
    if total.passed < 600:
        sys.exit("fewer tests ran than the suite has")


if __name__ == "__main__":
    main()
