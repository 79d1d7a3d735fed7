#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what runtime/python_start.py reads: the texts that are named, compiled and as they are."""
import importlib.util
import marshal
import sys
import zlib

*sources, target = sys.argv[1:]
texts = [open(source, "rb").read() for source in sources]
codes = [compile(text, "<sandlot>", "exec", dont_inherit=True) for text in texts]
with open(target, "wb") as file:
    for part in [importlib.util.MAGIC_NUMBER + marshal.dumps(code) for code in codes] + texts:
        data = zlib.compress(part, 9)
        file.write(b"%010d" % len(data) + data)
