// SPDX-License-Identifier: Apache-2.0
// Files of a sandbox over HTTP: content, ranges, listings, moves, and paths that try to leave.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { assertError, encodePath, raw } from './lib/client.mjs';
import { IS_SANITIZED } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI, modeOf, quoted, ulid } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('files');
const { id } = await api.create();
const AGENT = '/workspace/agent_workspace';
const fresh = (name = 'f') => `${AGENT}/${ulid()}/${name}`;
const out = async (command, user) => (await api.out(id, { command, user })).trim();

/** Whatever a temporary file of an upload may be called: everything in the directory. */
const names = async (dir) => (await api.listFiles(id, dir)).entries.map((entry) => entry.name).sort();

// Content -------------------------------------------------------------------------------------

test('binary content comes back as it was, and is seen inside', async () => {
  const file = fresh('binary');
  const content = crypto.randomBytes(300_001);
  await api.put(id, file, content);
  assert.deepEqual(await api.read(id, file), content);
  assert.equal(await out(`sha256sum < ${file} | cut -d" " -f1`), crypto.createHash('sha256').update(content).digest('hex'));
});

test('what a command wrote is read', async () => {
  await api.exec(id, `printf 'from inside\\000\\377' > ${AGENT}/inside`);
  assert.deepEqual(await api.read(id, `${AGENT}/inside`), Buffer.from('from inside\0\xff', 'latin1'));
});

test('an empty file is a file', async () => {
  const file = fresh('empty');
  await api.put(id, file, '');
  assert.equal((await api.read(id, file)).length, 0);
  assert.equal((await api.stat(id, file)).size, 0);
});

test('a file is created with 201 or replaced with 200 or 204, and its parents are made', async () => {
  const file = `${AGENT}/${ulid()}/a/b/c/d/file`;
  const first = await api.tryPut(id, file, 'one');
  assert.equal(first.status, 201, first.text);
  const second = await api.tryPut(id, file, 'two');
  assert.ok([200, 204].includes(second.status), second.text);
  assert.equal((await api.read(id, file)).toString(), 'two');
});

test('created files and directories belong to the user, who can change and remove them', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/sub/file`, 'x');
  await api.mkdir(id, `${dir}/made`);
  assert.equal(await out(`stat -c %U:%G ${dir} ${dir}/sub ${dir}/sub/file ${dir}/made | sort -u`), 'sandbox:sandbox');
  assert.equal(await out(`echo more >> ${dir}/sub/file && rm -r ${dir} && echo removed`), 'removed');
});

test('mode sets the permission bits, and a replaced file keeps them', async () => {
  const file = fresh('mode');
  await api.put(id, file, 'x');
  assert.equal(await out(`stat -c %a ${file}`), '644');
  await api.put(id, file, 'x', { query: { mode: '0750' } });
  assert.equal(await out(`stat -c %a ${file}`), '750');
  await api.put(id, file, 'y');
  assert.equal(await out(`stat -c %a ${file}`), '750', 'kept');
  await out(`chmod 4600 ${file}`);
  await api.put(id, file, 'z', { query: { mode: '600' } });
  assert.equal(await out(`stat -c %a ${file}`), '600');
});

test('a new file belongs to the user who runs commands, wherever that user may go', async () => {
  for (const [dir, uid] of [['/tmp', 1000], ['/opt/app/deep', 1000], ['/var/tmp', 1000], ['/home/sandbox', 1000], ['/workspace', 1000], ['/root', 0]]) {
    const file = `${dir}/${path.basename(fresh('owned'))}`;
    await api.put(id, file, 'x');
    assert.equal(await out(`stat -c %u:%g ${file}`, 'root'), `${uid}:${uid}`, file);
  }
  assert.equal(await out('stat -c %u /opt/app /opt/app/deep'), '1000\n1000', 'and so do directories that are made for it');
  await api.out(id, 'echo more >> /opt/app/deep/own');
});

test('a replaced file keeps its owner', async () => {
  await out('echo x > /opt/owned; chown 1000:1000 /opt/owned; echo x > /opt/root-owned', 'root');
  await api.put(id, '/opt/owned', 'y');
  await api.put(id, '/opt/root-owned', 'y');
  assert.equal(await out('stat -c %u /opt/owned /opt/root-owned'), '1000\n0');
});

test('bad modes are 400 and change nothing', async () => {
  const file = fresh('badmode');
  for (const mode of ['', '8', '-1', '0x1ff', '99999', 'rwx', '+644', ' 644', '644 ', '7777777777777']) {
    assertError(await api.tryPut(id, file, 'x', { query: { mode } }), 400, /mode/);
  }
  assert.equal(await api.exists(id, file), false);
});

test('setuid bits cannot be made through the interface, or are inert', async () => {
  const file = fresh('suid');
  const answer = await api.tryPut(id, file, await api.read(id, '/usr/bin/id'), { query: { mode: '4755' } });
  if (answer.status >= 400) return void assertError(answer, 400, /mode/);
  assert.equal(await out(`${file} -u`), '1000');
});

test('HEAD tells size and tag without the content', async () => {
  const file = fresh('head');
  await api.put(id, file, 'x'.repeat(12345));
  const head = await api.files('HEAD', id, file);
  assert.equal(head.status, 200);
  assert.equal(head.headers['content-length'], '12345');
  assert.equal(head.body.length, 0);
  const get = await api.files('GET', id, file);
  assert.equal(get.headers.etag, head.headers.etag);
  assert.ok(head.headers.etag);
  assert.equal(get.headers['accept-ranges'], 'bytes');
  assert.ok(get.headers['last-modified'] === undefined || !Number.isNaN(Date.parse(get.headers['last-modified'])));
  assert.equal((await api.files('HEAD', id, fresh('none'))).status, 404);
});

test('a file served to a browser cannot become a page of ours', async () => {
  const file = fresh('page.html');
  await api.put(id, file, '<script>alert(1)</script>');
  const { headers } = await api.files('GET', id, file);
  assert.doesNotMatch(headers['content-type'] ?? '', /html|javascript|svg/);
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.equal(headers['content-disposition'], "attachment; filename*=UTF-8''page.html");
});

test('ranges: first, middle, last, suffix, open end, beyond the end', async () => {
  const file = fresh('range');
  const content = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
  await api.put(id, file, content);
  for (const [range, from, to] of [['0-0', 0, 0], ['0-9', 0, 9], ['100-199', 100, 199], ['999-999', 999, 999], ['990-', 990, 999], ['-10', 990, 999], ['-5000', 0, 999], ['500-5000', 500, 999]]) {
    const answer = await api.files('GET', id, file, { headers: { range: `bytes=${range}` } });
    assert.equal(answer.status, 206, range);
    assert.equal(answer.headers['content-range'], `bytes ${from}-${to}/1000`, range);
    assert.equal(answer.headers['content-length'], String(to - from + 1));
    assert.deepEqual(answer.body, content.subarray(from, to + 1), range);
  }
});

test('a range counts only for the file that If-Range names, so that a download goes on with the same bytes', async () => {
  const file = fresh('if-range');
  await api.files('PUT', id, file, { body: Buffer.from('0123456789') });
  const { etag } = (await api.files('HEAD', id, file)).headers;
  const part = (ifRange) => api.files('GET', id, file, { headers: { range: 'bytes=5-', 'if-range': ifRange } });
  assert.deepEqual([(await part(etag)).status, (await part(etag)).body.toString()], [206, '56789']);
  await api.files('PUT', id, file, { body: Buffer.from('abcdefghij') });
  for (const tag of [etag, `W/${(await api.files('HEAD', id, file)).headers.etag}`, 'Thu, 19 Nov 2026 05:00:00 GMT'])
    assert.deepEqual([(await part(tag)).status, (await part(tag)).body.toString()], [200, 'abcdefghij'], tag);
});

test('a range that cannot be satisfied is 416 and tells the size', async () => {
  const file = fresh('range416');
  await api.put(id, file, 'x'.repeat(1000));
  for (const range of ['bytes=1000-', 'bytes=2000-3000', 'bytes=-0']) {
    const answer = await api.files('GET', id, file, { headers: { range } });
    assertError(answer, 416);
    assert.equal(answer.headers['content-range'], 'bytes */1000');
  }
  const empty = fresh('empty416');
  await api.put(id, empty, '');
  assert.ok([200, 416].includes((await api.files('GET', id, empty, { headers: { range: 'bytes=0-' } })).status));
});

test('a range that makes no sense is ignored or refused, never wrong', async () => {
  const file = fresh('rangebad');
  await api.put(id, file, 'x'.repeat(1000));
  for (const range of ['bytes=5-2', 'bytes=a-b', 'lines=1-2', 'bytes=', 'bytes=--5', 'bytes=18446744073709551616-', 'bytes=0-18446744073709551616', 'bytes=-18446744073709551616', 'bytes= 0-1', 'bytes=0x1-5', 'bytes=0-1,5-6']) {
    const answer = await api.files('GET', id, file, { headers: { range } });
    if (answer.status === 200) assert.equal(answer.body.length, 1000, range);
    else if (answer.status === 206) assert.ok(/^(bytes (0-999|0-1)\/1000)$/.test(answer.headers['content-range'] ?? '') || /multipart/.test(answer.headers['content-type']), `${range}: ${JSON.stringify(answer.headers)}`);
    else assertError(answer, [400, 416]);
  }
});

test('If-None-Match with the tag is 304, with another the content, and the tag changes with the content', async () => {
  const file = fresh('etag');
  await api.put(id, file, 'one');
  const { etag } = (await api.files('GET', id, file)).headers;
  assert.match(etag, /^(W\/)?"[^"]+"$/);
  const same = await api.files('GET', id, file, { headers: { 'if-none-match': etag } });
  assert.equal(same.status, 304);
  assert.equal(same.body.length, 0);
  assert.equal(same.headers.etag, etag);
  assert.equal((await api.files('GET', id, file, { headers: { 'if-none-match': `"x", ${etag}` } })).status, 304);
  assert.equal((await api.files('GET', id, file, { headers: { 'if-none-match': '*' } })).status, 304);
  assert.equal((await api.files('GET', id, file, { headers: { 'if-none-match': '"other"' } })).status, 200);
  await api.put(id, file, 'two');
  const changed = await api.files('GET', id, file, { headers: { 'if-none-match': etag } });
  assert.equal(changed.status, 200);
  assert.notEqual(changed.headers.etag, etag);
  await out(`echo three > ${file}`);
  assert.equal((await api.files('GET', id, file, { headers: { 'if-none-match': changed.headers.etag } })).status, 200, 'a change from inside counts too');
});

test('If-Match with a stale tag is 412 and the file stays, with the right one it is replaced', async () => {
  const file = fresh('ifmatch');
  await api.put(id, file, 'one');
  const { etag } = (await api.files('GET', id, file)).headers;
  assertError(await api.tryPut(id, file, 'bad', { headers: { 'if-match': '"stale"' } }), 412);
  assert.equal((await api.read(id, file)).toString(), 'one');
  await api.put(id, file, 'two', { headers: { 'if-match': etag } });
  assertError(await api.tryPut(id, file, 'three', { headers: { 'if-match': etag } }), 412);
  assert.equal((await api.read(id, file)).toString(), 'two');
  assertError(await api.tryPut(id, fresh('absent'), 'x', { headers: { 'if-match': '*' } }), 412);
  await api.put(id, file, 'four', { headers: { 'if-match': '*' } });
});

test('If-None-Match: * makes a PUT create only', async () => {
  const file = fresh('createonly');
  await api.put(id, file, 'one', { headers: { 'if-none-match': '*' } });
  assertError(await api.tryPut(id, file, 'two', { headers: { 'if-none-match': '*' } }), 412);
  assert.equal((await api.read(id, file)).toString(), 'one');
});

test('a chunked upload without a length works', async () => {
  const file = fresh('chunked');
  async function* chunks() {
    for (let i = 0; i < 100; i++) yield Buffer.alloc(1000 + i, i);
  }
  await api.put(id, file, chunks());
  const content = await api.read(id, file);
  assert.equal(content.length, 104_950);
  assert.equal(content.at(-1), 99);
});

test('Expect: 100-continue is honoured', async () => {
  const file = fresh('expect');
  const head = `PUT /v1/sandboxes/${id}/files?path=${encodePath(file)} HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${api.token}\r\nContent-Type: application/octet-stream\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
  const answer = await raw(api.port, `${head}hello`);
  assert.match(answer.text, /^HTTP\/1\.1 (100|201)/);
  assert.equal((await api.read(id, file)).toString(), 'hello');
});

test('200 MiB go in and out as a stream while the daemon stays small', async () => {
  const file = fresh('big');
  const block = crypto.randomBytes(MI);
  const total = 200;
  const before = proc.residentBytes(instance.daemon.pid);
  let peak = 0;
  const watch = setInterval(() => { peak = Math.max(peak, proc.residentBytes(instance.daemon.pid)); }, 20);
  try {
    const expected = crypto.createHash('sha256');
    async function* upload() {
      for (let i = 0; i < total; i++) {
        block.writeUInt32LE(i, 0);
        expected.update(block);
        yield Buffer.from(block);
      }
    }
    await api.put(id, file, upload(), { headers: { 'content-length': total * MI } });
    const actual = crypto.createHash('sha256');
    let size = 0;
    await new Promise((resolve, reject) => {
      api.open('GET', `/v1/sandboxes/${id}/files`, { query: { path: file } }, (error, response) => {
        if (error) return reject(error);
        response.on('data', (chunk) => { size += chunk.length; actual.update(chunk); });
        response.on('end', resolve);
        response.on('error', reject);
      });
    });
    assert.equal(size, total * MI);
    assert.equal(actual.digest('hex'), expected.digest('hex'));
  } finally {
    clearInterval(watch);
  }
  assert.ok(peak - before < (IS_SANITIZED ? 192 : 24) * MI, `the daemon grew by ${(peak - before) / MI} MiB`);
  assert.equal(await out(`stat -c %s ${file}`), String(total * MI));
  await out(`rm ${file}`);
});

test('a download whose client stalls holds up nobody and costs no memory', async () => {
  const file = fresh('stall');
  await out(`mkdir -p $(dirname ${file}) && head -c 50M /dev/zero > ${file}`);
  const before = proc.residentBytes(instance.daemon.pid);
  const stalled = await Promise.all(Array.from({ length: 8 }, () => new Promise((resolve, reject) => {
    const request = api.open('GET', `/v1/sandboxes/${id}/files`, { query: { path: file }, agent: new http.Agent() }, (error, response) => (error ? reject(error) : (response.pause(), resolve(request))));
  })));
  for (let i = 0; i < 20; i++) assert.equal((await api.files('GET', id, '/etc/passwd')).status, 200);
  assert.ok(proc.residentBytes(instance.daemon.pid) - before < 32 * MI);
  for (const request of stalled) request.destroy();
  await until(async () => !(await api.out(id, { command: 'ls -l /proc/[0-9]*/fd 2>/dev/null; true', user: 'root' })).includes(file), { what: 'nobody holds the file' });
});

test('replacing is atomic: readers see the old content or the new, never a mixture', async () => {
  const file = fresh('atomic');
  const contents = [Buffer.alloc(200_000, 'a'), Buffer.alloc(150_000, 'b'), Buffer.alloc(250_000, 'c')];
  await api.put(id, file, contents[0]);
  let writing = true;
  let reads = 0;
  const readers = Array.from({ length: 4 }, async () => {
    while (writing) {
      const answer = await api.files('GET', id, file);
      assert.equal(answer.status, 200);
      assert.ok(contents.some((content) => content.equals(answer.body)), `a mixture of ${answer.body.length} bytes`);
      reads++;
    }
  });
  const inside = api.out(id, {
    argv: ['python3', '-c', `
import time
end = time.monotonic() + 2
while time.monotonic() < end:
    data = open(${JSON.stringify(file)}, "rb").read()
    assert len(data) in (150000, 200000, 250000) and len(set(data)) == 1, len(data)
print("whole")`],
  });
  for (let i = 0; i < 60; i++) await api.put(id, file, contents[i % 3]);
  writing = false;
  await Promise.all(readers);
  assert.equal(await inside, 'whole\n');
  assert.ok(reads > 10, `${reads} reads`);
});

test('parallel writers of one file: the last whole one stays', async () => {
  const file = fresh('writers');
  await Promise.all(Array.from({ length: 20 }, (_, i) => api.put(id, file, Buffer.alloc(100_000, i + 1))));
  const content = await api.read(id, file);
  assert.equal(content.length, 100_000);
  assert.equal(new Set(content).size, 1);
  assert.deepEqual(await names(path.dirname(file)), ['writers']);
});

test('an upload that breaks off changes nothing and leaves nothing', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/kept`, 'old');
  for (const name of ['kept', 'new']) {
    for (const part of [0, 1, 1000, 100_000, 400_000]) {
      const head = `PUT /v1/sandboxes/${id}/files?path=${encodePath(`${dir}/${name}`)} HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${api.token}\r\nContent-Type: application/octet-stream\r\nContent-Length: 500000\r\n\r\n`;
      await raw(api.port, Buffer.concat([Buffer.from(head), Buffer.alloc(part, 'x')]), { end: true });
    }
  }
  await until(async () => {
    assert.deepEqual(await names(dir), ['kept']);
    return true;
  }, { what: 'no partial file is left' });
  assert.equal((await api.read(id, `${dir}/kept`)).toString(), 'old');
  await until(async () => !(await api.out(id, { command: `ls -l /proc/[0-9]*/fd 2>/dev/null; find / -xdev -size +0 -newer ${dir}/kept -path '*${path.basename(dir)}*' 2>/dev/null; true`, user: 'root' })).includes(`${dir}/new`), { what: 'nobody holds it' });
});

test('a chunked upload that breaks off leaves nothing either', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.mkdir(id, dir);
  async function* broken() {
    yield Buffer.alloc(100_000);
    throw new Error('the client gives up');
  }
  await assert.rejects(api.tryPut(id, `${dir}/new`, broken(), { agent: new http.Agent() }));
  await until(async () => {
    assert.deepEqual(await names(dir), []);
    return true;
  }, { what: 'no partial file is left' });
});

// Listings ------------------------------------------------------------------------------------

test('stat tells every field of files, directories, links and others', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && cd ${dir} && echo hello > file && chmod 640 file && mkdir sub && ln -s file link && ln -s /no/where dangling && mkfifo fifo`);
  const entries = Object.fromEntries(await Promise.all(['file', 'sub', 'link', 'dangling', 'fifo'].map(async (name) => [name, await api.stat(id, `${dir}/${name}`)])));
  for (const [name, entry] of Object.entries(entries)) {
    for (const field of ['mode', 'modified_at', 'name', 'path', 'size', 'target', 'type']) assert.ok(field in entry, `${name} has ${field}`);
    assert.equal(entry.name, name);
    assert.equal(entry.path, `${dir}/${name}`);
    assert.ok(Math.abs(Date.parse(entry.modified_at) - Date.now()) < 60_000, entry.modified_at);
  }
  assert.equal(entries.file.type, 'file');
  assert.equal(entries.file.size, 6);
  assert.equal(modeOf(entries.file.mode), 0o640);
  assert.equal(entries.file.target, null);
  assert.equal(entries.sub.type, 'dir');
  assert.equal(entries.link.type, 'symlink');
  assert.equal(entries.link.target, 'file');
  assert.equal(entries.dangling.target, '/no/where');
  assert.equal(entries.fifo.type, 'other');
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files/stat`, { query: { path: `${dir}/none` } }), 404);
});

test('a listing has the entries of one directory, with the same fields as stat', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir -p ${dir}/sub/deep && cd ${dir} && echo hello > file && echo x > .hidden && ln -s file link && echo y > sub/inner`);
  const { entries, next_cursor: cursor } = await api.listFiles(id, dir);
  assert.equal(cursor, null);
  assert.deepEqual(entries.map((entry) => entry.name).sort(), ['.hidden', 'file', 'link', 'sub']);
  for (const entry of entries) assert.deepEqual(entry, await api.stat(id, entry.path));
  assert.equal(entries.find((entry) => entry.name === 'link').target, 'file');
});

test('depth lists below, without following links', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir -p ${dir}/a/b/c && cd ${dir} && echo x > a/b/c/f && ln -s / root && ln -s .. a/up`);
  const paths = async (depth) => (await api.listFiles(id, dir, { depth })).entries.map((entry) => entry.path.slice(dir.length + 1)).sort();
  assert.deepEqual(await paths(1), ['a', 'root']);
  assert.deepEqual(await paths(2), ['a', 'a/b', 'a/up', 'root']);
  assert.deepEqual(await paths(10), ['a', 'a/b', 'a/b/c', 'a/b/c/f', 'a/up', 'root']);
});

test('a directory of 2500 entries comes in pages, each entry once', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && cd ${dir} && seq -f 'entry %05g' 2500 | xargs -d '\\n' touch`);
  for (const limit of [1000, 333]) {
    const found = [];
    let cursor;
    let pages = 0;
    do {
      const page = await api.listFiles(id, dir, { limit, cursor });
      assert.ok(page.entries.length <= limit, `${page.entries.length}`);
      found.push(...page.entries.map((entry) => entry.name));
      cursor = page.next_cursor;
      pages++;
    } while (cursor !== null);
    assert.equal(pages, Math.ceil(2500 / limit));
    assert.equal(new Set(found).size, 2500);
    assert.equal(found.length, 2500);
  }
  const plain = await api.listFiles(id, dir);
  assert.ok(plain.entries.length === 2500 || plain.next_cursor !== null, 'nothing is left out in silence');
});

test('a deep listing pages too', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && cd ${dir} && for i in 1 2 3 4 5; do mkdir -p d$i/e && touch d$i/e/f d$i/e.txt d$i/e-; done`);
  const whole = (await api.listFiles(id, dir, { depth: 5 })).entries.map((entry) => entry.path);
  assert.equal(whole.length, 25);
  const found = [];
  let cursor;
  do {
    const page = await api.listFiles(id, dir, { depth: 5, limit: 2, cursor });
    found.push(...page.entries.map((entry) => entry.path));
    cursor = page.next_cursor;
  } while (cursor !== null);
  assert.deepEqual(found, whole);
});

test('a very deep tree is listed and removed in bounded time', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.out(id, { argv: ['python3', '-c', `import os\nos.mkdir("${dir}"); os.chdir("${dir}")\nfor i in range(1500): os.mkdir("d"); os.chdir("d")`] });
  const answer = await within('list', api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: dir, depth: 100 } }));
  assert.ok([200, 400].includes(answer.status), answer.text.slice(0, 300));
  const removed = await within('delete', api.files('DELETE', id, dir, { query: { recursive: 'true' } }));
  assert.equal(removed.status, 204, removed.text);
});

test('bad parameters of a listing are 400', async () => {
  for (const query of [{ depth: 0 }, { depth: -1 }, { depth: 'x' }, { depth: '1e2' }, { depth: 99999999999 }, { limit: 0 }, { limit: -5 }, { limit: 'many' }, { limit: 99999999999 }]) {
    assertError(await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/etc', ...query } }), 400);
  }
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/etc/passwd' } }), [400, 409]);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/no/where' } }), 404);
});

test('a foreign cursor of a listing is refused or starts inside the directory', async () => {
  for (const cursor of ['../../etc', '/etc/passwd', '%', 'A'.repeat(3000), 'bm90aGluZw']) {
    const answer = await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/home', cursor } });
    if (answer.status === 200) for (const entry of answer.json.entries) assert.ok(entry.path.startsWith('/home/'));
    else assertError(answer, 400);
  }
});

// mkdir, move, delete -------------------------------------------------------------------------

test('mkdir makes a directory with its parents and may be repeated', async () => {
  const dir = `${AGENT}/${ulid()}/a/b`;
  const first = await api.mkdir(id, dir);
  assert.ok([200, 201].includes(first.status), first.text);
  assert.equal((await api.stat(id, dir)).type, 'dir');
  assert.ok([200, 201, 204].includes((await api.mkdir(id, dir)).status));
  await api.put(id, `${dir}/file`, 'x');
  assertError(await api.mkdir(id, `${dir}/file`), [400, 409]);
  assertError(await api.mkdir(id, `${dir}/file/below`), [400, 409]);
});

test('move renames files and directories', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/one`, 'content');
  await api.put(id, `${dir}/d/inner`, 'x');
  const moved = await api.move(id, `${dir}/one`, `${dir}/two`);
  assert.ok([200, 204].includes(moved.status), moved.text);
  assert.equal((await api.read(id, `${dir}/two`)).toString(), 'content');
  assert.equal(await api.exists(id, `${dir}/one`), false);
  assert.ok((await api.move(id, `${dir}/d`, `${dir}/e`)).status < 300);
  assert.equal((await api.read(id, `${dir}/e/inner`)).toString(), 'x');
  // As with a file that is written, directories on the way are made; but not for what is not there.
  assert.equal((await api.move(id, `${dir}/two`, `${dir}/new/below/two`)).status, 200);
  assert.equal(await out(`stat -c %U ${dir}/new/below`), 'sandbox');
  assertError(await api.move(id, `${dir}/none`, `${dir}/never/made`), 404, /none/);
  assert.equal(await api.exists(id, `${dir}/never`), false);
});

test('move onto something that exists is 409 and leaves both, from nothing is 404', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/one`, '1');
  await api.put(id, `${dir}/two`, '2');
  await api.mkdir(id, `${dir}/d`);
  assertError(await api.move(id, `${dir}/one`, `${dir}/two`), 409);
  assertError(await api.move(id, `${dir}/one`, `${dir}/d`), 409);
  assert.equal((await api.read(id, `${dir}/one`)).toString(), '1');
  assert.equal((await api.read(id, `${dir}/two`)).toString(), '2');
  assertError(await api.move(id, `${dir}/none`, `${dir}/x`), 404);
  assertError(await api.move(id, `${dir}/d`, `${dir}/d/inside`), [400, 409]);
});

test('a link is moved and removed itself, not what it points to', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir -p ${dir}/target && echo x > ${dir}/target/f && ln -s target ${dir}/link`);
  assert.ok((await api.move(id, `${dir}/link`, `${dir}/moved`)).status < 300);
  assert.equal((await api.stat(id, `${dir}/moved`)).type, 'symlink');
  assert.equal((await api.files('DELETE', id, `${dir}/moved`)).status, 204);
  assert.equal((await api.read(id, `${dir}/target/f`)).toString(), 'x\n');
});

test('delete removes a file, and only with recursive a directory that has entries', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/f`, 'x');
  await api.put(id, `${dir}/sub/g`, 'x');
  assert.equal((await api.files('DELETE', id, `${dir}/f`)).status, 204);
  assertError(await api.files('DELETE', id, `${dir}/f`), 404);
  assertError(await api.files('DELETE', id, dir), [400, 409]);
  assertError(await api.files('DELETE', id, dir, { query: { recursive: 'false' } }), [400, 409]);
  assert.equal((await api.read(id, `${dir}/sub/g`)).toString(), 'x');
  assert.equal((await api.files('DELETE', id, dir, { query: { recursive: 'true' } })).status, 204);
  assert.equal(await api.exists(id, dir), false);
  assertError(await api.files('DELETE', id, fresh('x'), { query: { recursive: 'maybe' } }), 400);
});

test('a recursive delete follows no link and leaves the workspace usable', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir -p ${dir}/d && echo keep > ${AGENT}/keep && ln -s ${AGENT}/keep ${dir}/d/l && ln -s / ${dir}/d/root && ln -s ${AGENT} ${dir}/d/up`);
  assert.equal((await api.files('DELETE', id, dir, { query: { recursive: 'true' } })).status, 204);
  assert.equal((await api.read(id, `${AGENT}/keep`)).toString(), 'keep\n');
  for (const mount of ['/', '/workspace', '/proc', '/dev', '/workspace/project_files']) {
    const answer = await api.files('DELETE', id, mount, { query: { recursive: 'true' } });
    assert.ok(answer.status >= 400, `DELETE ${mount}: ${answer.status}`);
  }
  assert.equal(await out('echo fine'), 'fine');
});

// Paths that try to leave ---------------------------------------------------------------------

const CALLS = {
  read: (file) => api.files('GET', id, file), write: (file) => api.tryPut(id, file, 'x'), remove: (file) => api.files('DELETE', id, file), head: (file) => api.files('HEAD', id, file),
  stat: (file) => api.request('GET', `/v1/sandboxes/${id}/files/stat`, { query: { path: file } }), list: (file) => api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: file } }),
  mkdir: (file) => api.mkdir(id, file), moveFrom: (file) => api.move(id, file, '/tmp/moved'), moveTo: (file) => api.move(id, '/etc/hosts', file),
  pack: (file) => api.getArchive(id, file), unpack: (file) => api.putArchive(id, file, Buffer.alloc(1024)),
};

test('relative, empty, missing, overlong paths and paths with a NUL are 400 in every call', async () => {
  for (const file of ['', 'x', './x', '../x', 'etc/passwd', `/${'a'.repeat(5000)}`, '/a\0b', '~', 'C:\\x', ' /etc']) {
    for (const [name, call] of Object.entries(CALLS)) {
      const answer = await call(file);
      assert.equal(answer.status, 400, `${name} ${JSON.stringify(file.slice(0, 40))}: ${answer.status} ${answer.text.slice(0, 200)}`);
      if (name !== 'head') assertError(answer, 400, /path|from|to|NUL|query|string|body/i);
    }
  }
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files`), 400, /path/);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files?path=/etc/passwd&path=/etc/group`), 400);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/files?path=%zz`), [400, 404]);
});

test('a path with dots stays inside the sandbox', async () => {
  for (const file of ['/../../../../etc/passwd', '/workspace/../../../etc/passwd', '/etc/../etc/./passwd', '//etc///passwd', '/%2e%2e/etc/passwd']) {
    const answer = await api.files('GET', id, file);
    if (answer.status === 200) assert.match(answer.text, /^sandbox:/m, `${file} is the sandbox's own`);
    else assertError(answer, [400, 404]);
  }
  const encoded = await api.request('GET', `/v1/sandboxes/${id}/files?path=%2f%2e%2e%2f%2e%2e%2fetc%2fshadow`);
  assert.ok(encoded.status >= 400 || !encoded.text.includes(fs.readFileSync('/etc/shadow', 'utf8').split('\n')[0]));
});

test('magic links of /proc lead nowhere', async () => {
  const host = fs.readFileSync('/etc/passwd', 'utf8');
  for (const file of ['/proc/self/root/etc/passwd', '/proc/1/root/etc/passwd', '/proc/self/fd/3', '/proc/self/fd/0', '/proc/1/fd/3', '/proc/self/exe', '/proc/1/exe', '/proc/self/cwd/etc/passwd', '/proc/thread-self/root/etc/shadow', '/dev/fd/3', '/dev/stdin']) {
    for (const [name, call] of Object.entries({ read: CALLS.read, write: CALLS.write, list: CALLS.list, remove: CALLS.remove })) {
      const answer = await within(`${name} ${file}`, call(file));
      assert.ok(answer.status < 500, `${name} ${file}: ${answer.text}`);
      if (name === 'read' && answer.status === 200) {
        assert.notEqual(answer.text, host, file);
        assert.match(answer.text, /^sandbox:/m, `${file} is the sandbox's own`);
      }
      if (name === 'write') assert.ok(answer.status >= 400, `PUT ${file}: ${answer.status}`);
    }
  }
  assert.equal(fs.readFileSync('/etc/passwd', 'utf8'), host);
});

test('links out of the sandbox end inside it', async () => {
  const canary = path.join(instance.home, 'canary');
  fs.writeFileSync(canary, 'host', { mode: 0o666 });
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && cd ${dir} && ln -s ${quoted(canary)} abs && ln -s ../../../../../../../..${canary} rel && ln -s / root && ln -s loop loop`);
  assertError(await api.files('GET', id, `${dir}/abs`), 404);
  assertError(await api.files('GET', id, `${dir}/rel`), 404);
  assertError(await api.files('GET', id, `${dir}/root${canary}`), 404);
  assertError(await api.files('GET', id, `${dir}/loop`), [400, 404, 409]);
  await api.tryPut(id, `${dir}/abs`, 'overwritten');
  await api.tryPut(id, `${dir}/root${canary}`, 'overwritten');
  assert.equal(fs.readFileSync(canary, 'utf8'), 'host');
});

test('a link inside the sandbox is followed when reading and writing', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.put(id, `${dir}/real`, 'one');
  await out(`ln -s real ${dir}/link`);
  assert.equal((await api.read(id, `${dir}/link`)).toString(), 'one');
  await api.put(id, `${dir}/link`, 'two');
  assert.equal((await api.read(id, `${dir}/real`)).toString(), 'two');
  assert.equal((await api.stat(id, `${dir}/link`)).type, 'symlink');
});

test('a FIFO, a socket, a device or a directory is not read or written, and nobody waits', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && mkfifo ${dir}/fifo && python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind('${dir}/sock')"`);
  for (const file of [`${dir}/fifo`, `${dir}/sock`, '/dev/zero', '/dev/null', '/dev/full', dir, '/']) {
    assertError(await within(`GET ${file}`, api.files('GET', id, file)), [400, 409]);
  }
  for (const file of [`${dir}/fifo`, `${dir}/sock`, '/dev/full', dir, '/', `${dir}/`]) {
    const answer = await within(`PUT ${file}`, api.tryPut(id, file, 'x'));
    if (file.endsWith('fifo') || file.endsWith('sock')) assert.ok(answer.status < 500, answer.text); // replacing it by a file is fine, blocking is not
    else assertError(answer, [400, 403, 409]);
  }
  assert.equal(await out('test -c /dev/full && echo device'), 'device');
});

test('files that grow or are mostly holes are bounded streams', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await out(`mkdir ${dir} && truncate -s 1T ${dir}/sparse && echo x > ${dir}/grow`);
  const head = await api.files('HEAD', id, `${dir}/sparse`);
  assert.equal(head.headers['content-length'], String(2 ** 40));
  const tail = await api.files('GET', id, `${dir}/sparse`, { headers: { range: 'bytes=-5' } });
  assert.equal(tail.status, 206);
  assert.deepEqual(tail.body, Buffer.alloc(5));
  const grow = await api.execStream(id, `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done >> ${dir}/grow`);
  for (let i = 0; i < 5; i++) assert.equal((await within('read', api.files('GET', id, `${dir}/grow`))).status, 200);
  grow.close();
  await until(async () => !(await api.processes(id)).some((line) => line.includes(`${dir}/grow`)), { what: 'the writer ended' });
});

test('a sandbox that swaps directories and links under the calls gets nothing outside', async () => {
  const canary = path.join(instance.home, 'swap-canary');
  fs.mkdirSync(canary, { recursive: true });
  fs.writeFileSync(path.join(canary, 'f'), 'host');
  fs.chmodSync(canary, 0o777);
  fs.chmodSync(path.join(canary, 'f'), 0o666);
  const dir = `${AGENT}/${ulid()}`;
  const swapper = await api.execStream(id, { argv: ['python3', '-c', `
import os
os.makedirs("${dir}/real", exist_ok=True); os.chdir("${dir}")
open("real/f", "w").write("inside")
print("up", flush=True)
while True:
    for target in ("real", "${canary}", "/proc/self/root", "/etc"):
        try:
            os.symlink(target, "new"); os.replace("new", "swap")
        except OSError: pass`] });
  for await (const event of swapper.events()) if (event.event === 'stdout') break;
  for (let i = 0; i < 150; i++) {
    const answers = await Promise.all([api.files('GET', id, `${dir}/swap/f`), api.tryPut(id, `${dir}/swap/f`, 'written'), api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: `${dir}/swap` } }), api.files('DELETE', id, `${dir}/swap/f`)]);
    for (const answer of answers) {
      assert.ok([200, 201, 204, 400, 403, 404, 409].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
      assert.ok(!answer.body.includes('host"') && answer.text !== 'host');
    }
  }
  swapper.close();
  assert.deepEqual(fs.readdirSync(canary), ['f']);
  assert.equal(fs.readFileSync(path.join(canary, 'f'), 'utf8'), 'host');
});

// Names ---------------------------------------------------------------------------------------

test('odd names go round byte by byte', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.mkdir(id, dir);
  const odd = ['new\nline', 'žluťoučký ☃ 😀', ' leading', 'trailing ', '-rf', '*', '?query&x=1#frag', '100%', '"quotes\'', 'back\\slash', '\u202egpj.exe', '<img onerror=x>', 'a'.repeat(255), 'é'.normalize('NFC'), 'é'.normalize('NFD'), '\x01\x1b[31m', 'CON', '+plus'];
  for (const name of odd) {
    await api.put(id, `${dir}/${name}`, `content of ${name}`);
    assert.equal((await api.read(id, `${dir}/${name}`)).toString(), `content of ${name}`, JSON.stringify(name));
    assert.equal((await api.stat(id, `${dir}/${name}`)).name, name);
    const { headers } = await api.files('HEAD', id, `${dir}/${name}`);
    assert.match(headers['content-disposition'], /^attachment; filename\*=UTF-8''[\w.%-]+$/);
    assert.equal(decodeURIComponent(headers['content-disposition'].split("''")[1]), name);
  }
  assert.deepEqual(await names(dir), [...odd].sort());
  const inside = await api.out(id, { argv: ['python3', '-c', `import os, json; print(json.dumps(sorted(os.listdir(${JSON.stringify(dir)}))))`] });
  assert.deepEqual(JSON.parse(inside).sort(), [...odd].sort());
});

test('names that are not UTF-8 go round too', async () => {
  const dir = `${AGENT}/${ulid()}`;
  await api.mkdir(id, dir);
  const name = Buffer.from([0x66, 0xff, 0xfe, 0x80, 0x2e]);
  const file = Buffer.concat([Buffer.from(`${dir}/`), name]);
  await api.put(id, file, 'bytes');
  assert.equal((await api.read(id, file)).toString(), 'bytes');
  const inside = await api.out(id, { argv: ['python3', '-c', `import os; print(os.listdir(b"${dir}")[0].hex())`] });
  assert.equal(inside.trim(), name.toString('hex'));
  const { entries } = await api.listFiles(id, dir);
  assert.equal(entries.length, 1, 'it is listed, however it is written in JSON');
  assert.equal((await api.files('DELETE', id, file)).status, 204);
  assert.equal((await api.listFiles(id, dir)).entries.length, 0);
});

test('a name of 256 bytes is 400', async () => {
  assertError(await api.tryPut(id, `${AGENT}/${'a'.repeat(256)}`, 'x'), 400);
  assertError(await api.mkdir(id, `${AGENT}/${'a'.repeat(256)}`), 400);
});

test('the file calls of one sandbox do not see those of another', async () => {
  const other = await api.create();
  const file = `${AGENT}/${ulid()}`;
  await api.put(id, file, 'mine');
  assertError(await api.files('GET', other.id, file), 404);
  await api.purge(other.id);
});

test('the system can be read and, as root of the sandbox, written by file calls', async () => {
  assert.match((await api.read(id, '/etc/passwd')).toString(), /^sandbox:/m);
  await api.put(id, '/opt/tool', '#!/bin/sh\necho tool\n', { query: { mode: '755' } });
  assert.equal(await out('/opt/tool'), 'tool');
  assertError(await api.tryPut(id, '/workspace/project_files/x', 'x'), [400, 403, 409]);
  assertError(await api.tryPut(id, '/proc/sys/kernel/hostname', 'evil'), [400, 403, 409]);
});

finish();
