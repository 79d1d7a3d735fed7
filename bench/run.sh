#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures Sandlot beside Docker, crun, bubblewrap and nginx, interleaved in one run; prints a
# Markdown table and writes bench/results/latest.json. Needs root. How it measures: bench/README.md.
# Usage: run.sh BUILD [--quick] [--only a,c]       BENCH_ARGS has more of these, for `make bench`
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD [--quick] [--only a,c]}" && pwd)
shift

if [ "$(id -u)" != 0 ]; then
  echo "bench: needs root, to start sandlotd and dockerd" >&2
  exit 1
fi
mkdir -p "$here/results"
cc -O2 -Wall -Wextra -D_GNU_SOURCE -o "$here/results/probe" "$here"/probe/*.c -lpthread
# shellcheck disable=SC2086
exec node "$here/main.mjs" "$build" "$here/results" "$@" ${BENCH_ARGS:-}
