// SPDX-License-Identifier: Apache-2.0
// What a tenant or a peer is told and taken from, at its edges: no memory of the daemon, nothing of neighbours, no half of a packet.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('exposure');

test('an event of any length is one whole JSON document, and nothing follows it', async () => {
  const { id } = await api.create();
  const said = [];
  const request = api.open('GET', `/v1/sandboxes/${id}/events`, {}, (error, response) => { if (!error) response.on('data', (chunk) => said.push(chunk)); });
  request.on('error', () => {});
  const text = () => Buffer.concat(said).toString('latin1');
  await until(() => text().includes('event: status'), { what: 'the stream is open' });
  // A control character takes six bytes in JSON, so what is said of this directory is long.
  const cwd = `/${'\u0001'.repeat(230)}/${'\u0002'.repeat(230)}`;
  assert.equal((await api.patch(id, { start: [{ name: 'long', command: 'true', cwd }] })).status, 200);
  await until(() => /event: start\.(waiting|failed)\n[^]*?\n\n/.test(text()), { what: 'its failure is told' });
  request.destroy();
  const blocks = text().split('\n\n').slice(0, -1);
  for (const block of blocks) {
    if (block.startsWith(':')) continue; // a heartbeat
    assert.match(block, /^(id: \d+\n)?event: [a-z.]+\ndata: [\x20-\x7e]+$/, JSON.stringify(block.slice(0, 3000)));
    JSON.parse(block.slice(block.indexOf('data: ') + 6));
  }
  assert.ok(blocks.some((block) => block.length > 1500), 'one of them was long');
  await api.purge(id);
});

// What /proc may show in its first row: the sandbox's own, what system calls tell as well, and what the kernel was built with.
const OWN = ['cpuinfo', 'locks', 'meminfo', 'mounts', 'stat', 'net', 'sysvipc', 'self', 'thread-self', 'sys'];
const SYSTEM_CALLS = ['loadavg', 'uptime', 'version'];
const BUILT_IN = ['consoles', 'crypto', 'devices', 'dma', 'execdomains', 'fb', 'filesystems', 'misc', 'tty', 'dynamic_debug', 'version_signature'];

async function lookAround(isolated) {
  const neighbour = await api.create();
  const { id } = await api.create();
  const list = 'cd /proc; for f in *; do case $f in [0-9]*) continue;; esac; if [ -d $f ]; then ls $f | head -c1; else head -c1 $f; fi 2>/dev/null | grep -q . && echo $f; done; true';
  const out = async (command) => (await api.exec(id, { command, ...(isolated && { isolate: true }) })).stdout;
  const shown = (await out(list)).trim().split('\n').filter((name) => ![...OWN, ...SYSTEM_CALLS, ...BUILT_IN].includes(name));
  assert.deepEqual(shown.filter((name) => name !== 'cgroups' && name !== 'vmstat'), []);
  assert.equal(await out('cat /proc/diskstats /proc/partitions /proc/swaps /proc/zoneinfo /proc/softirqs /proc/buddyinfo'), '');
  for (const line of (await out('grep -v "^#" /proc/cgroups')).trim().split('\n')) assert.match(line, /^[a-z_]+\t\d+\t1\t[01]$/);
  for (const line of (await out('cat /proc/vmstat')).trim().split('\n')) assert.match(line, /^\w+ 0$/);
  assert.match(await out('vmstat'), /swpd/, 'and programs that read it go on to work');
  await Promise.all([api.purge(id), api.purge(neighbour.id)]);
}

test('/proc tells nothing of neighbours or their devices', () => lookAround(false));
test('/proc tells nothing of neighbours or their devices, in an isolated command either', () => lookAround(true));

const PACKETS = `
import socket, struct, sys
def ask(size):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(sys.argv[1])
    s.send(struct.pack('I', 1) + bytes(size - 4)) # KEEPER_HELLO
    try:
        return len(s.recv(65536))
    except ConnectionResetError:
        return 0
print([size for size in range(8, 2048, 8) if ask(size)])
`;

test('the keeper takes packets of two sizes, that of what all releases ask and its own, and refuses all others', { skip: Boolean(instance.account) }, async () => {
  const python = spawnSync('python3', ['-c', PACKETS, path.join(instance.dataDir, 'run/keeper.sock')], { encoding: 'utf8' });
  assert.equal(python.status, 0, python.stderr);
  const [least, ...others] = JSON.parse(python.stdout);
  assert.equal(least, 408, 'KEEPER_REQUEST_LEAST of wire/keeper.h');
  assert.equal(others.length, 1, `answered: ${python.stdout}`);
  await api.purge((await api.create()).id);
});

finish();
