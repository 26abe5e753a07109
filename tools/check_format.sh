#!/usr/bin/env bash
# Checks that every tracked C++ file is as clang-format 14 would write it, and warns of long files.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
soft_cap=500 # Lines; CONTRIBUTING.md.
mapfile -t files < <(git ls-files '*.h' '*.cc')

for file in "${files[@]}"; do
  lines=$(wc -l <"$file")
  ((lines <= soft_cap)) || echo "warning: $file has $lines lines; aim for at most $soft_cap" >&2
done

if ! clang-format-14 --dry-run -Werror "${files[@]}"; then
  echo "Format differs; run: clang-format-14 -i FILE" >&2
  exit 1
fi
echo "format: ${#files[@]} files are clean"
