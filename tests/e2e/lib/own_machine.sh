#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a script on what looks like a fresh machine with Sandlot installed: own_machine.sh DIR SCRIPT BUILD_DIR.
#
# The caller starts this in new mount, network and PID namespaces. So the default address and the default directories
# are free, whatever else runs on the host, there is no way to other machines, and all processes end with the script.
# DIR holds etc/ and etc.work/ (what the script changes in /etc), local/ and local.work/ (in /usr/local), lib/ (stands for /var/lib), bin/ (has a systemctl, an
# ssh and a sudo), home/ and work/. WITH_REGISTRY: there is a registry, and it is the daemon's (docs_registry.mjs).
# INSTALLED: the programs are in /usr/local/bin.
set -eu
dir=$1 script=$2 build=$3

ip link set lo up
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$dir/etc,workdir=$dir/etc.work" /etc
mount -t overlay overlay -o "lowerdir=/usr/local,upperdir=$dir/local,workdir=$dir/local.work" /usr/local
mkdir "$dir/lib/dpkg" # `make` looks whether packages are there
mount --bind /var/lib/dpkg "$dir/lib/dpkg"
mount --rbind "$dir/lib" /var/lib
# A look-up of a name fails at once instead of after the patience of a resolver.
rm -f /etc/resolv.conf # it may be a link to what is the host's
echo 'nameserver 127.0.0.1' >/etc/resolv.conf
echo '127.0.0.1 sandlot.example.org' >>/etc/hosts # the server that a guide names is this machine

export PATH=$dir/bin:$PATH HOME=$dir/home DAEMON_LOG=$dir/daemon.log DAEMON_PROGRAMS=$build
# What `make install` brings. README.md has that line itself, and another way before it.
[ -z "${INSTALLED:-}" ] || ln -s "$build"/sandlot "$build"/sandlotd /usr/local/bin/
# The keeper names its cgroups after the path of the data directory, and cgroups are the whole host's: the daemon knows
# the directory by a path that no other daemon has, and everybody else as /var/lib/sandlot.
export DAEMON_DATA_DIR=$dir/lib/sandlot
if [ -n "${WITH_REGISTRY:-}" ]; then
  node "$(dirname "$(readlink -f "$0")")/docs_registry.mjs" "$dir/registry" &
  until [ -s "$dir/registry" ]; do sleep 0.05; done
  SANDLOT_REGISTRY=$(cat "$dir/registry") SANDLOT_REGISTRY_PLAIN=$(cat "$dir/registry")
  export SANDLOT_REGISTRY SANDLOT_REGISTRY_PLAIN
fi
# The keeper makes cgroups on the host. It removes them at its end, which must come before that of the PID namespace,
# also when the script has failed.
finish() {
  systemctl start sandlot && "$build/sandlot" shutdown || return
  while pgrep -x sandlotd || pgrep -x sandlot-keeper; do sleep 0.05; done >/dev/null
}
trap finish EXIT
systemctl start sandlot
until ls /var/lib/sandlot/state/backups/*.db >/dev/null 2>&1; do sleep 0.05; done # the first of the daily backups
cd "$dir/work"
timeout $((400 * ${E2E_PATIENCE:-1})) bash "$script" </dev/null # ended here, so that the shutdown follows
