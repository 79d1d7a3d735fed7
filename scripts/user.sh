#!/bin/sh
# Makes the unprivileged user that sandlotd becomes, if it does not exist.
set -eu
id sandlot >/dev/null 2>&1 && exit 0
if [ "$(id -u)" != 0 ]; then
  echo "the user sandlot is missing; as root: useradd --system --no-create-home --shell /usr/sbin/nologin sandlot" >&2
  exit 1
fi
useradd --system --no-create-home --shell /usr/sbin/nologin sandlot
