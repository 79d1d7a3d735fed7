#!/bin/sh
# Installs the Debian packages for a purpose (build, test, bench, lint, fuzz, vm), if any is missing.
# Usage: deps.sh [--list] PURPOSE       --list: only prints their names, with commas
set -eu
is_list=""
[ "$1" != --list ] || { is_list=yes; shift; }

build="gcc libc6-dev make meson ninja-build pkg-config musl-tools linux-libc-dev libmicrohttpd-dev
 libjansson-dev libseccomp-dev libsqlite3-dev libarchive-dev libedit-dev libmagic-dev libcurl4-openssl-dev libssl-dev libwslay-dev libhttp-parser-dev
 libcmocka-dev e2fsprogs python3-pip nodejs npm"
runtime="libedit2 python3 procps iproute2 uidmap e2fsprogs"
# What the tests start inside a sandbox, to see that real work runs behind the walls.
workloads="git strace gdb python3-pip python3-matplotlib python3-pandas python3-pil default-jre-headless postgresql redis-server chromium"

case "$1" in
  build) packages="$build" ;;
  test) packages="$build $runtime $workloads nodejs npm sqlite3 curl openssl libnss3-tools util-linux vim xxd zsh fish clang-format clang-tidy
    docker-registry skopeo umoci buildah busybox-static mmdebstrap nginx-light" ;;
  bench) packages="$build $runtime nodejs curl docker.io docker-compose crun bubblewrap nginx-light wrk jq busybox-static docker-registry skopeo umoci python3-matplotlib" ;;
  lint) packages="$build clang clang-format clang-tidy" ;;
  fuzz) packages="$build clang libclang-rt-14-dev" ;;
  vm) packages="qemu-system-x86 mmdebstrap e2fsprogs xfsprogs nodejs" ;;
  *) echo "deps.sh: unknown purpose $1" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086
[ -z "$is_list" ] || { echo $packages | tr ' ' ,; exit 0; }

# A package counts as there if dpkg has it installed; node and python may come from elsewhere.
missing=""
for package in $packages; do
  case "$package" in
    nodejs) command -v node >/dev/null && continue ;;
    npm) command -v npm >/dev/null && continue ;;
    docker.io) command -v dockerd >/dev/null && continue ;;
  esac
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "missing packages:$missing" >&2
  echo "install them with: sudo apt-get install$missing" >&2
  exit 1
fi
echo "installing:$missing"
log=$(mktemp)
# Services that packages bring are not wanted, only their programs.
printf '#!/bin/sh\nexit 101\n' > "$log.policy"; chmod +x "$log.policy"
[ -e /usr/sbin/policy-rc.d ] || { cp "$log.policy" /usr/sbin/policy-rc.d; trap 'rm -f /usr/sbin/policy-rc.d' EXIT; }
rm -f "$log.policy"
# shellcheck disable=SC2086
{ apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 || {
  tail -20 "$log" >&2
  echo "installing packages failed; the whole log is $log" >&2
  exit 1
}
rm -f "$log"
