#!/bin/sh
# Checks the format, the layers, that clang builds it too, and what static analysis finds.
set -eu
cd "$(dirname "$0")/.."
git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
scripts/layers.sh
[ -f build-clang/build.ninja ] || CC=clang meson setup build-clang >/dev/null
ninja -C build-clang --quiet
git ls-files 'src/*.c' | grep -vE '^src/keeper/|^src/agent/main.c' |
  xargs -P 2 -n 8 clang-tidy -p build-clang --quiet \
    --checks='-*,clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,bugprone-use-after-move,bugprone-suspicious-*' \
    --warnings-as-errors='*'
echo "lint: fine"
