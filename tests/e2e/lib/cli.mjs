// SPDX-License-Identifier: Apache-2.0
// The command line client of an instance, as a script uses it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

import { program } from './instance.mjs';
import { DEADLINE_MS } from './wait.mjs';

export function commandLine(instance) {
  const { api } = instance;
  const urlEnv = () => ({ SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: api.token });

  /** Starts the client; the child, whose `result` resolves to { code, signal, bytes, stdout, stderr }. */
  function start(args, { env = urlEnv(), input, cwd } = {}) {
    const child = spawn(program('sandlot'), args, { env: instance.environment(env), cwd, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    child.out = [];
    child.said = '';
    child.stdout.on('data', (chunk) => child.out.push(chunk));
    child.stderr.on('data', (chunk) => { child.said += chunk; });
    child.result = new Promise((resolve, reject) => {
      child.on('error', reject);
      const timer = setTimeout(() => { child.kill('SIGKILL'); reject(new Error(`sandlot ${args.join(' ')} did not end; stderr: ${child.said}`)); }, DEADLINE_MS);
      child.on('close', (code, signal) => {
        clearTimeout(timer);
        const bytes = Buffer.concat(child.out);
        resolve({ code, signal, bytes, stdout: bytes.toString(), stderr: child.said });
      });
    });
    child.result.catch(() => {}); // whoever awaits it is told
    child.shown = () => Buffer.concat(child.out).toString();
    if (input !== undefined) child.stdin.on('error', () => {}); // a command may end before its input
    if (input !== undefined && input !== 'open') child.stdin.end(input);
    return child;
  }

  /** Runs the client; { code, stdout, stderr }. */
  const sandlot = (args, options) => start(args, options).result;

  async function ok(args, options) {
    const result = await sandlot(args, options);
    assert.equal(result.code, 0, `sandlot ${args.join(' ')}: ${result.code} ${result.signal} ${result.stderr}`);
    return result.stdout;
  }

  const json = async (args) => JSON.parse(await ok(args));

  async function created(...args) {
    const sandbox = await json(['create', '-o', 'json', ...args]);
    api.made.add(sandbox.id);
    return sandbox.id;
  }

  /** A daemon that dies without a word and comes back at the same address after `meanwhile`. */
  async function crash(meanwhile = () => {}) {
    const { port } = api;
    await instance.crash();
    await meanwhile();
    await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  }

  return { urlEnv, start, sandlot, ok, json, created, crash };
}

/** Fails with a message that a person can use: what, and what to do. */
export function speaks(result, words) {
  assert.notEqual(result.code, 0);
  assert.equal(result.signal, null);
  assert.match(result.stderr, words);
  assert.equal(result.stdout, '', 'errors go to stderr');
  assert.doesNotMatch(result.stderr, /\{"error"/, 'not the raw document');
}
