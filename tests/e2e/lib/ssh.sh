#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for ssh, and for sudo, where the server that a guide names is this machine (own_machine.sh): a command runs
# here, and a port that is forwarded is there already.
set -eu
case "$(basename "$0") $1" in
  "ssh -N") exec sleep infinity ;;
  ssh*) shift ;;
esac
exec "$@"
