#!/usr/bin/env python3
"""Says where the time of a build goes, by ninja's log, and checks that it has not grown:

    build_report.py BUILD_FOLDER [--steps N] [--check FILE | --write FILE]

A row is one target: its folder (the one that all its sources are in), its compilations and what
links them. Batches of several files belong to their target. A step's seconds are wall time. Ninja
runs as many steps at once as there are cores, so the sum over all steps is about what they take of
the processors, and half of it or less is what one waits for. The log keeps the last run of each
step, so a build of several goes counts once.

Machines differ, so the check does not compare seconds. It compiles one small file that never changes
(tools/build_reference.cc), as many times at once as there are cores, and divides: the build's cost is
its seconds over those of that file, about the same number on any machine with the same compiler.
--write FILE writes that number, with what it was measured on; --check FILE fails where it is now
more than 5 % above, unless the message of the newest commit has a line `Build time: REASON`.

Nothing is checked where ccache is in use, which may give results of earlier builds, or where the
build folder's compiler is another version than the file names. The numbers are only as good as the
machine was quiet: programs beside a build lengthen its steps and not the small file."""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "tools" / "build_reference.cc"
GROWTH = 1.05  # What the check lets through.
OBJECT = re.compile(r"(?:(.*)/)?CMakeFiles/([^/]+)\.dir/(.*)\.(?:o|gch)$")

Step = collections.namedtuple("Step", "seconds output")


def read_steps(folder):
    """The last run of every step that ninja's log has. A step with several outputs counts once."""
    last = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, command = line.split("\t")
        last[output] = (int(begin), int(end), command)
    steps = {run: Step((run[1] - run[0]) / 1000, output) for output, run in last.items()}
    return sorted(steps.values(), reverse=True)


def target_of(output):
    """The target that a step's output belongs to."""
    match = OBJECT.match(output)
    if match:
        return match.group(2)
    name = pathlib.PurePath(output).name
    return re.sub(r"^lib(.*)\.(a|so)$", r"\1", name)


def cached(folder, name):
    """A variable of CMake's cache in the build folder, or None."""
    match = re.search(rf"^{name}:\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.MULTILINE)
    return match and match.group(1)


def sources_of(folder, output):
    """The sources that an object is made of, by their paths in the checkout."""
    match = OBJECT.match(output)
    if not match:
        return []
    directory, target, source = match.groups()
    batch = folder / (directory or "") / "CMakeFiles" / f"{target}.dir" / source
    if batch.is_file():  # Several sources, which it includes by their whole paths.
        root = cached(folder, "CMAKE_HOME_DIRECTORY")
        included = re.findall(r'#include "(.*)"', batch.read_text())
        return [os.path.relpath(path, root) for path in included]
    return [os.path.normpath(os.path.join(directory or "", source))]


def report(folder, steps, most):
    seconds, sources = collections.Counter(), collections.defaultdict(list)
    for step in steps:
        seconds[target_of(step.output)] += step.seconds
        sources[target_of(step.output)] += sources_of(folder, step.output)
    print("seconds  target (folder)")
    for target, spent in seconds.most_common():
        if spent < 1:
            break
        place = {os.path.dirname(path) for path in sources[target]}
        print(f"{spent:7.1f}  {target}" + (f" ({os.path.commonpath(place)})" if place else ""))
    print(f"\nThe slowest of {len(steps)} steps:")
    for step in steps[:most]:
        print(f"{step.seconds:7.1f}  {step.output}")


def version_of(compiler):
    output = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.splitlines()[0]


def reference_seconds(compiler):
    """What the small file takes beside as many others as there are cores; the best of three."""
    def compile_once(_):
        begin = time.monotonic()
        subprocess.run([compiler, "-std=c++20", "-O2", "-c", REFERENCE, "-o", os.devnull],
                       check=True)
        return time.monotonic() - begin

    cores = os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        rounds = [list(pool.map(compile_once, range(cores))) for _ in range(3)]
    return min(sum(seconds) / cores for seconds in rounds)


def machine():
    models = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} x {models[0] if models else platform.machine()}"


def reason():
    """The newest commit's reason for a build that takes longer, or None."""
    message = subprocess.run(["git", "log", "-1", "--format=%B"], cwd=ROOT, capture_output=True,
                             text=True, check=True).stdout
    match = re.search(r"^Build time: *(\S.*)$", message, re.MULTILINE)
    return match and match.group(1)


def check(measured, file):
    """Exits with a message where the build costs more than the file says."""
    known = json.loads(file.read_text())
    if known["compiler"] != measured["compiler"]:
        print(f"not checked: {file} is about {known['compiler']}")
        return
    growth = measured["cost"] / known["cost"]
    print(f"The cost is {measured['cost']:.1f}, {100 * (growth - 1):+.1f} % of the "
          f"{known['cost']:.1f} that {file} has.")
    if growth <= GROWTH:
        return
    said = reason()
    if said is None:
        sys.exit("The build takes longer than it may: make it shorter, or say in the commit's "
                 "message `Build time: REASON` and write the new number by --write.")
    print(f"The newest commit says why: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=15, help="how many of the slowest are shown")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()

    steps = read_steps(options.folder)
    report(options.folder, steps, options.steps)
    total = sum(step.seconds for step in steps)
    print(f"\nAll steps: {total:.0f} s")
    if not options.check and not options.write:
        return
    if not (cached(options.folder, "CCACHE") or "NOTFOUND").endswith("NOTFOUND"):
        print("not checked: ccache is in use, and gives results of earlier builds")
        return
    compiler = cached(options.folder, "CMAKE_CXX_COMPILER")
    reference = reference_seconds(compiler)
    measured = {"cost": round(total / reference, 1), "build_seconds": round(total),
                "reference_seconds": round(reference, 2), "compiler": version_of(compiler),
                "machine": machine()}
    print(f"The reference file takes {reference:.2f} s here.")
    if options.write:
        options.write.write_text(json.dumps(measured, indent=2) + "\n")
    if options.check:
        check(measured, options.check)


if __name__ == "__main__":
    main()
