#!/usr/bin/env bash
# install_dependencies.sh GROUP...: installs the Debian packages of the groups that are missing.
# Groups: run (to build and run), test (to build the tests), ci (for the checks of .ci/run).
set -euo pipefail

packages=()
for group in "$@"; do
  case $group in
    run)
      packages+=(g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev
        libsentencepiece-dev libpcre2-dev libicu-dev libxxhash-dev libssl-dev
        libcurl4-openssl-dev libboost-dev prometheus-cpp-dev libedit-dev)
      ;;
    test)
      # OpenBLAS multiplies matrices seven times as fast as libblas3, which torch brings.
      packages+=(libgtest-dev libgmock-dev libbenchmark-dev python3 python3-venv
        python3-numpy python3-torch libopenblas0-serial openssl prometheus)
      ;;
    ci) packages+=(git python3 binutils clang-14 libclang-rt-14-dev clang-format-14 chromium) ;;
    *)
      echo "install_dependencies.sh: unknown group '$group'; known: run, test, ci" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system, so nothing is installed for you. Needed: ${packages[*]}" >&2
  exit 0
fi

# dpkg-query fails for packages it has never heard of, which is what we are looking for.
installed=" $(dpkg-query -W -f='${db:Status-Status}=${Package} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" installed=$package "* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
as_root=(env)
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "Missing Debian packages, and neither root nor sudo to install them." \
      "As root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi
apt_get=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
# A stale or partly unreachable index need not stop the installation, which says what it lacks.
"${apt_get[@]}" update >"$log" 2>&1 || true
if ! "${apt_get[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
  cat "$log" >&2
  echo "apt-get could not install: ${missing[*]} (its messages are above)." >&2
  exit 1
fi
