#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the end-to-end tests need from npm (tests/e2e/package.json), unless it is there already.
set -eu
cd "$(dirname "$0")/../tests/e2e"
[ node_modules/.package-lock.json -nt package-lock.json ] && exit 0
# One of several runs that begin at once installs; the others wait and then find it done.
exec 9>package.json.lock
flock 9
rm -f package.json.lock
[ node_modules/.package-lock.json -nt package-lock.json ] && exit 0
log=$(mktemp)
npm ci --no-audit --no-fund --ignore-scripts >"$log" 2>&1 || {
  tail -20 "$log" >&2
  echo "e2e: not proven: npm could not install the packages of tests/e2e; the whole log is $log" >&2
  exit 1
}
touch node_modules/.package-lock.json
rm -f "$log"
