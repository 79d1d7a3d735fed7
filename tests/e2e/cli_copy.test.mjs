// SPDX-License-Identifier: Apache-2.0
// Copies between a sandbox, which may be hostile, and the user's machine.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { program } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-copy');
const { urlEnv, ok, created, start, sandlot } = commandLine(instance);

test('the same copy made twice writes nothing through the links that the first one brought', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  const victim = path.join(local, 'victim');
  fs.mkdirSync(victim);
  fs.writeFileSync(path.join(victim, 'keys'), 'mine');
  // The second run copies into the directory that the first one made, under the name "outputs".
  await api.out(id, `cd /workspace/outputs && ln -s ${victim} outputs && ln -s ${victim}/keys report && echo evil > keys`);
  for (let run = 0; run < 2; run++) await ok(['cp', `${id}:/workspace/outputs`, path.join(local, 'results')]);
  assert.deepEqual(fs.readdirSync(victim), ['keys']);
  assert.equal(fs.readFileSync(path.join(local, 'results/outputs/keys'), 'utf8'), 'evil\n', 'the link gave way to a directory');
  assert.equal(fs.readlinkSync(path.join(local, 'results/report')), `${victim}/keys`, 'links stay what they are');
  // A single file under the name of such a link, named by the user or found in the directory that is named.
  await api.out(id, 'cd /workspace/outputs && rm report && echo evil > report');
  await ok(['cp', `${id}:/workspace/outputs/report`, path.join(local, 'results/report')]);
  assert.equal(fs.readFileSync(path.join(local, 'results/report'), 'utf8'), 'evil\n');
  fs.rmSync(path.join(local, 'results/report'));
  fs.symlinkSync(path.join(victim, 'keys'), path.join(local, 'results/report'));
  await ok(['cp', `${id}:/workspace/outputs/report`, path.join(local, 'results')]);
  assert.equal(fs.readFileSync(path.join(local, 'results/report'), 'utf8'), 'evil\n');
  // Nor into a directory of an earlier copy that is a link by now.
  fs.symlinkSync(victim, path.join(local, 'results/trap'));
  for (const to of ['results/trap', 'results/trap/', 'results/trap/keys']) {
    const { code, stderr } = await sandlot(['cp', `${id}:/workspace/outputs/keys`, path.join(local, to)]);
    assert.notEqual(code, 0, to);
    assert.match(stderr, /symbolic link/, to);
  }
  assert.deepEqual(fs.readdirSync(victim), ['keys']);
  assert.equal(fs.readFileSync(path.join(victim, 'keys'), 'utf8'), 'mine');
});

test('a file or directory of this machine that is missing is no failure inside, either way', async () => {
  const id = await created();
  for (const args of [[path.join(instance.home, 'missing'), `${id}:`], [`${id}:/etc/passwd`, path.join(instance.home, 'missing/x')]]) {
    const { code, stderr } = await sandlot(['cp', ...args]);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /missing\S* on this machine: No such file or directory/);
  }
});

test('cp keeps links as they are both ways, also those that lead out of the directory', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  const links = { 'venv/bin/python': '/usr/bin/python3', 'venv/lib64': 'lib', 'venv/up': '../../..', 'venv/none': 'nothing/there' };
  fs.mkdirSync(path.join(local, 'venv/bin'), { recursive: true });
  fs.mkdirSync(path.join(local, 'venv/lib'));
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, path.join(local, name));
  fs.symlinkSync('venv', path.join(local, 'alias'));
  // Twice: what is there already is no obstacle. And by a link to the directory, which its user named.
  for (const from of ['venv', 'venv/.', 'alias/.']) {
    await ok(['cp', path.join(local, from), `${id}:/workspace/agent_workspace/${from === 'venv' ? '' : 'venv/'}`]);
    assert.equal(await api.out(id, `cd /workspace/agent_workspace && readlink ${Object.keys(links).join(' ')}`), `${Object.values(links).join('\n')}\n`);
  }
  for (let run = 0; run < 2; run++) {
    await ok(['cp', `${id}:/workspace/agent_workspace/venv`, path.join(local, 'back')]);
    for (const [name, target] of Object.entries(links)) assert.equal(fs.readlinkSync(path.join(local, name.replace('venv', run ? 'back/venv' : 'back'))), target);
  }
});

test('cp writes in place into devices and pipes that are named, and replaces all else', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  await api.put(id, '/workspace/outputs/x', 'content');
  assert.equal(await ok(['cp', `${id}:/workspace/outputs/x`, '/dev/stdout']), 'content');
  await ok(['cp', `${id}:/workspace/outputs/x`, '/dev/null']);
  assert.ok(fs.statSync('/dev/null').isCharacterDevice());
  const file = path.join(local, 'file');
  const output = fs.openSync(file, 'w');
  const child = spawn(program('sandlot'), ['cp', `${id}:/workspace/outputs/x`, '/dev/stdout'], { env: instance.environment(urlEnv()), stdio: ['ignore', output, 'inherit'] });
  assert.equal(await new Promise((resolve) => child.on('close', resolve)), 0);
  fs.closeSync(output);
  assert.equal(fs.readFileSync(file, 'utf8'), 'content');
  assert.ok(fs.lstatSync('/dev/stdout').isSymbolicLink());
  // A link that somebody left is not a pipe that was named, wherever it leads.
  fs.symlinkSync('/dev/null', path.join(local, 'link'));
  await ok(['cp', `${id}:/workspace/outputs/x`, path.join(local, 'link')]);
  assert.equal(fs.readFileSync(path.join(local, 'link'), 'utf8'), 'content');
});

test('a copy of a directory that is interrupted leaves no half file', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  await api.out(id, 'mkdir /workspace/outputs/d && cd /workspace/outputs/d && echo x > a && truncate -s 1G b');
  const child = start(['cp', `${id}:/workspace/outputs/d`, path.join(local, 'd')]);
  await until(() => fs.existsSync(path.join(local, 'd')) && fs.readdirSync(path.join(local, 'd')).some((name) => name.startsWith('.sandlot-') && fs.existsSync(path.join(local, 'd/a'))), { what: 'the large file has begun' });
  child.kill('SIGINT');
  assert.equal((await child.result).code, 130);
  assert.deepEqual(fs.readdirSync(path.join(local, 'd')), ['a']);
});

test('a Python virtualenv is copied in and out with its links as they are', async () => {
  const id = await created();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-venv-'));
  try {
    execFileSync('/usr/bin/python3', ['-m', 'venv', '--without-pip', path.join(dir, 'app/venv')]);
    fs.symlinkSync('../../outside/of/everything', path.join(dir, 'app/dangling'));
    fs.symlinkSync('/etc/hostname', path.join(dir, 'app/absolute'));
    const links = (root) => execFileSync('find', [root, '-type', 'l', '-printf', '%P -> %l\n'], { encoding: 'utf8' }).split('\n').sort();
    await ok(['cp', path.join(dir, 'app'), `${id}:/workspace/`]);
    assert.match(await ok(['exec', id, '--', '/workspace/app/venv/bin/python3', '-c', 'import sys; print(sys.prefix)']), /^\/workspace\/app\/venv$/m);
    await ok(['cp', `${id}:/workspace/app`, path.join(dir, 'back')]);
    assert.deepEqual(links(path.join(dir, 'back')), links(path.join(dir, 'app')));
    assert.ok(links(path.join(dir, 'app')).some((link) => link === 'absolute -> /etc/hostname'));
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
});

finish();
