#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random operations of several owners against a model of what must be true, while daemon, keeper and agents are killed
# and stopped and the disk is filled (tests/chaos). Then everything is purged, and the machine must hold what it held.
#   CHAOS_SECONDS   how long (default: 120)
#   CHAOS_SEED      which run; it is printed, so that one that failed can be repeated
#   CHAOS_FAULTS    parts of the names of faults, separated by commas (default: all)
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then
  echo "chaos: needs root" >&2
  exit 1
fi
scripts/test_packages.sh
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/sandlot-chaos.XXXXXX")
export TMPDIR
chmod 755 "$TMPDIR"
trap 'rm -rf "$TMPDIR"' EXIT

status=0
node tests/chaos/chaos.mjs || status=$?
if grep -F "$TMPDIR/" /proc/self/mountinfo; then
  echo "chaos: left mounted on the machine" >&2
  status=1
fi
exit "$status"
