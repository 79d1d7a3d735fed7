#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a script on what looks like a fresh machine with Sandlot installed: own_machine.sh DIR SCRIPT BUILD_DIR.
#
# The caller (docs_machine.mjs) starts this in new mount, network and PID namespaces. So the default address and the
# default directories are free, whatever else runs on the host, there is no way to other machines, and all processes end
# with the script. DIR holds etc/ and etc.work/ (what the script changes in /etc), local/ and local.work/ (in /usr/local),
# dpkg/ and dpkg.work/ (in /var/lib/dpkg), lib/ (stands for /var/lib), bin/ (has a systemctl, a systemd-run, an ssh and a
# sudo), home/ and work/. WITH_REGISTRY: there is a registry, and it is the daemon's (docs_registry.mjs).
# INSTALLED: the programs are in PATH. STARTS_ITSELF: no daemon runs when the script begins.
# AS_USER: words that make a command an ordinary user's, of whom OWNER, DELEGATED (cgroups) and a copy of REPOSITORY are.
set -eu
dir=$1 script=$2 build=$3 work=$1/work

own() { # own DIRECTORY NAME: what is changed below that directory goes to DIR/NAME
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$dir/$2,workdir=$dir/$2.work" "${3:-$1}"
}

ip link set lo up
own /etc etc
programs=/usr/local/bin
# Below /usr, which a user's sandboxes see, a user's daemon can hide no mount that somebody else made.
if [ -n "${AS_USER:-}" ]; then programs=$dir/bin; else own /usr/local local; fi
[ -n "${AS_USER:-}" ] || rm -f /usr/local/sbin/sandlotd /usr/local/bin/sandlot # the host's own are not what is tested
mkdir -p "$dir/lib/dpkg" "$dir/lib/apt/lists/partial" # `make` looks whether packages are there, and so does apt-get
own /var/lib/dpkg dpkg "$dir/lib/dpkg"
mount --rbind "$dir/lib" /var/lib
for used in /var/cache/apt /var/log; do mount -t tmpfs tmpfs $used; done
# A look-up of a name fails at once instead of after the patience of a resolver.
rm -f /etc/resolv.conf # it may be a link to what is the host's
echo 'nameserver 127.0.0.1' >/etc/resolv.conf
echo '127.0.0.1 sandlot.example.org' >>/etc/hosts # the server that a guide names is this machine

export PATH=$dir/bin:$PATH HOME=$dir/home DAEMON_LOG=$dir/daemon.log DAEMON_PROGRAMS=$build
# The keeper names its cgroups after the path of the data directory, and cgroups are the whole host's: the daemon knows
# the directory by a path that no other daemon has, and everybody else as /var/lib/sandlot.
export DAEMON_DATA_DIR=$dir/lib/sandlot
if [ -n "${WITH_REGISTRY:-}" ]; then
  node "$(dirname "$(readlink -f "$0")")/docs_registry.mjs" "$dir/registry" &
  until [ -s "$dir/registry" ]; do sleep 0.05; done
  SANDLOT_REGISTRY=$(cat "$dir/registry") SANDLOT_REGISTRY_PLAIN=$(cat "$dir/registry")
  export SANDLOT_REGISTRY SANDLOT_REGISTRY_PLAIN
fi
# The user has a copy of the repository with all that was built, in which `make` may write what it writes each time,
# and sits in one of the groups that belong to the user, as somebody who has logged in.
if [ -n "${AS_USER:-}" ]; then
  unset XDG_DATA_HOME XDG_RUNTIME_DIR
  work=$REPOSITORY DAEMON_DATA_DIR=$HOME/.local/share/sandlot DAEMON_PROGRAMS=$REPOSITORY/build
  own "$REPOSITORY" tree "$dir/tree"
  [ "$build" = "$work/build" ] || { mkdir -p "$dir/tree/build"; mount --bind "$dir/tree${build#"$work"}" "$dir/tree/build"; }
  # Where only root may enter there is nothing but the copy, and the system's Python in place of one of root's own.
  python=$(sed -n 's|^ COMMAND = \(/[^ ]*python3\) .*|\1|p' "$dir/tree/build/build.ninja" | head -1)
  for path in "$work" "$python"; do
    path=/$(cut -d / -f 2 <<<"$path")
    $AS_USER test -x "$path" || mount -t tmpfs -o mode=755 tmpfs "$path"
  done
  [ -e "$python" ] || { mkdir -p "${python%/*}"; ln -s /usr/bin/python3 "$python"; }
  mkdir -p "$work"
  mount --rbind "$dir/tree" "$work"
  mkdir -p "$work/web/.pack"
  chown "$OWNER" "$work" "$work"/build "$work"/build/.ninja_* "$work"/build/src/api "$work"/web/.pack "$work"/web/.pack/*
  touch "$DAEMON_LOG"
  chown -R "$OWNER" "$HOME" "$DAEMON_LOG"
  for group in $DELEGATED; do
    [ -e "$group/cgroup.controllers" ] || continue
    mkdir "$group/session"
    echo $$ >"$group/session/cgroup.procs"
  done
fi
# What `make install` brings. README.md has that line itself, and another way before it.
[ -z "${INSTALLED:-}" ] || ln -s "$DAEMON_PROGRAMS"/sandlot "$DAEMON_PROGRAMS"/sandlotd "$programs/"
# The keeper makes cgroups on the host. It removes them at its end, which must come before that of the PID namespace,
# also when the script has failed.
finish() {
  ${AS_USER:-} "$DAEMON_PROGRAMS/sandlot" shutdown 2>/dev/null || { [ -z "${STARTS_ITSELF:-}" ] && systemctl start sandlot && "$DAEMON_PROGRAMS/sandlot" shutdown; } || return
  while pgrep -x sandlotd || pgrep -x sandlot-keeper; do sleep 0.05; done >/dev/null
}
trap finish EXIT
if [ -z "${STARTS_ITSELF:-}" ]; then
  systemctl start sandlot
  until ls /var/lib/sandlot/state/backups/*.db >/dev/null 2>&1; do sleep 0.05; done # the first of the daily backups
fi
cd "$work"
${AS_USER:-} timeout $((400 * ${E2E_PATIENCE:-1})) bash "$script" </dev/null # ended here, so that the shutdown follows
