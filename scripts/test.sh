#!/bin/sh
# Runs every test of a build directory, says how long each part took, slowest first, repeats the names of
# the tests that failed, and ends with one line: N passed, N failed. Lint, the unit tests and the tests without
# root run one after the other beside the end-to-end tests, since all of these wait more than they compute.
# Usage: test.sh BUILD_DIR [quick]      quick: what belongs to the inner loop (`make check`)
set -u
build=$1
failed=0
passed=0
times=""
failures=""
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Runs a command with its output in a file, and writes its exit status and its seconds beside that.
run() { # run LOG COMMAND...
  to=$1; shift
  began=$(date +%s)
  "$@" >"$to" 2>&1
  echo $? >"$to.status"
  echo $(($(date +%s) - began)) >"$to.seconds"
}

count() { # count NAME PASSED FAILED LOG
  seconds=$(cat "$4.seconds")
  echo "== $1: $2 passed, $3 failed, $seconds s"
  times="$times$seconds s $1
"
  passed=$((passed + $2))
  failed=$((failed + $3))
}

remember() { # remember NAMES: of tests that failed, one a line
  [ -z "$1" ] || failures="$failures$1
"
}

judge() { # judge NAME: one test, which is whether the command succeeded that ran with this log
  name=$1
  cat "$logs/$name"
  if [ "$(cat "$logs/$name.status")" = 0 ]; then
    count "$name" 1 0 "$logs/$name"
  else
    count "$name" 0 1 "$logs/$name"
    remember "$name"
  fi
}

check() { # check NAME COMMAND...
  name=$1; shift
  run "$logs/$name" "$@"
  judge "$name"
}

format() {
  git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
}

unit() {
  # More programs than processors: most of them wait. Time enough for a sanitizer on a busy machine too: it is
  # there only to end what hangs.
  meson test -C "$build" --num-processes $((3 * $(nproc))) --timeout-multiplier 8 --print-errorlogs
}

count_unit() {
  log=$logs/unit
  grep -vE '^(ninja|[0-9]+/[0-9]+ .* OK |\[[0-9]+/[0-9]+\] )|^ *[0-9]+/[0-9]+ .* OK ' "$log" | tail -60
  ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$log")
  bad=$(awk '/^(Fail|Timeout|Unexpected Pass):/ {n += $NF} END {print n + 0}' "$log")
  [ -n "$ok" ] || { ok=0; bad=1; cat "$log"; }
  [ "$bad" != 0 ] || [ "$(cat "$log.status")" = 0 ] || bad=1
  count "unit test programs" "$ok" "$bad" "$log"
  remember "$(sed -nE 's/^ *[0-9]+\/[0-9]+ (.*[^ ]) +(FAIL|TIMEOUT|ERROR|UNEXPECTEDPASS) .*/\1: \2/p' "$log" | sort -u)"
}

count_e2e() { # count_e2e NAME LOG
  name=$1 log=$logs/$2
  ok=$(sed -n 's/^[#ℹ] pass \([0-9]*\)/\1/p' "$log" | tail -1)
  bad=$(sed -n 's/^[#ℹ] fail \([0-9]*\)/\1/p' "$log" | tail -1)
  cancelled=$(sed -n 's/^[#ℹ] cancelled \([0-9]*\)/\1/p' "$log" | tail -1)
  [ -n "$ok" ] && [ -n "$bad" ] || { ok=0; bad=1; }
  bad=$((bad + ${cancelled:-0}))
  # What no test says, but the machine or a sanitizer does afterwards.
  [ "$bad" != 0 ] || [ "$(cat "$log.status")" = 0 ] || bad=1
  count "$name" "$ok" "$bad" "$log"
  remember "$(sed -n 's/^failed: //p' "$log")"
}

e2e() { # e2e NAME [FILE...]: what it says is shown while it runs
  title=$1; shift
  began=$(date +%s)
  { BUILD_DIR=$build scripts/e2e.sh "$@" 2>&1; echo $? >"$logs/e2e.status"; } | tee "$logs/e2e"
  echo $(($(date +%s) - began)) >"$logs/e2e.seconds"
  count_e2e "$title" e2e
}

# The files in which a wall or a mount could differ; `make rootless` runs all of them.
without_root() {
  BUILD_DIR=$build E2E_USER=sandlot-rootless E2E_JOBS=${E2E_JOBS_WITHOUT_ROOT:-2} scripts/e2e.sh \
    tests/e2e/inside.test.mjs tests/e2e/exec.test.mjs tests/e2e/files.test.mjs tests/e2e/restart.test.mjs \
    tests/e2e/terminal.test.mjs tests/e2e/walls.test.mjs tests/e2e/egress.test.mjs tests/e2e/isolation_kernel.test.mjs \
    tests/e2e/isolation_files.test.mjs tests/e2e/isolation_resources.test.mjs
}

if [ "${2:-}" = quick ]; then
  check layers scripts/layers.sh
  check format format
  run "$logs/unit" unit &
  e2e "quick end-to-end tests" tests/e2e/api.test.mjs tests/e2e/bad_input.test.mjs tests/e2e/exec.test.mjs \
    tests/e2e/files.test.mjs tests/e2e/openapi.test.mjs tests/e2e/sandboxes.test.mjs tests/e2e/tokens.test.mjs
else
  { run "$logs/lint" scripts/lint.sh "$build"; run "$logs/unit" unit; run "$logs/without_root" without_root; } &
  e2e "end-to-end tests"
fi
wait
if [ -n "${E2E_FULL:-}" ] && [ "${2:-}" != quick ]; then
  # Each flow of the console in both themes and at three widths: tests/e2e/lib/views.mjs.
  for view in 1 2 3 4 5; do
    export E2E_VIEW=$view
    # shellcheck disable=SC2046 # names of files without spaces
    e2e "console, seen otherwise ($view)" $(grep -l takeTurns tests/e2e/console*.test.mjs)
  done
  unset E2E_VIEW
fi
if [ "${2:-}" != quick ]; then
  cat "$logs/without_root"
  count_e2e "end-to-end tests without root" without_root
  judge lint
fi
count_unit
printf '%s' "$times" | sort -rn
printf '%s' "$failures" | sed 's/^/failed: /'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
