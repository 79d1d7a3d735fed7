#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does for the unit sandlot what systemctl does, as far as guides use it, where no systemd runs (own_machine.sh).
set -eu
pid_file=$HOME/daemon.pid

runs() {
  [ -s "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null
}

start() {
  ! runs || return 0
  rm -f /var/lib/sandlot/run/api.addr # of a daemon that was killed
  # What `make install` has brought, else what is built.
  daemon=/usr/local/sbin/sandlotd
  [ -x $daemon ] || daemon=$DAEMON_PROGRAMS/sandlotd
  SANDLOT_DATA_DIR=$DAEMON_DATA_DIR setsid "$daemon" >>"$DAEMON_LOG" 2>&1 </dev/null &
  echo $! >"$pid_file"
  tries=0
  until env -u SANDLOT_URL -u SANDLOT_TOKEN "$DAEMON_PROGRAMS/sandlot" ls >/dev/null 2>&1; do
    tries=$((tries + 1))
    runs && [ $tries -lt 600 ] || { tail -5 "$DAEMON_LOG" >&2; return 1; }
    sleep 0.05
  done
}

stop() {
  runs || return 0
  kill "$(cat "$pid_file")" 2>/dev/null || true # it may end by itself just now
  while runs; do sleep 0.05; done
}

# What `make install` brings is what the system's systemd would start from now on.
enable() {
  find /usr/local /etc/systemd -name sandlot.service 2>/dev/null | grep -q . || { echo "systemctl: there is no unit sandlot" >&2; return 1; }
}

if [ "$1 ${2:-}" = "enable --now" ]; then
  enable
  shift
  set -- start "$2"
fi
[ "${2:-}" = sandlot ] || { echo "systemctl: the unit here is sandlot" >&2; exit 1; }
case $1 in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  reload) kill -HUP "$(cat "$pid_file")" ;;
  *) echo "systemctl: $1 is not known here" >&2; exit 1 ;;
esac
