#!/bin/sh
# Fails if an object compiled for one instruction set exports a symbol outside the namespace of that
# set: the linker might pick such a copy for every machine.
# usage: tools/check_isa_symbols.sh BUILD_DIR
set -eu
build=${1:?usage: tools/check_isa_symbols.sh BUILD_DIR}
objects=$(find "$build" -name 'kernels_*.cc.o' | sort)
if [ -z "$objects" ]; then
  echo "check_isa_symbols: no kernels_*.cc.o under $build; build foretoken_backend first" >&2
  exit 1
fi
status=0
for object in $objects; do
  isa=$(basename "$object" .cc.o)
  isa=${isa#kernels_}
  isa=${isa%_test} # Tests emulate some sets.
  # Capital letters are global, u, v and w weak; U is what the object itself asks for.
  strays=$(nm -C "$object" |
    awk '$2 ~ /^[A-TV-Zuvw]$/ { sub(/^[0-9a-f]+ . /, ""); print }' |
    grep -v "^foretoken::cpu::$isa::" || true)
  if [ -n "$strays" ]; then
    echo "$object exports symbols outside foretoken::cpu::$isa:" >&2
    echo "$strays" >&2
    status=1
  fi
done
exit $status
