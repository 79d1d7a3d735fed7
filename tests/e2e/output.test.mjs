// SPDX-License-Identifier: Apache-2.0
// The output of a process: every byte has its number, is kept within a bound, and is read by any number of
// clients, each from where it stopped.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { assertError, eventBytes } from './lib/client.mjs';
import { Counter, Processes, chatty, collect, numbered } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { eachLimit, until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('output');
const { id } = await api.create();
const ps = new Processes(api);
const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');
const python = (program) => ({ argv: ['python3', '-c', program] });
const SEED = Number(process.env.E2E_SEED ?? crypto.randomInt(2 ** 31));

/** A small generator of random numbers that can be told to do the same again. */
function randomFrom(seed) {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    return state % below;
  };
}

// Streams that say nothing, opened first so that their first heartbeat is due when the rest is done.
const silent = await ps.start(id, { argv: ['sleep', '6201'] });
const quiet = await Promise.all([ps.output(id, silent.id), api.execStream(id, { argv: ['sleep', '6202'] })]);
const pings = quiet.map((stream) => {
  const seen = { text: '' };
  stream.response.on('data', (chunk) => { seen.text += chunk; });
  stream.response.on('error', () => {});
  return seen;
});

test('events carry the bytes, their stream and their offsets', async () => {
  const { id: p, pid } = await ps.start(id, 'echo one; exit 3');
  await ps.wait(id, p);
  const stream = await ps.output(id, p);
  assert.match(stream.response.headers['content-type'], /^text\/event-stream/);
  const events = await collect(stream);
  assert.deepEqual(events.map(({ event, id: number }) => [event, number]), [['start', '0'], ['stdout', '4'], ['exit', '5']]);
  assert.deepEqual(events[0].data, { process: p, pid });
  assert.equal(events[1].data.data, 'one\n');
  assert.equal(events[2].data.exit_code, 3);
  const record = await ps.get(id, p);
  assert.deepEqual(events[2].data, { exit_code: record.exit_code, duration_ms: record.duration_ms, termination: record.termination });
});

test('the stream of a foreground exec has the same numbers', async () => {
  const seen = numbered(await collect(await api.execStream(id, 'echo one; echo two >&2; exit 7')));
  assert.match(seen.start.process, /^p\d+$/);
  assert.ok(seen.start.pid > 1);
  assert.equal(seen.stdout.toString(), 'one\n');
  assert.equal(seen.stderr.toString(), 'two\n');
  assert.equal(seen.end, 8);
  assert.equal(seen.exit.exit_code, 7);
});

test('output can be read from every offset, also from within a character', async () => {
  const text = 'aé😀\0z\n';
  const { id: p } = await ps.start(id, { argv: ['cat'], stdin_base64: Buffer.from(text).toString('base64') });
  await ps.wait(id, p);
  const whole = Buffer.from(text);
  for (let from = 0; from <= whole.length; from++) {
    for (const options of [{ from }, { lastEventId: String(from) }]) {
      const events = await ps.replay(id, p, options);
      assert.ok(!events.some((event) => event.event === 'start'), 'who resumes has seen the start');
      const seen = numbered(events, from);
      assert.deepEqual(seen.bytes, whole.subarray(from), `from ${from}`);
      assert.equal(seen.exit.exit_code, 0);
    }
  }
});

test('after the exit there is nothing more: 204, and beyond it 400', async () => {
  const { id: p } = await ps.start(id, 'printf 12345');
  await ps.wait(id, p);
  for (const options of [{ lastEventId: '6' }, { from: 6 }]) {
    const { status, answer } = await ps.output(id, p, options);
    assert.equal(status, 204);
    assert.equal(answer.body.length, 0);
  }
  for (const options of [{ lastEventId: '7' }, { from: 7 }]) assertError((await ps.output(id, p, options)).answer, 400);
});

test('Last-Event-ID wins over from', async () => {
  const { id: p } = await ps.start(id, 'printf 0123456789');
  await ps.wait(id, p);
  assert.equal(numbered(await ps.replay(id, p, { from: 2, lastEventId: '7' }), 7).stdout.toString(), '789');
});

test('a reader follows what is written, and who comes later sees the same', async () => {
  const { id: p } = await ps.start(id, 'while read line; do echo "$line"; done');
  const stream = await ps.output(id, p);
  const events = stream.events();
  assert.equal((await events.next()).value.event, 'start');
  for (const word of ['first', 'second', 'third']) {
    await ps.write(id, p, `${word}\n`);
    const { value } = await within(`the event of ${word}`, events.next());
    assert.equal(eventBytes(value).toString(), `${word}\n`);
  }
  await ps.closeStdin(id, p);
  assert.equal((await within('the exit', events.next())).value.event, 'exit');
  assert.equal((await events.next()).done, true, 'the stream ends with it');
  assert.equal((await ps.read(id, p)).stdout.toString(), 'first\nsecond\nthird\n');
});

test('follow=false ends after what is there, with the exit only if there was one', async () => {
  const { id: p } = await ps.start(id, 'echo there; read line; echo late');
  await ps.untilOutput(id, p, 'there');
  const now = numbered(await within('the end of the stream', ps.replay(id, p, { follow: false })));
  assert.equal(now.stdout.toString(), 'there\n');
  assert.equal(now.exit, null);
  await ps.write(id, p, '\n');
  await ps.wait(id, p);
  const then = numbered(await ps.replay(id, p, { follow: false, lastEventId: now.lastId }), now.end);
  assert.equal(then.stdout.toString(), 'late\n');
  assert.equal(then.exit.exit_code, 0);
});

test('a client that takes JSON and no events is told what is there, at once, and goes on from there', async () => {
  const { id: p } = await ps.start(id, 'echo one; echo two >&2; read line; echo "$line"; printf "\\377"; exit 3');
  const read = async (from) => {
    const answer = await api.request('GET', `/v1/sandboxes/${id}/processes/${p}/output`, { query: from === undefined ? {} : { from }, headers: { accept: 'application/json, text/plain, */*' } });
    assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/json'], answer.text);
    return answer.json;
  };
  const first = await until(async () => { const now = await read(); return now.next === 8 && now; }, { what: 'it has printed two lines' });
  assert.deepEqual(first, { status: 'running', exit_code: null, truncated: false, next: 8, more: false, stdout: 'one\n', stderr: 'two\n' });
  await ps.stdin(id, p, { data: 'three\n' });
  await ps.wait(id, p);
  assert.deepEqual(await read(first.next), { status: 'exited', exit_code: 3, truncated: false, next: 15, more: false, stdout_base64: Buffer.from('three\n\xff', 'latin1').toString('base64'), stderr: '' });
  assert.equal((await read()).stdout_base64, Buffer.from('one\nthree\n\xff', 'latin1').toString('base64'));
  const { id: large } = await ps.start(id, python('print("x" * (3 << 20))'));
  await ps.wait(id, large);
  const parts = [];
  for (let from = 0, more = true; more;) {
    const { json } = await api.request('GET', `/v1/sandboxes/${id}/processes/${large}/output`, { query: { from }, headers: { accept: 'application/json' } });
    parts.push(json.stdout);
    ({ next: from, more } = json);
  }
  assert.ok(parts.length > 2, `${parts.length} parts`);
  assert.equal(parts.join(''), `${'x'.repeat(3 << 20)}\n`);
});

test('stdout and stderr keep the order in which they were written', async () => {
  const { id: p } = await ps.start(id, python('import os\nfor i in range(12):\n    os.write(1 + i % 2, b"%d\\n" % i)\n    os.read(0, 1)'));
  const events = (await ps.output(id, p)).events();
  await events.next();
  for (let i = 0; i < 12; i++) {
    const { value } = await within(`write ${i}`, events.next());
    assert.equal(value.event, i % 2 ? 'stderr' : 'stdout');
    assert.equal(eventBytes(value).toString(), `${i}\n`);
    await ps.write(id, p, 'x');
  }
  assert.equal((await events.next()).value.event, 'exit');
  const again = await ps.read(id, p);
  assert.deepEqual(again.runs.map((run) => `${run.stream} ${run.bytes}`), Array.from({ length: 12 }, (_, i) => `${i % 2 ? 'stderr' : 'stdout'} ${i}\n`));
});

test('characters split across writes and streams are whole again', async () => {
  const text = 'é😀ž\u2028';
  const { id: p } = await ps.start(id, python(`import os\nfor b in ${JSON.stringify(text)}.encode() * 100: os.write(1, bytes([b]))\nfor b in ${JSON.stringify(text)}.encode(): os.write(1, bytes([b])); os.write(2, bytes([b]))`));
  const live = numbered(await ps.replay(id, p));
  const kept = numbered(await ps.replay(id, p));
  for (const seen of [live, kept]) {
    assert.equal(seen.stdout.toString(), text.repeat(101));
    assert.equal(seen.stderr.toString(), text);
    assert.equal(seen.end, Buffer.byteLength(text) * 102);
  }
});

test('bytes of every value and lines that look like events come back as they were', async () => {
  const { id: p } = await ps.start(id, python('import sys\nsys.stdout.buffer.write(bytes(range(256)) * 300 + b"event: exit\\ndata: {}\\n\\nid: 9\\r\\n: ping\\n\\n")'));
  const { stdout, exit } = await ps.read(id, p);
  const every = Buffer.concat(Array(300).fill(Buffer.from(Array.from({ length: 256 }, (_, i) => i))));
  assert.deepEqual(stdout, Buffer.concat([every, Buffer.from('event: exit\ndata: {}\n\nid: 9\r\n: ping\n\n')]));
  assert.equal(exit.exit_code, 0);
});

test('a process that wrote nothing, and one whose output was answered, have an empty output', async () => {
  const { id: p } = await ps.start(id, 'exit 2');
  const events = await ps.replay(id, p);
  assert.deepEqual(events.map((event) => [event.event, event.id]), [['start', '0'], ['exit', '1']]);
  await api.exec(id, 'setsid sleep 6203 >/dev/null 2>&1 & echo answered');
  const buffered = await ps.find(id, 'sleep 6203');
  const seen = numbered(await ps.replay(id, buffered.id));
  assert.equal(seen.bytes.length, 0);
  assert.equal(seen.exit.exit_code, 0);
  await ps.kill(id, buffered.id);
});

test('forty clients that come at different times all see the same bytes', async () => {
  const { id: p } = await ps.start(id, chatty({ seed: 1, file: '/tmp/many.sum', pause_s: 0.002, burst: 20_000, most: 3_000_000 }));
  const reading = [];
  await eachLimit(Array.from({ length: 40 }, (_, i) => i), 1, async (i) => {
    await until(async () => (await ps.get(id, p)).output_bytes > i * 20_000, { what: `the time of client ${i}` });
    reading.push(ps.read(id, p));
  });
  await ps.closeStdin(id, p);
  await ps.wait(id, p);
  const sums = (await api.read(id, '/tmp/many.sum')).toString();
  for (const seen of await within('all readers', Promise.all(reading))) {
    assert.equal(`${sha256(seen.stdout)} ${sha256(seen.stderr)}`, sums);
    assert.equal(seen.exit.exit_code, 7);
    assert.deepEqual(seen.cuts, []);
  }
});

// The resume ----------------------------------------------------------------------------------

/** Reads raw bytes of a stream into the counter and cuts the connection after `budget` of them. */
function readAndCut(p, counter, budget) {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'last-event-id': counter.lastId };
    let left = budget;
    let text = Buffer.alloc(0);
    let request;
    const finish = () => { clearTimeout(timer); request.destroy(); resolve(); };
    const timer = setTimeout(finish, 1000); // a command that has written all it may
    request = api.open('GET', ps.path(id, p, '/output'), { headers, agent: new http.Agent() }, (error, response) => {
      if (error) return error.code === 'ECONNRESET' ? finish() : reject(error);
      if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`));
      response.on('data', (chunk) => {
        if (left <= 0) return;
        text = Buffer.concat([text, chunk.subarray(0, left)]);
        left -= chunk.length;
        try {
          for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
            const block = text.subarray(0, end).toString();
            text = text.subarray(end + 2);
            if (block.startsWith(':')) continue;
            const field = (name) => new RegExp(`^${name}: ?([^\\n]*)$`, 'm').exec(block)[1];
            counter.take({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) });
          }
        } catch (failure) {
          clearTimeout(timer);
          request.destroy();
          reject(failure);
        }
        if (left <= 0) finish();
      });
      response.on('error', () => {});
    });
  });
}

test('a reader that is cut off at 200 random places loses no byte and sees none twice', async (t) => {
  t.diagnostic(`E2E_SEED=${SEED}`);
  const random = randomFrom(SEED);
  const { id: p } = await ps.start(id, chatty({ seed: SEED, file: '/tmp/resume.sum', pause_s: 0.004, burst: 12_000 }));
  const counter = new Counter();
  let stalls = 0;
  for (let cuts = 0; cuts < 200; cuts++) {
    const at = counter.at;
    // An event that is larger than the cut allows would never come whole, so the next cut allows more.
    await readAndCut(p, counter, (1 + random(24_000)) * 2 ** stalls);
    stalls = counter.at > at ? 0 : Math.min(stalls + 1, 8);
    assert.equal(counter.exit, null);
  }
  assert.ok(counter.at > 100_000, `200 readers came only to ${counter.at}`);
  await ps.closeStdin(id, p);
  for (const event of await ps.replay(id, p, { lastEventId: counter.lastId })) counter.take(event);
  const seen = counter.result();
  assert.equal(seen.exit.exit_code, 7);
  assert.deepEqual(seen.cuts, [], `seed ${SEED}`);
  assert.equal(`${sha256(seen.stdout)} ${sha256(seen.stderr)}`, (await api.read(id, '/tmp/resume.sum')).toString(), `seed ${SEED}`);
  assert.equal((await ps.get(id, p)).output_bytes, seen.end);
  assert.deepEqual(numbered(await ps.replay(id, p)).bytes, seen.bytes);
});

test('a streamed foreground exec that is kept is resumed through its output', async () => {
  const stream = await api.execStream(id, { ...python('import sys\nfor i in range(200000): sys.stdout.write("%09d\\n" % i)\nsys.exit(5)'), on_disconnect: 'keep' });
  const counter = new Counter();
  for await (const event of stream.events()) {
    counter.take(event);
    if (counter.at > 100_000) break;
  }
  stream.close();
  const { process: p } = counter.start;
  for (const event of await within('the rest', ps.replay(id, p, { lastEventId: counter.lastId }))) counter.take(event);
  const seen = counter.result();
  assert.equal(seen.exit.exit_code, 5);
  assert.deepEqual(seen.cuts, []);
  assert.equal(sha256(seen.stdout), sha256(Buffer.from(Array.from({ length: 200_000 }, (_, i) => `${String(i).padStart(9, '0')}\n`).join(''))));
});

// The bound -----------------------------------------------------------------------------------

const LINE = 10;
const TOTAL = 40 * MI;
/** What numbered lines have between two offsets. */
function lines(from, to) {
  const first = Math.floor(from / LINE);
  const parts = [];
  for (let i = first; i * LINE < to; i++) parts.push(`${String(i).padStart(LINE - 1, '0')}\n`);
  return Buffer.from(parts.join(''), 'latin1').subarray(from - first * LINE, to - first * LINE);
}
const kilobytes = () => Number(execFileSync('du', ['-sxk', instance.dataDir], { encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] }).split('\t')[0]);

test('of forty MiB head and tail are kept, the cut is told exactly, and the disk holds no more than that', async () => {
  await api.exec(id, 'true');
  const before = kilobytes();
  const { id: p } = await ps.start(id, python(`import sys\nfor i in range(${TOTAL / LINE}): sys.stdout.write("%09d\\n" % i)`));
  const most = { kilobytes: 0 };
  const sampling = until(async () => {
    most.kilobytes = Math.max(most.kilobytes, kilobytes() - before);
    return (await ps.get(id, p)).status === 'exited';
  }, { every: 50, what: 'its end' });
  const live = await ps.read(id, p);
  await sampling;
  const kept = await ps.read(id, p);
  for (const seen of [live, kept]) {
    assert.equal(seen.end, TOTAL);
    assert.equal(seen.exit.exit_code, 0);
    for (const run of seen.runs) assert.ok(run.bytes.equals(lines(run.from, run.from + run.bytes.length)), `the bytes from ${run.from}`);
  }
  assert.equal((await ps.get(id, p)).output_bytes, TOTAL);
  assert.equal(kept.cuts.length, 1, JSON.stringify(kept.cuts));
  const [{ from, to }] = kept.cuts;
  assert.ok(from >= 4 * MI && TOTAL - to >= 4 * MI, `head ${from}, tail ${TOTAL - to}`);
  assert.ok(kept.bytes.length <= 16 * MI && kept.bytes.length >= 12 * MI, `${kept.bytes.length} bytes are kept`);
  const held = kilobytes() - before;
  assert.ok(held >= kept.bytes.length / 1024 * 0.9, `not proven: the log is not below the data directory (${held} KiB more)`);
  assert.ok(held <= 20 * 1024, `${held} KiB on disk`);
  assert.ok(most.kilobytes <= 24 * 1024, `at most ${most.kilobytes} KiB on disk`);

  const inside = numbered(await ps.replay(id, p, { from: from + 1234 }), from + 1234);
  assert.deepEqual(inside.cuts, [{ from: from + 1234, to }], 'who resumes inside the cut is told of the rest of it');
  assert.deepEqual(inside.bytes, lines(to, TOTAL));
  assert.deepEqual(numbered(await ps.replay(id, p, { from: to }), to).cuts, []);
  const head = numbered(await ps.replay(id, p, { lastEventId: String(from) }), from);
  assert.deepEqual(head.cuts, [{ from, to }]);

  await api.life(id, 'stop');
  assert.deepEqual((await ps.read(id, p)).cuts, kept.cuts, 'and after a stop it is the same');
});

test('all processes together keep no more than the disk of their sandbox holds, and it counts of the quota', async () => {
  const bytes = (text) => parseInt(text, 10) * ({ Ki: 1024, Mi: MI, Gi: 1024 * MI }[text.replace(/\d/g, '')] ?? 1);
  const used = async () => bytes((await api.request('GET', '/v1/quotas/default/admin')).json.used.disk);
  const before = await used();
  const { id: small } = await api.create({ resources: { disk: '4Mi' } });
  const logs = path.join(instance.dataDir, 'state/logs', small);
  // A part of a log may be removed between the two calls.
  const sizeOf = (name) => fs.statSync(path.join(logs, name), { throwIfNoEntry: false })?.size ?? 0;
  const onDisk = () => fs.readdirSync(logs).reduce((sum, name) => sum + Math.ceil(sizeOf(name) / 4096) * 4096, 0);
  const flood = 'head -c 1500000 /dev/zero | tr "\\0" x';
  const made = [];
  for (let i = 0; i < 6; i++) {
    made.push((await ps.start(small, flood)).id);
    await ps.wait(small, made.at(-1));
    assert.ok(onDisk() <= 4 * MI, `${onDisk()} bytes after ${made.length} processes`);
  }
  const running = await Promise.all([1, 2, 3, 4].map(() => ps.start(small, `${flood}; exec sleep 6205`)));
  for (const { id: p } of running) {
    await until(async () => (await ps.get(small, p)).output_bytes === 1500000, { what: `all that ${p} writes` });
    assert.ok(onDisk() <= 4 * MI, `${onDisk()} bytes`);
  }
  const first = await ps.read(small, made[0]);
  assert.deepEqual([first.cuts, first.exit.exit_code], [[{ from: 0, to: 1500000 }], 0], 'what had to go is told');
  const { disk } = await api.stats(small);
  assert.ok(disk.output_bytes === onDisk() && disk.output_bytes > 2 * MI, JSON.stringify(disk));
  await until(async () => await used() >= before + 6 * MI, { what: 'it counts' });
  await api.purge(small);
  await until(async () => await used() <= before, { what: 'it counts no longer' });
});

test('streams that have nothing to say send heartbeats', async () => {
  // The sandbox was stopped above, so these two have ended by now; they were opened long before, or are again.
  const fresh = await ps.start(id, { argv: ['sleep', '6204'] });
  const streams = [];
  for (const [i, seen] of pings.entries()) {
    if (/^: ?ping$/m.test(seen.text)) continue;
    const stream = i === 0 ? await ps.output(id, fresh.id) : await api.execStream(id, { argv: ['sleep', '6205'] });
    seen.text = '';
    stream.response.on('data', (chunk) => { seen.text += chunk; });
    stream.response.on('error', () => {});
    streams.push(stream);
  }
  await until(() => pings.every((seen) => /^: ?ping$/m.test(seen.text)), { every: 100, what: 'a comment on each stream' });
  for (const stream of [...quiet, ...streams]) stream.close();
  await ps.kill(id, fresh.id);
});

finish();
