# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a pseudo-terminal, which node cannot: lib/pseudo_terminal.mjs talks to it in lines of JSON.

Standard input:  {"type": base64}, {"resize": [cols, rows]}, {"signal": number}, {"state": true}, {"hangup": true}
Standard output: {"output": base64}, {"state": [...]} (the flags of the terminal: first, when asked, and last), {"exit": code or -signal}
"""
import base64
import fcntl
import json
import os
import select
import signal
import struct
import sys
import termios


def say(**message):
    sys.stdout.write(json.dumps(message) + '\n')
    sys.stdout.flush()


def state(fd):
    flags = termios.tcgetattr(fd)
    return flags[:6] + [[c if isinstance(c, int) else c.hex() for c in flags[6]]]


def resize(fd, cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))


def obey(order, master, pid):
    if 'type' in order:
        data = base64.b64decode(order['type'])
        while data:
            data = data[os.write(master, data):]
    if 'resize' in order:
        resize(master, *order['resize'])
    if 'signal' in order:
        os.kill(pid, order['signal'])
    if 'state' in order:
        say(state=state(master))
    if 'hangup' in order:
        os.close(master)


def main():
    cols, rows = int(sys.argv[1]), int(sys.argv[2])
    master, slave = os.openpty()
    resize(master, cols, rows)
    say(state=state(master))
    pid = os.fork()
    if pid == 0:
        os.close(master)
        login(slave)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(sys.argv[3], sys.argv[3:])
    # The slave stays open here: the terminal, and its state, outlive the program.
    orders, hung_up, done, status = b'', False, 0, 0
    while True:
        if not done:
            done, status = os.waitpid(pid, os.WNOHANG)
        ready, _, _ = select.select([0] if hung_up else [0, master], [], [], 0 if done else 0.05)
        if not hung_up and master in ready:
            say(output=base64.b64encode(os.read(master, 65536)).decode())
            continue
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                break
            orders += data
            while b'\n' in orders:
                line, orders = orders.split(b'\n', 1)
                order = json.loads(line)
                if 'hangup' in order:
                    os.close(slave)
                    hung_up = True
                obey(order, master, pid)
            continue
        if done:
            if not hung_up:
                say(state=state(master))
            say(exit=os.waitstatus_to_exitcode(status))
            return
    os.kill(pid, signal.SIGKILL)


def login(slave):
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)


main()
