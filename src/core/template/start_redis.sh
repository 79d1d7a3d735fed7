#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs Redis of Debian's packages on 127.0.0.1, with its data in the durable directory, and with REDIS_PASSWORD if
# there is one.
set -eu
if [ "$(id -u)" = 0 ]; then
  exec setpriv --reuid=redis --regid=redis --init-groups sh "$0"
fi
mkdir -p /volumes/redis
quoted=$(printf '%s' "${REDIS_PASSWORD:-}" | sed 's/[\\"]/\\&/g')
line=
[ -z "$quoted" ] || line="requirepass \"$quoted\""
# In its input the password is in no list of processes.
exec redis-server - --bind 127.0.0.1 --port "${REDIS_PORT:-6379}" --dir /volumes/redis --appendonly yes << END
$line
END
