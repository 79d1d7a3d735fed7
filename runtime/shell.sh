# Runs shell code for an execution. The daemon gives this text to `sh -c`, after runtime/files.sh. The event is also
# standard input.
shell=sh
command -v bash >/dev/null 2>&1 && shell=bash
[ -z "$path" ] || code='. "$SANDLOT_PATH"'
call='case "$(type '"$handler"' 2>/dev/null)" in *function*) '"$handler"' "$1" ;; esac'
SANDLOT_PATH=$path
export SANDLOT_PATH
printf '\n' >&3
exec "$shell" -c "$code
$call" main.sh "$event"
