#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs PostgreSQL of Debian's packages on 127.0.0.1, as its image would: the first start makes the cluster, in the
# durable directory, of POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB. It gets its name when it is whole, so a first
# start that was cut short begins anew. A later start with another password sets that: a sandbox that is made where one was
# removed has its databases, and a password that was made up anew.
set -eu
data=/volumes/postgresql
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
export LC_ALL=C.UTF-8

if [ "$(id -u)" = 0 ]; then
  exec setpriv --reuid=postgres --regid=postgres --init-groups sh "$0"
fi

make_cluster() {
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  rm -rf "$data.new"
  password=$(mktemp)
  trap 'rm -f "$password"' EXIT
  printf '%s\n' "${POSTGRES_PASSWORD:?the first start needs it in the environment}" > "$password"
  initdb --no-sync -D "$data.new" -U "$user" --pwfile="$password" -A scram-sha-256 -E UTF8
  rm -f "$password"
  digest > "$data.new/sandlot_password"
  [ "$database" = postgres ] || make_database
}

digest() {
  printf '%s' "${POSTGRES_PASSWORD:-}" | sha256sum
}

set_password() {
  name=$(printf '%s' "${POSTGRES_USER:-postgres}" | sed 's/"/""/g')
  value=$(printf '%s' "$POSTGRES_PASSWORD" | sed "s/'/''/g")
  said=$(printf "ALTER ROLE \"%s\" PASSWORD '%s';\n\n" "$name" "$value" | postgres --single -j -D "$data" postgres 2>&1)
  case $said in
    *ERROR:* | *FATAL:*) printf 'the password stays as it was: %s\n' "$said" >&2 ;;
    *) digest > "$data/sandlot_password" ;;
  esac
}

make_database() {
  name=$(printf '%s' "$database" | sed 's/"/""/g')
  said=$(printf 'CREATE DATABASE "%s";\n' "$name" | postgres --single -c fsync=off -D "$data.new" postgres 2>&1)
  # It exits with 0 whatever becomes of the statement.
  case $said in *ERROR:* | *FATAL:*) printf '%s\n' "$said" >&2; exit 1 ;; esac
}

if [ ! -d "$data" ]; then
  make_cluster
  # All of its files at once, instead of each by itself as it is made; only then it gets its name.
  sync -f "$data.new"
  mv -T "$data.new" "$data"
fi
if [ -n "${POSTGRES_PASSWORD:-}" ] && [ "$(digest)" != "$(cat "$data/sandlot_password" 2>/dev/null || true)" ]; then
  set_password
fi
exec postgres -D "$data" -h 127.0.0.1 -p "${PGPORT:-5432}" -k /tmp
