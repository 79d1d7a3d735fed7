# SPDX-License-Identifier: Apache-2.0
#
# Runs shell code for an execution. The daemon gives this text to `sh -c`, with the code, or an empty text
# and the path of a file with it; the name of the handler, and the event. The event is also standard input. Then
# come files to write, each as `text` or `base64`, its path, and what it has.
# What is written to $RESULT, which is descriptor 3, is the result. The newline written there first says
# that the code begins.
code=$1 path=$2 handler=$3 event=$4
shift 4
while [ $# -ge 3 ]; do
	case $2 in
	*/*) mkdir -p -- "${2%/*}/" || exit ;;
	esac
	case $1 in
	text) printf %s "$3" >"$2" || exit ;;
	*) printf %s "$3" | base64 -d >"$2" || exit ;;
	esac
	shift 3
done
shell=sh
command -v bash >/dev/null 2>&1 && shell=bash
RESULT=/dev/fd/3
export RESULT
[ -z "$path" ] || code='. "$SANDLOT_PATH"'
call='case "$(type '"$handler"' 2>/dev/null)" in *function*) '"$handler"' "$1" ;; esac'
SANDLOT_PATH=$path
export SANDLOT_PATH
printf '\n' >&3
exec "$shell" -c "$code
$call" main.sh "$event"
