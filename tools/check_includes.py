#!/usr/bin/env python3
"""Compiles sources each by itself, which shows what one has forgotten to include: builds hide that,
as they compile files in batches and read some headers before.

    check_includes.py [FILE...]

By default these are the MOST sources that were changed last; a change to x.h counts as one to x.cc.
Among those of one commit, and where there is no history, a hash of the path chooses. The compiler
reads their syntax and generates nothing: build/includes is configured and never built.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "includes"
MOST = 60


def git(*words):
    """The lines that a git command prints; none where it fails or where there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False,
                              text=True)
    except OSError:
        return []
    return done.stdout.splitlines()


def compile_commands():
    """The words of the command that compiles a source, by its path from the root."""
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release",
                    "-DFORETOKEN_UNITY=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    return {os.path.relpath(entry["file"], ROOT): shlex.split(entry["command"])
            for entry in entries if BUILD not in pathlib.Path(entry["file"]).parents}


def last_changed_first(sources):
    commits = {}  # How many lie behind the last one that changed a source.
    behind = 0
    for line in git("diff", "--name-only", "HEAD") + git("log", "--name-only", "--format=/"):
        if line == "/":
            behind += 1
        else:
            commits.setdefault(os.path.splitext(line)[0] + ".cc", behind)
    return sorted(sources, key=lambda source: (commits.get(source, behind + 1),
                                               hashlib.sha256(source.encode()).digest()))


def compiles(command):
    # Without warnings: other builds have them.
    return subprocess.run([*command, "-fsyntax-only", "-w"], cwd=BUILD, check=False).returncode == 0


def main():
    commands = compile_commands()
    sources = [os.path.relpath(path, ROOT) for path in sys.argv[1:]]
    sources = sources or last_changed_first(commands)[:MOST]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [source for source, good in
                  zip(sources, pool.map(lambda source: compiles(commands[source]), sources))
                  if not good]
    for source in faults:
        print(f"{source} cannot be compiled by itself: what does it not include?", file=sys.stderr)
    if faults:
        return 1
    print(f"includes: {len(sources)} of {len(commands)} files compile by themselves")
    return 0


if __name__ == "__main__":
    sys.exit(main())
