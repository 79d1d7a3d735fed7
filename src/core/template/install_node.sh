# SPDX-License-Identifier: Apache-2.0
# Installs Node of the version $major, and npm, from npm's registry, whose packages node-linux-* have the program as the
# project of Node builds it. What the registry says of a package names its file and its digest.
set -e
registry=${NPM_CONFIG_REGISTRY:-https://registry.npmjs.org}
registry=${registry%/}

# curl explains at length what it has said in one line.
get() {
  curl -fsSL --retry 3 --connect-timeout 20 "$@" 2> /tmp/complaints || {
    code=$?
    grep '^curl:' /tmp/complaints | tail -n 1 >&2
    echo "cannot fetch $1" >&2
    return $code
  }
}

# A member of what the registry says of a package.
value() {
  grep -o "\"$1\": *\"[^\"]*\"" /tmp/about | head -n 1 | cut -d '"' -f 4
}

# Unpacks the newest version of a package that begins with a number into a directory.
unpack() {
  get "$registry/$1" > /tmp/about
  version=$(grep -o "\"version\": *\"$2\.[0-9]*\.[0-9]*\"" /tmp/about | cut -d '"' -f 4 | sort -V | tail -n 1)
  [ -n "$version" ] || { echo "$registry has no $1 of the version $2" >&2; exit 1; }
  echo "$1 $version"
  get "$registry/$1/$version" > /tmp/about
  get "$(value tarball)" > /tmp/package
  sum=$(sha512sum < /tmp/package | cut -c 1-128 | tr a-f A-F | basenc --base16 -d | base64 -w 0)
  [ "sha512-$sum" = "$(value integrity)" ] || { echo "the digest of $1 is wrong" >&2; exit 1; }
  mkdir -p "$3"
  tar -xzf /tmp/package -C "$3" --strip-components=1 --no-same-owner
}

case $(uname -m) in aarch64) cpu=arm64 ;; *) cpu=x64 ;; esac
unpack "node-linux-$cpu" "$major" /tmp/node
cp -r /tmp/node/bin /tmp/node/include /tmp/node/share /usr/local/
unpack npm 10 /usr/local/lib/node_modules/npm
ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -sf ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
node --version
npm --version
