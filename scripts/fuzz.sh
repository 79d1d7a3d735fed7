#!/bin/sh
# Runs each harness of tests/fuzz under libFuzzer, with AddressSanitizer and UBSan, for a while.
# Usage: fuzz.sh [SECONDS]   (60 each if not given)
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
flags="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
[ -f build-fuzz/build.ninja ] ||
  CC=clang meson setup build-fuzz -Db_lundef=false -Dfuzzing=true "-Dc_args=$flags" "-Dc_link_args=$flags" >/dev/null
failed=0
for harness in tests/fuzz/fuzz_*.c; do
  name=$(basename "$harness" .c)
  ninja -C build-fuzz "tests/fuzz/$name" >/dev/null
  corpus=build-fuzz/corpus-${name#fuzz_}
  mkdir -p "$corpus"
  echo "== $name, $seconds s"
  "build-fuzz/tests/fuzz/$name" -max_total_time="$seconds" -print_final_stats=1 "$corpus" \
    "tests/fuzz/corpus/${name#fuzz_}" 2>&1 | grep -E '^stat::|ERROR|SUMMARY' || true
  ls crash-* leak-* timeout-* 2>/dev/null && failed=1
done
exit $failed
