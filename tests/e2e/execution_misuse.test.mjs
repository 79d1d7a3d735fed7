// SPDX-License-Identifier: Apache-2.0
// What code may do wrong, in every language that can, in a sandbox, in one of its own and in a context: each gives a clear
// result within its time, and the next execution in the same place is well.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('execution_misuse', { width: 4 });
const LIMITS = { memory: '256Mi', pids: 96 };
const { id } = await api.create({ resources: LIMITS });
const IN = `/v1/sandboxes/${id}/executions`;

async function run(at, body) {
  const answer = await api.request('POST', at, { json: body, timeout_ms: 240_000 });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
async function context(language) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language } });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

const WELL = { python: 'print("well")', javascript: 'console.log("well")', shell: 'echo well' };
/** What each becomes: its status, and the types that its error may have. */
const MISUSES = {
  'a loop without an end': {
    wanted: ['timeout', ['Timeout']], timeout_ms: 800,
    python: 'while True: pass', javascript: 'for (;;);', shell: 'while :; do :; done',
  },
  'output without an end': {
    wanted: ['timeout', ['Timeout']], timeout_ms: 2000, isCut: true,
    python: 'while True: print("y" * 99)', javascript: 'for (;;) console.log("y".repeat(99));', shell: `while :; do echo ${'y'.repeat(99)}; done`,
  },
  'processes without an end': {
    wanted: ['timeout', ['Timeout']], timeout_ms: 2000,
    python: 'import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)',
    javascript: 'const { spawn } = require("child_process");\nsetInterval(() => { try { spawn("sleep", ["1000"]).on("error", () => {}); } catch {} }, 5);\nawait new Promise(() => {});',
    shell: 'bomb() { bomb | bomb & }; while :; do bomb 2>/dev/null; sleep 0.05; done',
  },
  'a signal to itself': {
    wanted: ['failed', ['Signal']],
    python: 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)', javascript: 'process.kill(process.pid, "SIGKILL"); await new Promise(() => {});', shell: 'kill -KILL $$',
  },
  'an exit': {
    wanted: ['failed', ['Exit']],
    python: 'import os\nos._exit(7)', javascript: 'await Promise.resolve().then(() => process.exit(7));', shell: 'exit 7',
  },
  'more memory than there is': {
    wanted: ['failed', ['OutOfMemory', 'MemoryError', 'Signal']],
    python: 'kept = []\nwhile True: kept.append(bytearray(8 << 20))', javascript: 'const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1));', shell: 'exec dd if=/dev/zero of=/dev/null bs=800M count=1',
  },
  'recursion without an end': {
    wanted: ['failed', ['RecursionError', 'RangeError', 'Signal', 'Exit', 'OutOfMemory']],
    python: 'def deep(): return deep() + 1\ndeep()', javascript: 'function deep() { return deep() + 1; }\ndeep();', shell: 'deep() { deep; }; deep',
  },
  'code that is none': {
    wanted: ['failed', ['SyntaxError', 'Exit']],
    python: 'def f(:', javascript: 'const = ;', shell: 'if true; then',
  },
};
/** These succeed in spite of what they do. */
const HARMLESS = {
  'streams that are closed or replaced': {
    python: 'import os, sys\nsys.stdout = None\nos.close(1)\nos.close(2)', javascript: 'console.log = null; process.stdout.write = () => true; require("fs").closeSync(1);', shell: 'exec >&- 2>&-; echo lost || true',
  },
  'tools that are replaced': {
    python: 'import builtins, json, os\njson.dumps = json.loads = os.write = os.read = None\nbuiltins.len = builtins.isinstance = builtins.print = None', javascript: 'JSON.stringify = JSON.parse = Buffer.from = Array.isArray = process.once = null; Object.prototype.toJSON = () => "odd"; Object.freeze(Buffer.prototype);', shell: 'echo() { :; }; printf() { :; }; cat() { :; }; PATH=',
  },
  'children and threads that stay': {
    python: 'import subprocess, threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\nsubprocess.Popen(["sh", "-c", "while :; do echo late; sleep 0.01; done"])\nNone',
    javascript: 'require("child_process").spawn("sh", ["-c", "while :; do echo late; sleep 0.01; done"], { stdio: "inherit" }).unref(); undefined', shell: 'while :; do echo late; sleep 0.01; done &',
  },
};

function assertOutcome(name, execution, { wanted: [status, types], isCut }) {
  const said = `${name}: ${JSON.stringify(execution).slice(0, 1500)}`;
  assert.equal(execution.status, status, said);
  assert.ok(types.includes(execution.error.type), said);
  assert.ok(execution.error.message.length > 0, said);
  // How much it wrote in its time is not for a test to say.
  if (isCut) assert.deepEqual([execution.stdout.length > 0, execution.stdout.length <= 1 << 20, execution.truncated.includes('stdout')], [true, true, execution.stdout.length > (1 << 20) - 1000]);
}
async function assertWell(name, at, body) {
  const next = await run(at, body);
  assert.deepEqual([next.status, next.stdout.split('\n').filter((line) => line !== 'late').join('\n')], ['succeeded', 'well\n'], `after ${name}: ${JSON.stringify(next).slice(0, 1500)}`);
}

for (const language of ['python', 'javascript', 'shell']) {
  for (const [place, at, more] of [['a sandbox', IN, {}], ['one of its own', '/v1/executions', { resources: LIMITS }]]) {
    test(`${language} in ${place}: each misuse is told, and the next execution is well`, async () => {
      for (const [name, row] of Object.entries(MISUSES)) {
        assertOutcome(name, await run(at, { language, code: row[language], timeout_ms: row.timeout_ms ?? 60_000, ...more }), row);
        await assertWell(name, at, { language, code: WELL[language], ...more });
      }
      for (const [name, row] of Object.entries(HARMLESS)) {
        const execution = await run(at, { language, code: row[language], timeout_ms: 60_000, ...more });
        assert.equal(execution.status, 'succeeded', `${name}: ${JSON.stringify(execution).slice(0, 1500)}`);
        const next = await run(at, { language, code: WELL[language], ...more });
        assert.deepEqual([next.status, next.stdout], ['succeeded', 'well\n'], `after ${name}`);
      }
    });
  }
}

for (const language of ['python', 'javascript']) {
  test(`${language} in a context: each misuse is told, its state is said truthfully, and the next execution is well`, async () => {
    const mark = language === 'python' ? 'mark = 1' : 'var mark = 1;';
    const look = language === 'python' ? '"mark" in globals()' : 'typeof mark !== "undefined"';
    // An interpreter that later code shares has what earlier code made of it: of its builtins it needs its own.
    const rest = { ...HARMLESS, 'tools that are replaced': { python: 'import json, os\njson.dumps = json.loads = os.write = os.read = os.getpid = None', javascript: HARMLESS['tools that are replaced'].javascript } };
    for (const [name, row] of Object.entries({ ...MISUSES, ...rest })) {
      const own = await context(language);
      await run(IN, { context_id: own, code: mark });
      const execution = await run(IN, { context_id: own, code: row[language], timeout_ms: row.timeout_ms ?? 60_000 });
      if (row.wanted) assertOutcome(name, execution, row);
      else assert.equal(execution.status, 'succeeded', `${name}: ${JSON.stringify(execution).slice(0, 1500)}`);
      await assertWell(name, IN, { context_id: own, code: WELL[language] });
      const { result } = await run(IN, { context_id: own, code: look });
      assert.deepEqual([execution.state, result], execution.state === 'kept' ? ['kept', true] : ['lost', false], `${name}: what it says of its state is so`);
      assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}/contexts/${own}`)).status, 204);
    }
  });
}

test('the command line refuses an event that is no JSON, and says where it is not', async () => {
  const { sandlot } = commandLine(instance);
  const { code, stderr } = await sandlot(['run-code', '-l', 'python', '-', id, '--event', '{"a": nonsense}'], { input: 'def handler(e): return e' });
  assert.notEqual(code, 0);
  assert.match(stderr, /event.*JSON/i);
  const file = path.join(instance.home, 'event.json');
  fs.writeFileSync(file, '{"from": "a file"}\n');
  assert.deepEqual(JSON.parse((await sandlot(['run-code', '-l', 'python', '-', id, '--event', `@${file}`], { input: 'def handler(e): return e' })).stdout), { from: 'a file' });
  fs.writeFileSync(file, '{"from": ');
  assert.match((await sandlot(['run-code', '-l', 'python', '-', id, '--event', `@${file}`], { input: 'def handler(e): return e' })).stderr, /event is not JSON/);
  assert.match((await sandlot(['run-code', '-l', 'python', '-', id, '--event', '@/nowhere'], { input: 'def handler(e): return e' })).stderr, /nowhere/);
});

finish();
