# SPDX-License-Identifier: Apache-2.0
# Installs Python 3.12 and pip where no image of it can be had. Debian 12 has none; a module of Go carries the relocatable
# builds of python-build-standalone, and any proxy of Go modules has it. Its files are checked by the digest that Go itself
# would check (h1). What that build leaves out (ensurepip, headers for C, IDLE) is not there, but for what venv needs.
set -e
proxy=${GOPROXY:-https://proxy.golang.org}
proxy=${proxy%%[,|]*}
proxy=${proxy%/}
module=github.com/kluctl/go-embed-python
release=v0.0.0-3.12.3-20240415-1
digest=IX2O3LJUL0AjYsROGZ4aNENTEb3c/Ll/0b9Yb/8P61Q=

# The message of a build has room for the last lines: what failed, and curl's reason without its explanation.
if ! curl -fsSL --retry 3 --connect-timeout 20 -o /tmp/python.zip "$proxy/$module/@v/$release.zip" 2> /tmp/complaints; then
  echo "an operator can name a proxy of Go modules with --go-proxy, or a mirror of the registry of images with" \
    "--registry-mirror; \"sandlot template import\" takes the image as a file" >&2
  echo "no Python 3.12 from $proxy either" >&2
  grep '^curl:' /tmp/complaints | tail -n 1 >&2
  exit 1
fi
mkdir /tmp/python
cd /tmp/python
unzip -q ../python.zip
found=$(find ./* -type f | cut -c 3- | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64)
[ "$found" = "$digest" ] || { echo "the digest of $module is wrong: $found" >&2; exit 1; }

case $(uname -m) in aarch64) cpu=arm64 ;; *) cpu=amd64 ;; esac
from=$module@$release/python/internal/data/linux-$cpu
find "$from" -name '*.gz' -exec gunzip {} +
find "$from" -name .empty -delete
rm -f "$from"/bin/2to3* "$from"/bin/idle* "$from"/bin/pip* "$from"/bin/*-config
find "$from" -type f -exec chmod 644 {} +
find "$from" \( -path '*/bin/*' -o -name '*.so*' \) -type f -exec chmod 755 {} +
cp -r "$from/bin" "$from/lib" /usr/local/
ln -sf libpython3.12.so.1.0 /usr/local/lib/libpython3.12.so
for name in python python3; do ln -sf python3.12 "/usr/local/bin/$name"; done
ln -sf pydoc3.12 /usr/local/bin/pydoc3

# The pip of the module installs the newest one, and brings a wheel of it for new environments.
PYTHONPATH=/tmp/python/$module@$release/pip/internal/data
export PYTHONPATH PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
python3.12 -m pip install --ignore-installed pip
unset PYTHONPATH
ensure=/usr/local/lib/python3.12/ensurepip
mkdir -p "$ensure/_bundled"
python3.12 -m pip download --no-deps -d "$ensure/_bundled" pip
: > "$ensure/__init__.py"
cat > "$ensure/__main__.py" <<'END'
"""Installs the pip that is beside this file into an environment, without a network."""
import glob
import os
import runpy
import sys

directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bundled")
sys.path.insert(0, glob.glob(os.path.join(directory, "pip-*.whl"))[0])
sys.argv = ["pip", "install", "--no-cache-dir", "--no-index", "--find-links", directory, "--upgrade", "pip"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
END
python3.12 --version
python3.12 -m pip --version
