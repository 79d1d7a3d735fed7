// SPDX-License-Identifier: Apache-2.0
// Watching files over HTTP: what real programs do to them, in the order they do it; who leaves, what ends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';

import { assertError, encodePath, parseEvents } from './lib/client.mjs';
import { IS_SANITIZED, program } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI, ulid } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('watch');
const { id } = await api.create();
const AGENT = '/workspace/agent_workspace';
const out = (command, user) => api.out(id, { command, user });
const fresh = async (make = '') => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && cd ${dir} ${make && `&& ${make}`}`);
  return dir;
};
const route = (sandbox) => `/v1/sandboxes/${sandbox}/files/watch`;
const refused = (query, sandbox = id) => api.request('GET', route(sandbox), { query });

/** An open watch: gathers events as they come. Its first is `ready`. */
class Watch {
  constructor(dir, response, request) {
    this.dir = dir;
    this.events = [];
    this.taken = 0;
    this.request = request;
    this.done = (async () => {
      for await (const event of parseEvents(response)) {
        this.events.push(event);
        assert.equal(event.id, String(this.events.length), 'ids count');
      }
      this.ended = true;
    })().catch((error) => { this.error = error; });
  }

  static open(dir, { recursive, sandbox = id } = {}) {
    return new Promise((resolve, reject) => {
      const request = api.open('GET', route(sandbox), { query: { path: dir, recursive }, agent: new http.Agent() }, async (error, response) => {
        if (error) return reject(error);
        if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`));
        assert.match(response.headers['content-type'], /^text\/event-stream/);
        const watch = new Watch(dir, response, request);
        try {
          const ready = await watch.next();
          assert.deepEqual({ event: ready.event, data: ready.data }, { event: 'ready', data: { path: dir } });
          resolve(watch);
        } catch (failure) {
          reject(failure);
        }
      });
    });
  }

  async next() {
    await until(() => this.events.length > this.taken || this.ended || this.error, { every: 5, what: 'an event comes' });
    assert.ok(this.events.length > this.taken, `the stream ended: ${this.error}`);
    return this.events[this.taken++];
  }

  /** "created file a/b", with paths relative to what is watched. */
  line({ event, data }) {
    const relative = (path) => {
      assert.ok(path === this.dir || path.startsWith(`${this.dir}/`), path);
      return path.slice(this.dir.length + 1);
    };
    if (data.path === undefined) return event;
    return [event, data.type, relative(data.path), ...(data.to === undefined ? [] : [relative(data.to)])].filter((word) => word !== undefined).join(' ').trim();
  }

  /** The lines until one that is `last`. */
  async until(last) {
    const lines = [];
    for (;;) {
      lines.push(this.line(await this.next()));
      if (lines.at(-1) === last) return lines;
    }
  }

  /** The lines up to a mark that is made now, without the mark. */
  async soFar() {
    const mark = `mark-${ulid()}`;
    await out(`mkdir ${this.dir}/${mark}`);
    return (await this.until(`created dir ${mark}`)).slice(0, -1);
  }

  close() {
    this.request.destroy();
  }
}

async function withWatch(dir, options, fn) {
  const watch = await Watch.open(dir, options);
  try {
    return await fn(watch);
  } finally {
    watch.close();
    await watch.done;
  }
}

/** The helpers of a sandbox: children of its init that are the agent's program too. */
async function helpers(sandbox) {
  const init = await instance.initOf(sandbox);
  return proc.allProcesses().filter((info) => info.ppid === init.pid && info.comm === init.comm && info.state !== 'Z');
}

// What programs do ----------------------------------------------------------------------------

test('touch, append, chmod and rm are told in order', async () => {
  await withWatch(await fresh(), {}, async (watch) => {
    await out(`cd ${watch.dir} && touch a && echo x >> a && rm a && ln -s nowhere l && mkfifo p`);
    assert.deepEqual(await watch.soFar(), ['created file a', 'modified file a', 'modified file a', 'deleted file a', 'created symlink l', 'created other p']);
    await out(`touch ${watch.dir}/c && chmod 600 ${watch.dir}/c`);
    assert.deepEqual(await watch.until('modified file c'), ['created file c', 'modified file c']);
    await watch.until('modified file c'); // the mode
  });
});

test('a rename within is moved, into it created, out of it deleted', async () => {
  const dir = await fresh('mkdir w w/d o && touch w/a o/b');
  await withWatch(`${dir}/w`, { recursive: true }, async (watch) => {
    await out(`cd ${dir} && mv w/a w/a2 && mv w/a2 w/d/a3 && mv w/d/a3 o/ && mv o/b w/ && mv w/d w/e`);
    assert.deepEqual(await watch.soFar(), ['moved file a a2', 'moved file a2 d/a3', 'deleted file d/a3', 'created file b', 'moved dir d e']);
    await out(`echo x > ${dir}/w/e/in-the-moved`);
    assert.deepEqual(await watch.soFar(), ['created file e/in-the-moved', 'modified file e/in-the-moved']);
  });
});

test('without recursive only the directory itself is watched', async () => {
  await withWatch(await fresh('mkdir d'), {}, async (watch) => {
    await out(`cd ${watch.dir} && echo x > d/below && mkdir e && echo x > e/below && rm -r d`);
    assert.deepEqual(await watch.soFar(), ['created dir e', 'deleted dir d']);
  });
});

test('mkdir -p with files in it right away: each of them is told once, and all of them', async () => {
  await withWatch(await fresh(), { recursive: true }, async (watch) => {
    const wanted = [];
    for (let i = 0; i < 30; i++) wanted.push(`r${i}`, `r${i}/b`, `r${i}/b/c`, `r${i}/b/c/f`, `r${i}/b/g`);
    await out(`cd ${watch.dir} && for i in $(seq 0 29); do mkdir -p r$i/b/c && echo x > r$i/b/c/f && echo y > r$i/b/g; done`);
    const created = (await watch.soFar()).filter((line) => line.startsWith('created ')).map((line) => line.split(' ')[2]);
    assert.deepEqual([...created].sort(), [...wanted].sort());
    for (const path of created) {
      const parent = path.slice(0, Math.max(path.lastIndexOf('/'), 0));
      if (parent) assert.ok(created.indexOf(parent) < created.indexOf(path), `${parent} before ${path}`);
    }
    await out(`cd ${watch.dir} && rm -r r0`);
    assert.deepEqual((await watch.soFar()).sort(), ['deleted dir r0', 'deleted dir r0/b', 'deleted dir r0/b/c', 'deleted file r0/b/c/f', 'deleted file r0/b/g']);
  });
});

test('a tree that is unpacked or moved in is told with all that is in it', async () => {
  const dir = await fresh('mkdir w && mkdir -p o/t/u && touch o/t/1 o/t/u/2');
  await withWatch(`${dir}/w`, { recursive: true }, async (watch) => {
    await out(`cd ${dir} && mv o/t w/`);
    assert.deepEqual((await watch.soFar()).sort(), ['created dir t', 'created dir t/u', 'created file t/1', 'created file t/u/2']);
    await out(`cd ${dir} && tar c -C w t | (mkdir w/x && tar x -C w/x)`);
    const created = (await watch.soFar()).filter((line) => line.startsWith('created ')).sort();
    assert.deepEqual(created, ['created dir x', 'created dir x/t', 'created dir x/t/u', 'created file x/t/1', 'created file x/t/u/2']);
  });
});

test('sed -i and vim are seen in the directory, and survived by a watch of the file', async () => {
  const dir = await fresh('echo one > file');
  await withWatch(dir, {}, async (tree) => withWatch(`${dir}/file`, {}, async (file) => {
    await out(`sed -i s/one/two/ ${dir}/file`);
    assert.match((await tree.soFar()).join('; '), /created file (sed\w+);.* moved file \1 file$/);
    assert.equal(file.line(await file.next()), 'modified file');
    await out(`vim -u NONE -i NONE -es -c '%s/two/three/' -c wq ${dir}/file </dev/null; cat ${dir}/file`);
    assert.match((await tree.soFar()).join('; '), /(created|modified) file file;|modified file file$/);
    assert.equal(file.line(await file.next()), 'modified file');
    await out(`vim -u NONE -i NONE -es -c 'set backupcopy=no backup writebackup' -c '%s/three/four/' -c wq ${dir}/file </dev/null; grep -q four ${dir}/file`);
    await tree.soFar();
    await file.until('modified file');
    await out(`echo last >> ${dir}/file`);
    await file.until('modified file');
    assert.ok(file.events.every(({ event }) => ['ready', 'modified'].includes(event)), JSON.stringify(file.events));
    await out(`rm ${dir}/file`);
    await file.until('gone'); // one write may be told of in two parts
    await within('the stream ends', file.done);
    assert.ok(file.ended && !file.error, String(file.error));
  }));
});

test('a write through the interface is seen, and replaces a watched file', async () => {
  const dir = await fresh('echo one > file');
  await withWatch(dir, {}, async (tree) => withWatch(`${dir}/file`, {}, async (file) => {
    await api.put(id, `${dir}/file`, 'two');
    assert.match((await tree.soFar()).at(-1), / file$/);
    assert.equal(file.line(await file.next()), 'modified file');
  }));
});

test('a file that is kept open and written is told of, but not at each write', async () => {
  await withWatch(await fresh('touch log'), {}, async (watch) => {
    const took_ms = Number(await out(`cd ${watch.dir} && exec 3>>log && python3 -c 'import os, time
begin = time.monotonic()
for i in range(200): os.write(3, b"line"); time.sleep(0.01)
print(int((time.monotonic() - begin) * 1000))'`));
    const count = (await watch.soFar()).filter((line) => line === 'modified file log').length;
    // One in 150 ms at the most, however long a busy machine takes.
    assert.ok(count >= 4 && count <= took_ms / 150 + 4, `${count} events for 200 writes in ${took_ms} ms`);
  });
});

test('names that are not UTF-8, with newlines or quotes, arrive as they are', async () => {
  await withWatch(await fresh(), {}, async (watch) => {
    await out(`cd ${watch.dir} && mkdir 'a
b"c' && mkdir "$(printf '\\377x')" && mv "$(printf '\\377x')" plain`);
    assert.equal((await watch.next()).data.path, `${watch.dir}/a\nb"c`);
    const odd = await watch.next();
    assert.equal(odd.data.path, undefined);
    assert.deepEqual(Buffer.from(odd.data.path_base64, 'base64'), Buffer.concat([Buffer.from(`${watch.dir}/`), Buffer.from([0xff]), Buffer.from('x')]));
    const moved = await watch.next();
    assert.deepEqual([moved.event, moved.data.to, moved.data.path_base64], ['moved', `${watch.dir}/plain`, odd.data.path_base64]);
  });
});

// Many at once --------------------------------------------------------------------------------

test('5,000 files made fast are all seen, or their loss is told', async () => {
  await withWatch(await fresh(), { recursive: true }, async (watch) => {
    await out(`cd ${watch.dir} && seq 5000 | sed s/^/n/ | xargs touch`);
    const lines = await watch.soFar();
    const seen = new Set(lines.filter((line) => line.startsWith('created file n')));
    assert.ok(seen.size === 5000 || lines.includes('overflow'), `${seen.size} seen`);
  });
});

test('a client that does not read grows nobody and is told that it missed something', async () => {
  await until(async () => (await helpers(id)).length === 0, { what: 'those before are gone' });
  const dir = await fresh('mkdir d && touch d/x');
  const before = proc.residentBytes(instance.daemon.pid);
  const socket = net.connect(api.port, '127.0.0.1');
  socket.pause();
  await new Promise((go) => socket.once('connect', go));
  socket.write(`GET ${route(id)}?path=${encodePath(dir)}&recursive=true HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${api.token}\r\n\r\n`);
  await until(async () => (await helpers(id)).length > 0, { what: 'the watch is open' });
  const [helper] = await helpers(id);
  await out(`cd ${dir}/d && for i in $(seq 100); do mkdir $i.d; done; seq 100000 | xargs touch && touch ../done`);
  const grown = proc.residentBytes(instance.daemon.pid) - before;
  if (!IS_SANITIZED) assert.ok(grown < 16 * MI, `the daemon grew by ${grown}`);
  assert.ok(proc.residentBytes(helper.pid) < (IS_SANITIZED ? 512 : 24) * MI, `the helper has ${proc.residentBytes(helper.pid)}`);
  // Now it reads: first what was buffered, then the overflow; and the watch goes on from there.
  let text = '';
  let all = '';
  socket.on('data', (chunk) => { text = text.slice(-4096) + chunk; all += /event: overflow/.test(text) ? 'overflow ' : ''; });
  socket.resume();
  await until(() => all, { what: 'the overflow is told' });
  await until(async () => {
    await out(`echo x > ${dir}/d/100.d/after`);
    return text.includes(`${dir}/d/100.d/after`);
  }, { every: 100, what: 'a change after the overflow is told' });
  socket.destroy();
  await until(async () => (await helpers(id)).length === 0, { what: 'the helper is gone' });
});

test('two watches at once each see everything, and one that closes leaves the other', async () => {
  const dir = await fresh();
  await withWatch(dir, {}, async (one) => {
    await withWatch(dir, { recursive: true }, async (two) => {
      await out(`touch ${dir}/a`);
      for (const watch of [one, two]) await watch.until('modified file a');
    });
    await out(`touch ${dir}/b`);
    await one.until('modified file b');
  });
});

test('more watches than a sandbox has room for are refused, and other requests are not', async () => {
  const { id: other } = await api.create();
  const open = await Promise.all(Array.from({ length: 32 }, () => Watch.open('/tmp', { sandbox: other })));
  assertError(await refused({ path: '/tmp' }, other), 429);
  assert.equal((await refused({ path: '/tmp' }, other)).json.error.code, 'too_many_watches');
  await api.put(other, '/tmp/x', 'x');
  for (const watch of open) await watch.until('created file x').catch(() => {});
  for (const watch of open) watch.close();
  await until(async () => (await helpers(other)).length === 0, { what: 'the helpers are gone' });
  (await Watch.open('/tmp', { sandbox: other })).close();
  await api.purge(other);
});

// Ends ----------------------------------------------------------------------------------------

test('a client that leaves ends the helper inside', async () => {
  await until(async () => (await helpers(id)).length === 0, { what: 'those before are gone' });
  const watch = await Watch.open(await fresh(), { recursive: true });
  assert.equal((await helpers(id)).length, 1);
  watch.close();
  await until(async () => (await helpers(id)).length === 0, { what: 'the helper is gone' });
});

test('the end of what is watched ends the stream with gone', async () => {
  for (const end of ['rm -r w', 'mv w v']) {
    const dir = await fresh('mkdir w');
    const watch = await Watch.open(`${dir}/w`, { recursive: true });
    await out(`cd ${dir} && ${end}`);
    await within('the stream ends', watch.done);
    assert.deepEqual([watch.events.at(-1).event, watch.events.at(-1).data], ['gone', { path: `${dir}/w` }]);
    assert.ok(watch.ended && !watch.error, String(watch.error));
  }
});

test('the end of the sandbox ends the stream with gone', async () => {
  const ends = { stop: (sandbox) => api.life(sandbox, 'stop'), reset: (sandbox) => api.life(sandbox, 'reset'), delete: (sandbox) => api.remove(sandbox) };
  for (const [name, end] of Object.entries(ends)) {
    const { id: other } = await api.create();
    const watch = await Watch.open('/workspace', { recursive: true, sandbox: other });
    await end(other);
    await within(`the stream ends after ${name}`, watch.done);
    assert.deepEqual([watch.events.at(-1).event, watch.events.at(-1).data], ['gone', { path: '/workspace' }]);
    assert.ok(watch.ended && !watch.error, String(watch.error));
  }
});

test('a watch wakes a stopped sandbox, and does not keep it awake', async () => {
  const { id: other } = await api.create({ idle_timeout_s: 2 });
  await api.life(other, 'stop');
  const watch = await Watch.open('/workspace', { sandbox: other });
  assert.equal((await api.get(other)).status, 'running');
  await within('the idle sandbox is stopped', watch.done);
  assert.equal(watch.events.at(-1).event, 'gone');
});

test('a whole sandbox can be watched', async () => {
  await withWatch('/', { recursive: true }, async (watch) => {
    const name = ulid();
    await out(`mkdir /tmp/${name} && echo x > /tmp/${name}/f`);
    const paths = new Set();
    while (!paths.has(`/tmp/${name}/f`)) paths.add((await watch.next()).data.path);
    assert.ok([...paths].every((path) => !path.startsWith('/proc/')), [...paths].join(' '));
  });
});

test('the command line prints a line for each change and ends with what is watched', async () => {
  const dir = await fresh('mkdir w');
  const child = spawn(program('sandlot'), ['watch', '-r', id, `${dir}/w`], {
    env: instance.environment({ SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: api.token }), stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => { text += chunk; });
  const ended = new Promise((go) => child.on('close', go));
  await until(() => text === `ready    ${dir}/w\n`, { what: 'it is ready' });
  await out(`cd ${dir}/w && mkdir a && mv a 'b c' && rmdir 'b c' && rmdir ../w`);
  assert.equal(await within('it ends', ended), 0);
  assert.deepEqual(text.split('\n').slice(1), [`created  ${dir}/w/a`, `moved    ${dir}/w/a "${dir}/w/b c"`, `deleted  "${dir}/w/b c"`, `gone     ${dir}/w`, '']);
});

// Mistakes ------------------------------------------------------------------------------------

test('what cannot be watched is refused', async () => {
  const dir = await fresh('touch file');
  assert.equal(assertError(await refused({ path: `${dir}/none` }), 404).code, 'file_not_found');
  assert.equal(assertError(await refused({ path: `${dir}/none/below`, recursive: true }), 404).code, 'file_not_found');
  assert.equal(assertError(await refused({ path: `${dir}/file/below` }), 400).code, 'not_a_directory');
  assertError(await refused({}), 400, /path/);
  assertError(await refused({ path: 'relative' }), 400);
  assertError(await refused({ path: `${dir}/..` }), 400);
  for (const recursive of ['1', 'yes', '', 'TRUE']) assertError(await refused({ path: dir, recursive }), 400, /recursive/);
  assertError(await refused({ path: dir }, '01arz3ndektsv4rrffq69g5fav'), 404);
  await until(async () => (await helpers(id)).length === 0, { what: 'no helper stays' });
});

finish();
