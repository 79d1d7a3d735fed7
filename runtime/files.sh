# SPDX-License-Identifier: Apache-2.0
#
# What comes before the runner of each language that gets its request as arguments: the code, or an empty text and the
# path of a file with it; the name of the handler, and the event. Then come files to write, each as `text` or `base64`,
# its path, and what it has. What is written to $RESULT, which is descriptor 3, is the result. The newline written
# there first says that the code begins.
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
RESULT=/dev/fd/3
export RESULT
