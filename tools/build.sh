#!/usr/bin/env bash
# build.sh DIRECTORY TARGET [CMAKE OPTION]...: configures DIRECTORY when its options changed (ninja
# itself notices changed CMake files) and builds the target. Shows progress on standard error, on
# one line where that is a terminal; says nothing when all is up to date.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=$1
target=$2
shift 2
export CXX=${CXX:-g++}
stamp=$directory/configured_with
wanted="$root $CXX $*"
if [[ ! -f $directory/build.ninja || ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
  echo "Configuring ${directory#"$root"/}" >&2
  mkdir -p "$directory"
  if ! cmake --fresh -S "$root" -B "$directory" -G Ninja "$@" \
    >"$directory/configure.log" 2>&1; then
    cat "$directory/configure.log" >&2
    exit 1
  fi
  printf '%s' "$wanted" >"$stamp"
fi

show_progress() {
  local line drawn=''
  while IFS= read -r line; do
    case $line in
      # Bookkeeping of ninja and CMake.
      '[0/'* | '-- '* | 'ninja: Entering directory'* | 'ninja: no work to do.') ;;
      '['[0-9]*'/'*)
        if [[ -t 2 ]]; then
          printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$line" >&2
          drawn=1
        else
          printf '%s\n' "$line" >&2
        fi
        ;;
      *)
        [[ -z $drawn ]] || printf '\r\033[K' >&2
        drawn=''
        printf '%s\n' "$line" >&2
        ;;
    esac
  done
  [[ -z $drawn ]] || printf '\r\033[K' >&2
}

NINJA_STATUS='[%f/%t] ' ninja -C "$directory" -j "$(nproc)" "$target" 2>&1 | show_progress
