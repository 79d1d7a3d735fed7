#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the end-to-end tests against the real daemon, as root, and checks that the machine holds
# afterwards what it held before. BUILD_DIR chooses the build (default: build), E2E_JOBS how many
# files run at once (default: 5); arguments are test files (default: all). The last lines are node's
# counters: "# pass N", "# fail N".
# With E2E_USER the daemons are started by that ordinary user, in cgroups of its own with E2E_DELEGATED,
# and tests of what only root can have (tests/e2e/lib/differences.mjs) are skipped.
set -eu
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "e2e: not proven: these tests need root, also to look at an ordinary user's daemon from outside" >&2
  exit 1
fi
if [ $# -eq 0 ]; then
  set -- tests/e2e/*.test.mjs
fi

scripts/test_packages.sh

# A sanitizer makes programs several times as slow.
case "${BUILD_DIR:-}" in *asan* | *tsan*)
  export E2E_PATIENCE="${E2E_PATIENCE:-4}"
  E2E_TIMEOUT_MS=${E2E_TIMEOUT_MS:-3600000} ;;
esac

# All instances live below one directory of this run, which tells them from those of another.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/sandlot-e2e.XXXXXX")
export TMPDIR
chmod 755 "$TMPDIR"
tap=$TMPDIR/tap
trap 'rm -rf "$TMPDIR"' EXIT

# Processes, mounts and directories of the run, one a line. (Cgroups carry no name of ours; each file
# of tests looks after its own.)
remains() {
  # The directory is read from standard input, so that this grep does not find itself.
  printf '%s/\n' "$TMPDIR" | grep -laFf - /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
    words=$(tr '\0' ' ' <"$file" 2>/dev/null) || continue
    [ -z "$words" ] || echo "process ${file%/cmdline}: $words"
  done
  grep -F "$TMPDIR/" /proc/self/mountinfo | sed 's/^/mount /' || true
  find "$TMPDIR" -mindepth 1 -maxdepth 1 -name 'sandlot-e2e-*' | sed 's/^/directory /'
}

# What sanitizers say of any program that has one, a process a file: of clients and every daemon. (Of UBSan
# each report is the end of the program: see meson.build.)
reports=$TMPDIR/reports
mkdir -m 1777 "$reports"
export ASAN_OPTIONS="log_path=$reports/report:${ASAN_OPTIONS:-}"
export TSAN_OPTIONS="log_path=$reports/report:${TSAN_OPTIONS:-}"

[ -z "${E2E_USER:-}" ] || E2E_NAMES=$(node tests/e2e/lib/differences.mjs)
export E2E_NAMES E2E_TIMEOUT_MS

status=0
node tests/e2e/lib/run.mjs "$tap" "$@" || status=$?

left=$(remains)
if [ -n "$left" ]; then
  echo "e2e: left behind on the machine:" >&2
  echo "$left" >&2
  status=1
fi
if [ -n "$(ls "$reports")" ]; then
  echo "e2e: sanitizers report:" >&2
  cat "$reports"/* >&2
  status=1
fi
# The counters in the form of node's TAP, for whoever reads this with a program.
grep -E '^# (tests|pass|fail|cancelled|skipped|todo|duration_ms) ' "$tap" || status=1
exit "$status"
