#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian in a directory, with the host's mmdebstrap; run by template_bootstrap.c in a builder of the host's files.
# Usage: bootstrap.sh SUITE DIRECTORY SOURCE...     SOURCE: a line of a sources.list
# What images for containers leave out is left out here too: documentation, translations, services that start by themselves.
set -eu
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
suite=$1 target=$2
shift 2

# In the mode chrootless scripts of packages run on the builder's own files: it must know Debian's users.
cp /usr/share/base-passwd/passwd.master /etc/passwd
cp /usr/share/base-passwd/group.master /etc/group
mkdir -p /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d /etc/dpkg/dpkg.cfg.d
cp /usr/share/keyrings/debian-archive-*.gpg /etc/apt/trusted.gpg.d/ || {
  echo "the host has no keys of Debian: apt-get install debian-archive-keyring" >&2
  exit 1
}
cat > /etc/dpkg/dpkg.cfg.d/slim <<'END'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/info/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/locale/locale.alias
END

mmdebstrap --mode=chrootless --variant=apt --format=directory --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
  --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' "$suite" "$target" "$@"

cd "$target"
cp /etc/dpkg/dpkg.cfg.d/slim etc/dpkg/dpkg.cfg.d/
printf '#!/bin/sh\nexit 101\n' > usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
rm -rf var/log/dpkg.log var/log/apt/* var/log/alternatives.log var/cache/apt/*.bin
