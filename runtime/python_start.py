# SPDX-License-Identifier: Apache-2.0
#
# The text of `python3 -c` for an execution. The runner itself (runtime/python.py, runtime/python_more.py) comes on
# standard input before the request: a Python takes long to start with long arguments, and to compile the runner takes
# half as long as to start Python. So there are four parts, each compressed, after ten digits, its length: both texts as
# code of the Python that made Sandlot (scripts/compile_python.py), and then as they are, for every other Python.
# Together they must fit into what the agent takes at once: a daemon may be killed before it can send the rest.
import zlib
from posix import read


def read_all(channel, size):
    data = b""
    while len(data) < size:
        part = read(channel, size - len(data))
        if not part:
            return None
        data += part
    return data


def code_of(made, text):
    """What to run: what was compiled, if this interpreter takes such code, or else the text."""
    try:
        import _frozen_importlib_external, marshal
        magic, made = _frozen_importlib_external.MAGIC_NUMBER, zlib.decompress(made)
        if made.startswith(magic):
            return marshal.loads(made[len(magic):])
    except Exception:
        pass
    return compile(zlib.decompress(text), "<sandlot>", "exec")


MADE, MORE_MADE, TEXT, MORE_TEXT = (read_all(0, int(read_all(0, 10))) for _ in range(4))
exec(code_of(MADE, TEXT))
