#!/usr/bin/env bash
# check_tidy.sh [FILE...]: runs clang-tidy 14 with .clang-tidy over the given sources, or over all
# of src/ and apps/ (minutes). Needs a configured build; ./test makes the one it uses.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${FORETOKEN_BUILD_DIRECTORY:-build/test}
if [[ ! -f $build/compile_commands.json ]]; then
  echo "There is no $build/compile_commands.json; run ./test -N first." >&2
  exit 2
fi
if (($# == 0)); then
  mapfile -t files < <(git ls-files 'src/*.cc' 'apps/*.cc')
  set -- "${files[@]}"
fi
printf '%s\0' "$@" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-14 -p "$build" --quiet
