#!/bin/sh
# Checks who includes whom: an include names its directory, and only directories below are allowed.
set -eu
cd "$(dirname "$0")/.."

allowed() {
  case "$1" in
    base) echo base ;;
    wire) echo base wire ;;
    model) echo base model ;;
    store) echo base wire model store ;;
    driver) echo base wire model driver ;;
    egress) echo base wire model http egress ;;
    core) echo base wire model store driver http egress core ;;
    tls) echo base tls ;;
    http) echo base tls http ;;
    proxy) echo base http proxy ;;
    auth) echo base wire model store http auth ;;
    api) echo base wire model store driver egress core http auth proxy api ;;
    daemon) echo base wire model store driver egress core tls http auth proxy api daemon ;;
    keeper) echo base wire keeper ;;
    agent) echo base wire agent ;;
    cli) echo base cli ;;
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

# A file's stem is the prefix of what it exports, so two files may not share one.
twice=$(find src -name '*.c' ! -name main.c -printf '%f\n' | sort | uniq -d)
[ -z "$twice" ] || { echo "layers: stems used twice:" $twice >&2; bad=1; }
exit $bad
