#!/bin/sh
# Runs every test of a build directory and ends with one line: N passed, N failed.
# Usage: test.sh BUILD_DIR
set -u
build=$1
failed=0
passed=0

count() { # count NAME PASSED FAILED
  echo "== $1: $2 passed, $3 failed"
  passed=$((passed + $2))
  failed=$((failed + $3))
}

scripts/layers.sh && count layers 1 0 || count layers 0 1

log=$(mktemp)
# Time enough for a sanitizer on a busy machine too: it is there only to end what hangs.
meson test -C "$build" --timeout-multiplier 8 --print-errorlogs >"$log" 2>&1
grep -vE '^(ninja|[0-9]+/[0-9]+ .* OK )' "$log" | tail -60
ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$log")
bad=$(awk '/^(Fail|Timeout|Unexpected Pass):/ {n += $NF} END {print n + 0}' "$log")
[ -n "$ok" ] || { ok=0; bad=1; cat "$log"; }
count "unit test programs" "$ok" "$bad"

e2e() { # e2e NAME [FILE...]
  name=$1; shift
  { BUILD_DIR=$build scripts/e2e.sh "$@" 2>&1; echo $? >"$log.status"; } | tee "$log"
  ok=$(sed -n 's/^[#ℹ] pass \([0-9]*\)/\1/p' "$log" | tail -1)
  bad=$(sed -n 's/^[#ℹ] fail \([0-9]*\)/\1/p' "$log" | tail -1)
  cancelled=$(sed -n 's/^[#ℹ] cancelled \([0-9]*\)/\1/p' "$log" | tail -1)
  [ -n "$ok" ] && [ -n "$bad" ] || { ok=0; bad=1; }
  bad=$((bad + ${cancelled:-0}))
  # What no test says, but the machine or a sanitizer does afterwards.
  [ "$bad" != 0 ] || [ "$(cat "$log.status")" = 0 ] || bad=1
  count "$name" "$ok" "$bad"
}

e2e "end-to-end tests"
# The files in which a wall or a mount could differ; `make rootless` runs all of them.
E2E_USER=sandlot-rootless
export E2E_USER
e2e "end-to-end tests without root" tests/e2e/inside.test.mjs tests/e2e/exec.test.mjs tests/e2e/files.test.mjs \
  tests/e2e/restart.test.mjs tests/e2e/terminal.test.mjs tests/e2e/walls.test.mjs tests/e2e/egress.test.mjs \
  tests/e2e/isolation_kernel.test.mjs tests/e2e/isolation_files.test.mjs tests/e2e/isolation_resources.test.mjs
rm -f "$log" "$log.status"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
