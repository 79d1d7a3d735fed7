#!/bin/sh
# Checks the format, the layers, the console's types, clang's warnings and those checks of clang-tidy that only
# read: half a minute of one core, so that `make test` can do it. With `full` clang also builds all of it, and its
# analyzer looks for what can go wrong on any path, which takes a quarter of an hour of one core.
# Usage: lint.sh BUILD_DIR [full]
set -eu
cd "$(dirname "$0")/.."
build=$1
git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
scripts/layers.sh
# The console's types, where its packages are (web.sh).
[ ! -d web/node_modules ] || (cd web && npm run -s check 2>&1)

tidy() { # tidy DIRECTORY_OF_COMPILE_COMMANDS FILES_AT_A_TIME CHECKS
  # Left out: what is only compiled with fail points, what defines what lint.h redefines, and generators.
  git ls-files 'src/*.c' | grep -vE '^src/base/(err|fail_point).c|_gen.c$' | sed "s|^|$PWD/|" |
    xargs -P "$(nproc)" -n "$2" clang-tidy -p "$1" --quiet --checks="-*,$3" --warnings-as-errors='*' \
      --extra-arg=-include "--extra-arg=$PWD/scripts/lint.h" 2>"$1/errors" || { cat "$1/errors"; return 1; }
}

# As gcc compiles it, without what only gcc knows.
mkdir -p "$build/lint"
sed -E 's/-ftrivial-auto-var-init=zero|-Wno-format-truncation|-Werror//g' "$build/compile_commands.json" >"$build/lint/compile_commands.json"
# Texts of SQL are joined of many literals, which looks like a missing comma.
tidy "$build/lint" 24 'clang-diagnostic-*,bugprone-use-after-move,bugprone-suspicious-*,-bugprone-suspicious-missing-comma'
[ "${2:-}" = full ] || exit 0

# With AddressSanitizer, because the keeper and the agent are then built as all else is.
[ -f build-clang/build.ninja ] || CC=clang meson setup build-clang -Db_sanitize=address -Db_lundef=false >/dev/null
ninja -C build-clang --quiet

# Not asked: DeadStores knows no auto_free, Malloc no count of references, and the two of insecureAPI judge calls, not
# what was checked before them. One file at a time, because the analyzer mistakes va_list in all but its first.
checks='clang-analyzer-*,-clang-analyzer-deadcode.DeadStores,-clang-analyzer-unix.Malloc'
checks="$checks,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-clang-analyzer-security.insecureAPI.strcpy"
tidy build-clang 1 "$checks"
