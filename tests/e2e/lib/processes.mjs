// SPDX-License-Identifier: Apache-2.0
// The process API as the tests use it, and what its records and streams must look like.
import assert from 'node:assert/strict';

import { Answer, eventBytes, parseEvents } from './client.mjs';
import * as proc from './proc.mjs';
import { until } from './wait.mjs';

const isTime = (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) && !Number.isNaN(Date.parse(value));
const isCount = (value) => Number.isInteger(value) && value >= 0;
const orNull = (check) => (value) => value === null || check(value);
const isText = (value) => typeof value === 'string' && value.length > 0;
const isFlag = (value) => typeof value === 'boolean';
const isAmount = (value) => typeof value === 'number' && value >= 0;

const REASONS = ['exited', 'signal', 'oom', 'timeout', 'pids_limit', 'disk_full', 'killed', 'idle', 'lifetime', 'memory_pressure', 'agent_lost', 'operator'];

const TERMINATION = {
  reason: (value) => REASONS.includes(value),
  signal: orNull((value) => /^SIG[A-Z0-9+]+$/.test(value)),
  detail: orNull(isText),
  cpu_ms: isAmount,
  peak_memory_bytes: isCount,
  denied: (value) => Array.isArray(value) && value.length <= 16 && value.every((call) => isText(call.syscall) && call.count > 0 && Object.keys(call).length === 2),
  profile: orNull(isText),
};

const PROCESS = {
  id: (value) => /^p[1-9][0-9]*$/.test(value),
  pid: orNull((value) => Number.isInteger(value) && value > 1),
  command: orNull(isText),
  argv: (value) => Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string'),
  command_truncated: isFlag,
  cwd: (value) => isText(value) && value.startsWith('/'),
  user: isText,
  background: isFlag,
  pty: isFlag,
  isolated: isFlag,
  keep_awake: isFlag,
  status: (value) => ['running', 'exited'].includes(value),
  survivors: isCount,
  stdin_open: isFlag,
  output_bytes: isCount,
  timeout_ms: orNull(isCount),
  started_at: isTime,
  ended_at: orNull(isTime),
  exit_code: orNull((value) => Number.isInteger(value) && value >= 0 && value <= 255),
  duration_ms: orNull(isAmount),
  termination: orNull((value) => typeof value === 'object'),
  start: orNull(isText),
  restarts: isCount,
  flags: (value) => Array.isArray(value) && value.every(isText),
};

function assertFields(what, object, fields) {
  assert.deepEqual(Object.keys(object).sort(), Object.keys(fields).sort(), what);
  for (const [name, isRight] of Object.entries(fields)) assert.ok(isRight(object[name]), `${name} of a ${what}: ${JSON.stringify(object)}`);
}

export const assertTermination = (termination) => assertFields('termination', termination, TERMINATION);

function assertPid(process) {
  assert.ok(process.pid !== null || [126, 127].includes(process.exit_code), `only what never ran has no pid: ${JSON.stringify(process)}`);
}

/** Exactly the fields of a process, each of its type, and an end that is there altogether or not at all. */
export function assertProcess(process) {
  assertFields('process', process, PROCESS);
  const isOver = process.status === 'exited';
  for (const name of ['ended_at', 'exit_code', 'duration_ms', 'termination']) assert.equal(process[name] !== null, isOver, `${name} of ${JSON.stringify(process)}`);
  if (isOver) assertPid(process); // before that the daemon may not have heard yet that it runs
  if (isOver) assertTermination(process.termination);
  if (isOver) assert.equal(process.stdin_open, false, 'nobody reads the input of what has ended');
}

export class Processes {
  constructor(api) {
    this.api = api;
  }

  path(id, process, tail = '') {
    return `/v1/sandboxes/${id}/processes/${process}${tail}`;
  }

  tryStart(id, body) {
    return this.api.tryExec(id, { background: true, ...(typeof body === 'string' ? { command: body } : body) });
  }

  /** Starts a command in the background and returns its record. */
  async start(id, body) {
    const answer = await this.tryStart(id, body);
    assert.equal(answer.status, 201, `start: ${answer.status} ${answer.text}`);
    assert.deepEqual(Object.keys(answer.json), ['process']);
    const { process } = answer.json;
    assertProcess(process);
    assertPid(process);
    assert.equal(answer.headers.location, this.path(id, process.id));
    return process;
  }

  tryGet(id, process) {
    return this.api.request('GET', this.path(id, process));
  }

  async get(id, process) {
    return this.#record(await this.tryGet(id, process));
  }

  #record(answer) {
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(Object.keys(answer.json), ['process']);
    assertProcess(answer.json.process);
    return answer.json.process;
  }

  tryList(id, query) {
    return this.api.request('GET', `/v1/sandboxes/${id}/processes`, { query });
  }

  async list(id, query = {}) {
    const all = [];
    let cursor;
    do {
      const answer = await this.tryList(id, { ...query, cursor });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(Object.keys(answer.json), ['processes', 'next_cursor']);
      answer.json.processes.forEach(assertProcess);
      all.push(...answer.json.processes);
      cursor = answer.json.next_cursor;
    } while (cursor);
    return all;
  }

  /** The one listed process whose command line has the words. */
  async find(id, words) {
    const found = (await this.list(id)).filter((process) => process.argv.join(' ').includes(words));
    assert.equal(found.length, 1, `one process with ${words}: ${JSON.stringify(found)}`);
    return found[0];
  }

  tryWait(id, process, query = {}) {
    return this.api.request('GET', this.path(id, process, '/wait'), { query, agent: this.api.newAgent() });
  }

  /** Waits for the end and returns the record. */
  async wait(id, process) {
    const record = this.#record(await this.tryWait(id, process));
    assert.equal(record.status, 'exited', JSON.stringify(record));
    return record;
  }

  stdin(id, process, body) {
    return this.api.request('POST', this.path(id, process, '/stdin'), { json: body });
  }

  async write(id, process, data, close = false) {
    const answer = await this.stdin(id, process, Buffer.isBuffer(data) ? { data_base64: data.toString('base64'), close } : { data, close });
    assert.equal(answer.status, 204, answer.text);
  }

  async closeStdin(id, process) {
    const answer = await this.stdin(id, process, { close: true });
    assert.equal(answer.status, 204, answer.text);
  }

  signal(id, process, body) {
    return this.api.request('POST', this.path(id, process, '/signal'), { json: typeof body === 'object' ? body : { signal: body } });
  }

  resize(id, process, body) {
    return this.api.request('POST', this.path(id, process, '/resize'), { json: body });
  }

  tryKill(id, process, query) {
    return this.api.request('DELETE', this.path(id, process), { query });
  }

  async kill(id, process, query) {
    const answer = await this.tryKill(id, process, query);
    assert.equal(answer.status, 204, answer.text);
    assert.equal(answer.body.length, 0);
  }

  /**
   * Opens the output. options: from, follow, lastEventId. Returns { status, response, events(), close() }, where
   * the events of a stream that we closed simply end; an answer that is no stream has { status, answer }.
   */
  output(id, process, { from, follow, lastEventId } = {}) {
    return new Promise((resolve, reject) => {
      const headers = { accept: 'text/event-stream', 'last-event-id': lastEventId };
      const request = this.api.open('GET', this.path(id, process, '/output'), { query: { from, follow }, headers, agent: this.api.newAgent() }, (error, response) => {
        if (error) return reject(error);
        if (response.statusCode !== 200) {
          const chunks = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('end', () => resolve({ status: response.statusCode, answer: new Answer(response.statusCode, response.headers, Buffer.concat(chunks)) }));
          return;
        }
        let isClosed = false;
        const close = () => { isClosed = true; request.destroy(); };
        const events = async function* events() {
          try {
            yield* parseEvents(response);
          } catch (failure) {
            if (!isClosed) throw failure;
          }
        };
        resolve({ status: 200, response, events, close });
      });
    });
  }

  /** All events of the output until the stream ends. */
  async replay(id, process, options) {
    const stream = await this.output(id, process, options);
    assert.equal(stream.status, 200, stream.answer?.text);
    return collect(stream);
  }

  /** What a process has written, both streams apart, and its exit. */
  async read(id, process, options) {
    return numbered(await this.replay(id, process, options), options?.from ?? 0);
  }

  /** Waits until the standard output of a process has the text; the process goes on. */
  async untilOutput(id, process, text) {
    return until(async () => (await this.read(id, process, { follow: false })).stdout.toString().includes(text), { what: `${process} writes ${JSON.stringify(text)}` });
  }
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream.events()) events.push(event);
  return events;
}

/**
 * Checks that every byte has its number: ids go on from `from` without a gap or a repeat, cuts say just what is
 * missing, and nothing follows the exit. Returns the bytes.
 */
export function numbered(events, from = 0) {
  const counter = new Counter(from);
  for (const event of events) counter.take(event);
  return counter.result();
}

export class Counter {
  constructor(from = 0) {
    this.from = from;
    this.at = from;
    this.lastId = undefined;
    this.runs = []; // { stream, bytes, from }
    this.cuts = [];
    this.exit = null;
  }

  take({ id, event, data }) {
    assert.equal(this.exit, null, `${event} after the exit`);
    if (event === 'start') {
      assert.equal(id, '0');
      assert.equal(this.at, 0, 'start is the first event of the whole output');
      assert.deepEqual(Object.keys(data).sort(), ['pid', 'process']);
      this.start = data;
    } else if (event === 'stdout' || event === 'stderr') {
      const bytes = eventBytes({ data });
      assert.deepEqual(Object.keys(data).sort(), ['at', data.data === undefined ? 'data_base64' : 'data'], 'text or base64, not both');
      assert.ok(Math.abs(Date.parse(data.at) - Date.now()) < 86_400_000, data.at);
      assert.ok(bytes.length > 0, 'an event without bytes');
      this.runs.push({ stream: event, bytes, from: this.at });
      this.at += bytes.length;
      assert.equal(Number(id), this.at, `the id of ${event} is the offset one past its last byte`);
    } else if (event === 'cut') {
      assert.deepEqual(Object.keys(data).sort(), ['from', 'to']);
      assert.equal(data.from, this.at, 'a cut begins where the bytes end');
      assert.ok(data.to > data.from, JSON.stringify(data));
      this.cuts.push(data);
      this.at = data.to;
      assert.equal(Number(id), this.at);
    } else {
      assert.equal(event, 'exit', `an unknown event: ${event}`);
      assert.equal(Number(id), this.at + 1, 'the id of the exit');
      assert.deepEqual(Object.keys(data).sort(), ['duration_ms', 'exit_code', 'termination']);
      assertTermination(data.termination);
      this.exit = data;
    }
    this.lastId = id;
  }

  bytes(stream) {
    return Buffer.concat(this.runs.filter((run) => stream === undefined || run.stream === stream).map((run) => run.bytes));
  }

  result() {
    return {
      start: this.start, exit: this.exit, cuts: this.cuts, runs: this.runs, end: this.at, lastId: this.lastId,
      stdout: this.bytes('stdout'), stderr: this.bytes('stderr'), bytes: this.bytes(),
    };
  }
}

/** The live processes of the instance whose command line is just these words, as the host sees them. */
export const hostProcesses = (instance, words) =>
  instance.sandboxProcesses().filter((info) => info.state !== 'Z' && info.state !== 'X' && proc.cmdline(info.pid) === words);

/** Waits until as many processes with this command line run. */
export const untilRunning = (instance, words, count = 1) =>
  until(() => hostProcesses(instance, words).length === count, { what: `${count} processes "${words}" (there are ${hostProcesses(instance, words).length})` });

/**
 * A command that writes text, binary and errors in bursts until its standard input is closed (or it has written
 * `most` bytes), then leaves the SHA-256 of each stream in a file and exits with 7. Pauses are up to `pause_s`.
 */
export function chatty({ seed, file, pause_s, burst, most = 12_000_000 }) {
  const program = `
import hashlib, os, random, select, sys
rng = random.Random(${seed})
sums = {1: hashlib.sha256(), 2: hashlib.sha256()}
total = 0
while total < ${most} and not select.select([0], [], [], rng.random() * ${pause_s})[0]:
    fd = 2 if rng.random() < 0.2 else 1
    size = rng.randrange(1, ${burst})
    kind = rng.randrange(3)
    if kind == 0:
        data = b'line %08d\\n' % total * (size // 14 + 1)
    elif kind == 1:
        data = ('\\u017elu\\u0165 \\U0001F600 %d\\n' % total).encode() * (size // 20 + 1)
    else:
        data = rng.randbytes(size)
    sums[fd].update(data)
    total += len(data)
    while data:
        data = data[os.write(fd, data):]
sys.stdin.buffer.read()
open('${file}', 'w').write(sums[1].hexdigest() + ' ' + sums[2].hexdigest())
sys.exit(7)
`;
  return { argv: ['python3', '-c', program], stdin_open: true };
}
