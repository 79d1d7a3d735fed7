#!/bin/sh
# Checks who includes whom: an include names its directory, and only directories below are allowed.
set -eu
cd "$(dirname "$0")/.."

allowed() {
  case "$1" in
    base) echo base ;;
    doctor) echo base doctor ;;
    event) echo base event ;;
    wire) echo base wire ;;
    model) echo base model ;;
    store) echo base wire model store ;;
    driver) echo base wire model driver ;;
    egress) echo base event wire model http egress ;;
    core) echo base event wire model store driver blob image egress core ;;
    blob) echo base blob ;;
    image) echo base blob image ;;
    tls) echo base event tls ;;
    trace) echo base trace ;;
    http) echo base event tls http ;;
    proxy) echo base event http proxy ;;
    auth) echo base wire model store http auth ;;
    launch) echo base event wire model store driver blob image egress core trace launch ;;
    api) echo base doctor event wire model store driver blob image egress core trace launch http auth proxy api ;;
    daemon) echo base doctor event wire model store driver blob image egress core trace launch tls http auth proxy api daemon ;;
    keeper) echo base wire keeper ;;
    agent) echo base wire agent ;;
    cli) echo base doctor cli ;;
  esac
}

bad=0
for dir in src/*/; do
  layer=$(basename "$dir")
  permitted=$(allowed "$layer")
  [ -n "$permitted" ] || { echo "layers: $dir has no rule in scripts/layers.sh" >&2; bad=1; continue; }
  for include in $(grep -rhoE '#include "[^"]+"' "$dir" | sed 's/#include "\(.*\)"/\1/' | sort -u); do
    target=${include%%/*}
    case "$include" in seccomp_filters.h | image_blank.h | system_call_names.h) continue ;; esac # made by the build
    case " $permitted " in
      *" $target "*) ;;
      *) echo "layers: $layer may not include \"$include\"" >&2; bad=1 ;;
    esac
  done
done

# The order of a layer's directories, lowest first; a dot is the layer's own. One may include those before it;
# directories with a bar between them have one place.
order() {
  case "$1" in
    http) echo . websocket server ;;
    keeper) echo process namespace mount cgroup net disk rootfs stats sandbox build . ;;
    agent) echo link machine files process . ;;
    launch) echo app check stage . ;;
    core) echo audit secret token output engine project job process files template dependency sandbox snapshot preview \
      'execution|context' member pool upkeep ;;
  esac
}

# Who includes whom below src, one pair a line: agent/process/start/spawn.c agent/link/payload.h.
includes=$(grep -rE '^#include "' src --include='*.[ch]' | sed -E 's,^src/([^:]*):#include "([^"]*)".*,\1 \2,')

for layer in http keeper agent core launch; do
  for dir in src/"$layer"/*/; do
    case " $(order "$layer" | tr '|' ' ') " in
      *" $(basename "$dir") "*) ;;
      *) echo "layers: $dir has no place in the order of scripts/layers.sh" >&2; bad=1 ;;
    esac
  done
  upward=$(echo "$includes" | awk -v layer="$layer" -v order="$(order "$layer")" '
    function place(path, parts) { return split(path, parts, "/") > 2 ? at[parts[2]] : at["."] }
    BEGIN { count = split(order, names, " "); for (i = 1; i <= count; i++) { n = split(names[i], same, "|"); for (j = 1; j <= n; j++) at[same[j]] = i } }
    index($1, layer "/") == 1 && index($2, layer "/") == 1 && place($1) < place($2) { print $1 " includes " $2 }')
  [ -z "$upward" ] || { echo "layers: directories are included against their order:" >&2; echo "$upward" >&2; bad=1; }
done

# A module is a .c with its .h; no module includes itself through others.
circles=$(echo "$includes" | awk '
  { sub(/\.[ch]$/, "", $1); sub(/\.h$/, "", $2) }
  $1 != $2 && $1 ~ /^(wire|model|driver|trace|daemon|blob|image|tls|http|egress|core|proxy|auth|launch|api|doctor|keeper|agent|cli)\//' |
  tsort 2>&1 >/dev/null || true)
[ -z "$circles" ] || { echo "layers: modules include each other in a circle:" >&2; echo "$circles" >&2; bad=1; }

# The client library of a database is known to one file (store/db/db.h).
library=$(grep -rlE '#include <(sqlite3|libpq-fe|mysql|mariadb/mysql)\.h>|sqlite3_' src | grep -vxE 'src/store/db/db_(sqlite|postgres|mariadb)\.c' || true)
[ -z "$library" ] || { echo "layers: only src/store/db/db_*.c use the library of a database:" $library >&2; bad=1; }
header=$(grep -rlE '#include "store/db/db_[a-z]+\.h"' src | grep -vE '^src/store/db/db(_[a-z]+)?\.c$' || true)
[ -z "$header" ] || { echo "layers: store/db/db.h is for all, the other headers of databases are for store/db/db*.c:" $header >&2; bad=1; }

# The parser of HTTP is unmaintained upstream, so one file alone uses it (http/message.h).
parser=$(grep -rlE '#include <http_parser\.h>|http_parser_' src | grep -vx 'src/http/message\.c' || true)
[ -z "$parser" ] || { echo "layers: only src/http/message.c uses http_parser:" $parser >&2; bad=1; }

# A file's stem is the prefix of what it exports, so two files of one program may not share one.
for program in keeper agent cli 'base event wire model store driver blob image tls http egress core launch auth proxy api daemon'; do
  dirs=$(for layer in $program; do echo "src/$layer"; done)
  twice=$(find $dirs -name '*.c' ! -name main.c -printf '%f\n' | sort | uniq -d)
  [ -z "$twice" ] || { echo "layers: stems used twice:" $twice >&2; bad=1; }
done

# Keeper and agent are compiled by one command each, which runs again for the headers that meson.build names.
for layer in base wire keeper agent; do
  for header in $(find "src/$layer" -name '*.h' -printf '%P\n'); do
    grep -qF "'$header'" "src/$layer/meson.build" || { echo "layers: src/$layer/meson.build does not name $header" >&2; bad=1; }
  done
done

# What snprintf returns is not the length of what is there (base/format.h).
lengths=$(grep -rnE '=[[:space:]]*(\([a-z_ ]+\)[[:space:]]*)?v?snprintf\(' src | grep -v '^src/base/format\.c:' || true)
[ -z "$lengths" ] || { echo "layers: the value of snprintf is used as a length; take base/format.h:" >&2; echo "$lengths" >&2; bad=1; }

# What these return or remember belongs to all threads at once.
shared=$(grep -rnwE '(strtok|localtime|gmtime|asctime|ctime|inet_ntoa|getpwnam|getgrnam|rand|setenv) ?\(' src/egress src/core src/http src/proxy src/api src/store src/tls src/auth src/model src/base || true)
[ -z "$shared" ] || { echo "layers: not for programs with threads (strtok_r and the like):" >&2; echo "$shared" >&2; bad=1; }
exit $bad
