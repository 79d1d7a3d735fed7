#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the console (web/) with npm and packs it for the daemon: writes console_assets.c and console.bin into a
# directory (src/api/console_assets.h). What was built before is taken again as long as nothing changed that goes into it.
# Where npm cannot be had or reached, the daemon is built without a console, and says so at /.
# Usage: web.sh DIRECTORY       (WEB_OFFLINE=1: as if npm could not be reached)
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../web"

# Everything that the build reads.
stamp=$({ find . ../src/api/schemas.json ../scripts/web_pack.mjs \( -name node_modules -o -name dist -o -name .pack -o -name schema.ts \) -prune -o -type f -print0 |
  LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-32)

# One of several builds at once does it; the others wait and then find it done.
mkdir -p .pack
exec 9>.pack/lock
flock 9

put() { # copies what is not the same already, so that ninja sees no change
  for name in console_assets.c console.bin; do
    cmp -s "$1/$name" "$out/$name" || cp "$1/$name" "$out/$name"
  done
}

without() {
  echo "the console is not built: $1" >&2
  mkdir -p .pack/absent
  : > .pack/absent/console.bin
  cat > .pack/absent/console_assets.c <<END
#include "api/console_assets.h"
const struct console_asset console_assets[1] = {{0}};
const size_t console_asset_count = 0;
const unsigned char console_bytes[1] = {0};
const char console_absence[] = "$1";
END
  put .pack/absent
  exit 0
}

if [ "${WEB_OFFLINE:-}" != 1 ] && [ "$(cat .pack/stamp 2>/dev/null)" = "$stamp" ] && [ -e .pack/console.bin ]; then
  put .pack
  exit 0
fi
[ "${WEB_OFFLINE:-}" != 1 ] || without "npm was not to be asked"
command -v npm >/dev/null || without "npm was not there when sandlotd was built"

# A failure is not repeated with every build; `make web` tries again.
[ "$(cat .pack/failed 2>/dev/null)" != "$stamp" ] || without "npm could not install its packages when sandlotd was built"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
  SCARF_ANALYTICS=false npm ci --no-audit --no-fund --ignore-scripts >"$log" 2>&1 9>&- || {
    tail -5 "$log" >&2
    echo "$stamp" > .pack/failed
    without "npm could not install its packages when sandlotd was built"
  }
  touch node_modules/.package-lock.json
fi
if ! { npm run -s build && node ../scripts/web_pack.mjs dist .pack; } >"$log" 2>&1 9>&-; then
  cat "$log" >&2
  echo "web.sh: the console does not build" >&2
  exit 1
fi
rm -f .pack/failed
echo "$stamp" > .pack/stamp
put .pack
