#!/bin/sh
# Makes the users that Sandlot needs, if they do not exist.
# Usage: user.sh            the unprivileged user that root's sandlotd becomes; without root none is needed
#        user.sh rootless   an ordinary user with ids lent to it, as whom tests start sandlotd
set -eu

if [ "${1:-}" != rootless ]; then
  if [ "$(id -u)" = 0 ] && ! id sandlot >/dev/null 2>&1; then
    useradd --system --no-create-home --shell /usr/sbin/nologin sandlot
  fi
  exit 0
fi

user=sandlot-rootless
lent() { grep -q "^$user:" "/etc/sub$1" 2>/dev/null; }

if id $user >/dev/null 2>&1 && lent uid && lent gid; then
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "the user $user is missing; as root: scripts/user.sh rootless" >&2
  exit 1
fi
id $user >/dev/null 2>&1 || useradd --no-create-home --shell /usr/sbin/nologin $user
# Above all that anybody was lent. Some systems lend to every new user by themselves.
first=$(cat /etc/subuid /etc/subgid 2>/dev/null | awk -F: '{end = $2 + $3} end > n {n = end} END {print (n > 100000 ? n : 100000)}')
for kind in uid gid; do
  lent $kind || usermod "--add-sub${kind}s" "$first-$((first + 65535))" $user
done
