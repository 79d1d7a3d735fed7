# Runs one file of Java for an execution. The daemon gives this text to `sh -c`, after runtime/files.sh. The first class of
# the file has main(String[]), which gets the event as its only argument; the event is also standard input.
if ! command -v java >/dev/null 2>&1; then
	echo 'java is not installed' >&2
	exit 127
fi
[ -n "$path" ] || made=$(mktemp -d) || exit
[ -n "$path" ] || printf '%s\n' "$code" >"$made/Main.java" || exit
printf '\n' >&3
java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${path:-$made/Main.java}" "$event"
status=$?
[ -n "$path" ] || rm -rf "$made"
exit "$status"
