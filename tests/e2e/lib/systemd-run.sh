#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what `systemd-run --user --scope -p Delegate=yes` does, where no systemd runs (own_machine.sh): the program is run
# in groups that belong to the user.
set -eu
[ "$1 $2 $3 $4" = "--user --scope -p Delegate=yes" ] || { echo "systemd-run: $* is not known here" >&2; exit 1; }
shift 4
for group in $DELEGATED; do echo $$ >"$group/cgroup.procs"; done
exec "$@"
