// SPDX-License-Identifier: Apache-2.0
// Projects: sets of files that sandboxes see, read-only and at once; safe names, one copy of what is the same, nothing
// of anybody else's, and rows and disk that stay equal.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('projects', { width: 4, args: ['--project-file-max', '1Mi'] });

const { json, ok, sandlot } = commandLine(instance);
const FILES = '/workspace/project_files';
const made = new Set();
const sha256 = (data) => crypto.createHash('sha256').update(data).digest('hex');
const blobs = (id) => fs.readdirSync(path.join(instance.dataDir, 'state/projects', id, 'blobs')).sort();

async function create(name, more = {}, own = api) {
  const answer = await own.request('POST', '/v1/projects', { json: { name, ...more } });
  assert.equal(answer.status, 201, answer.text);
  if (own === api) made.add(answer.json.id);
  return answer.json;
}

const put = (project, file, body, query = {}, own = api) => own.request('PUT', `/v1/projects/${project}/files`, { query: { path: file, ...query }, body, headers: { 'content-type': 'application/octet-stream' } });
const get = (project, file, options = {}, own = api) => own.request('GET', `/v1/projects/${project}/files/${encodeURIComponent(file)}`, options);
const list = async (project, own = api) => (await own.request('GET', `/v1/projects/${project}/files`)).json.files;
const paths = async (project) => (await list(project)).map((one) => one.path);

function form(files, boundary = 'the-boundary') {
  const parts = files.map(([name, content]) => Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="files"; filename="${name}"\r\nContent-Type: text/plain\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')]));
  return { body: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]), headers: { 'content-type': `multipart/form-data; boundary=${boundary}` } };
}

const upload = (project, files) => api.request('POST', `/v1/projects/${project}/files`, form(files));

test('a project is made, found by id and by name, listed, changed and removed', async () => {
  const project = await create('shop', { labels: { team: 'search' }, defaults: { environment_config: { env_vars: { DEBUG: '1' } }, resources: { memory: '300Mi' } } });
  assert.equal(project.files, 0);
  for (const key of [project.id, 'shop']) assert.deepEqual((await api.request('GET', `/v1/projects/${key}`)).json, project);
  assert.ok((await api.request('GET', '/v1/projects')).json.projects.some((one) => one.id === project.id));
  assert.equal(assertError(await api.request('POST', '/v1/projects', { json: { name: 'shop' } }), 409).code, 'project_exists');
  const changed = (await api.request('PATCH', `/v1/projects/${project.id}`, { json: { name: 'market', labels: {} } })).json;
  assert.deepEqual([changed.name, changed.labels, changed.defaults], ['market', {}, project.defaults]);
  assert.equal((await api.request('DELETE', '/v1/projects/market')).status, 204);
  assert.equal(assertError(await api.request('GET', `/v1/projects/${project.id}`), 404).code, 'project_not_found');
});

test('names that are no names, or ids, are refused', async () => {
  for (const name of ['', '../up', 'a b', 'x'.repeat(64), '01k9zq3v5h7n2m4p6r8t0w1x3y']) assertError(await api.request('POST', '/v1/projects', { json: { name } }), 400);
});

test('ls has a column for the project where one is used', async () => {
  const { ok } = commandLine(instance);
  const plain = await api.create({ name: 'plain' });
  assert.match(await ok(['ls']), /^ID +NAME +STATUS /);
  await create('column');
  const inside = await api.create({ name: 'inside', project: 'column' });
  const shown = await ok(['ls']);
  assert.match(shown, /^ID +NAME +PROJECT +STATUS /);
  assert.match(shown, new RegExp(`^${inside.id} +inside +column +running `, 'm'));
  assert.match(shown, new RegExp(`^${plain.id} +plain +- +running `, 'm'));
  for (const { id } of [plain, inside]) await api.purge(id);
});

test('files come raw and as a form, are listed with size, type and hash, and are read again', async () => {
  const { id } = await create('files');
  const answer = await put(id, 'src/deep/app.py', 'print("hello")\n');
  assert.equal(answer.status, 201, answer.text);
  const { id: file, created_at: at, ...rest } = answer.json;
  assert.deepEqual(rest, { path: 'src/deep/app.py', size: 15, sha256: sha256('print("hello")\n'), mime_type: 'text/x-python', executable: false, uploader: 'admin' });
  const sent = await upload(id, [['a.txt', 'one'], ['docs/b.md', '# two'], ['a.txt', 'three']]);
  assert.equal(sent.status, 201, sent.text);
  assert.deepEqual(sent.json.files.map((one) => one.path), ['a.txt', 'docs/b.md', 'a (1).txt']);
  assert.deepEqual(await paths(id), ['a (1).txt', 'a.txt', 'docs/b.md', 'src/deep/app.py']);
  assert.equal((await upload(id, [['a.txt', 'four']])).json.files[0].path, 'a (2).txt');
  assert.equal((await get(id, file)).text, 'print("hello")\n');
  const whole = await get(id, 'docs/b.md');
  assert.equal(whole.headers['content-type'], 'text/markdown');
  assert.match(whole.headers['content-disposition'], /^attachment; filename\*=UTF-8''b\.md$/);
  const part = await get(id, 'docs/b.md', { headers: { range: 'bytes=2-' } });
  assert.deepEqual([part.status, part.text, part.headers['content-range']], [206, 'two', 'bytes 2-4/5']);
  assert.equal((await get(id, 'docs/b.md', { headers: { range: 'bytes=9-' } })).status, 416);
  const again = (tag) => get(id, 'docs/b.md', { headers: { range: 'bytes=2-', 'if-range': tag } });
  assert.deepEqual([(await again(part.headers.etag)).status, (await again('"of-before"')).status], [206, 200]);
  assert.equal((await get(id, 'docs/b.md', { headers: { 'if-none-match': whole.headers.etag } })).status, 304);
  assert.equal((await put(id, 'a.txt', 'replaced')).status, 200);
  assert.equal((await get(id, 'a.txt')).text, 'replaced');
});

test('what several files have is on disk once, and goes with the last of them', async () => {
  const { id } = await create('once');
  await upload(id, [['a', 'same'], ['b', 'same'], ['c', 'other']]);
  assert.deepEqual(blobs(id), [sha256('same'), sha256('other')].sort());
  await api.request('DELETE', `/v1/projects/${id}/files/a`);
  assert.equal(blobs(id).length, 2);
  await api.request('DELETE', `/v1/projects/${id}/files/b`);
  assert.deepEqual(blobs(id), [sha256('other')]);
  await put(id, 'c', 'new');
  assert.deepEqual(blobs(id), [sha256('new')]);
  assert.equal((await api.request('GET', `/v1/projects/${id}`)).json.bytes, 3);
});

test('paths that are not safe, and files that are too large, are refused with the reason, and nothing is left', async () => {
  const { id } = await create('unsafe');
  for (const bad of ['../up', '/etc/passwd', 'a/../b', './a', 'a//b', 'a/', 'a\nb', 'a\\b', 'x'.repeat(256), 'a\u202eb', `${'d/'.repeat(32)}f`]) {
    assert.equal(assertError(await put(id, bad, 'x'), 400).code, 'invalid_path', JSON.stringify(bad));
  }
  assert.equal(assertError(await upload(id, [['good.txt', 'x'], ['../bad.txt', 'y']]), 400).code, 'invalid_path');
  assert.match(assertError(await put(id, 'large', Buffer.alloc((1 << 20) + 1)), 413).message, /1048576|1 MiB|1.0 MiB/);
  await put(id, 'file', 'x');
  assert.equal(assertError(await put(id, 'file/below', 'x'), 409).code, 'path_through_file');
  await put(id, 'dir/file', 'x');
  assert.equal(assertError(await put(id, 'dir', 'x'), 409).code, 'path_is_directory');
  assert.deepEqual(await paths(id), ['dir/file', 'file']);
  assert.deepEqual(blobs(id), [sha256('x')]);
});

test('a file gets another path, and keeps its id and content', async () => {
  const { id } = await create('moves');
  const { json: file } = await put(id, 'old/name.txt', 'x');
  await put(id, 'taken', 'y');
  const moved = await api.request('PATCH', `/v1/projects/${id}/files/${file.id}`, { json: { path: 'new/place.txt' } });
  assert.deepEqual([moved.status, moved.json.id, moved.json.path], [200, file.id, 'new/place.txt']);
  assert.equal(assertError(await api.request('PATCH', `/v1/projects/${id}/files/${file.id}`, { json: { path: 'taken' } }), 409).code, 'path_taken');
  assert.deepEqual(await paths(id), ['new/place.txt', 'taken']);
});

test('archives come in as tar and zip and go out as tar, with execute permissions', async () => {
  const { id } = await create('archive');
  const dir = fs.mkdtempSync('/tmp/sandlot-project-');
  try {
    fs.mkdirSync(`${dir}/in/ünder`, { recursive: true });
    fs.writeFileSync(`${dir}/in/run.sh`, '#!/bin/sh\necho run\n', { mode: 0o755 });
    fs.writeFileSync(`${dir}/in/ünder/a.txt`, 'a');
    fs.symlinkSync('/etc/passwd', `${dir}/in/link`);
    fs.linkSync(`${dir}/in/run.sh`, `${dir}/in/same.sh`);
    spawnSync('tar', ['-czf', `${dir}/in.tar.gz`, '-C', `${dir}/in`, '.']);
    const answer = await api.request('PUT', `/v1/projects/${id}/archive`, { body: fs.readFileSync(`${dir}/in.tar.gz`), headers: { 'content-type': 'application/gzip' } });
    assert.deepEqual([answer.status, answer.json], [200, { files: 3, bytes: 2 * 19 + 1, skipped: 1, removed: 0, removed_files: [] }], answer.text);
    spawnSync('python3', ['-c', `import zipfile; z=zipfile.ZipFile('${dir}/in.zip','w',8); z.writestr('zip/ö.txt','zipped')`]);
    const zipped = await api.request('PUT', `/v1/projects/${id}/archive`, { query: { path: 'below' }, body: fs.readFileSync(`${dir}/in.zip`), headers: { 'content-type': 'application/zip' } });
    assert.equal(zipped.status, 200, zipped.text);
    assert.deepEqual((await list(id)).map((one) => [one.path, one.executable]), [['below/zip/ö.txt', false], ['run.sh', true], ['same.sh', true], ['ünder/a.txt', false]]);
    const out = await api.request('GET', `/v1/projects/${id}/archive`);
    assert.match(out.headers['content-disposition'], /archive\.tar/);
    fs.mkdirSync(`${dir}/out`);
    fs.writeFileSync(`${dir}/out.tar`, out.body);
    spawnSync('tar', ['-xf', `${dir}/out.tar`, '-C', `${dir}/out`]);
    assert.equal(spawnSync(`${dir}/out/run.sh`).stdout.toString(), 'run\n');
    assert.equal(fs.readFileSync(`${dir}/out/below/zip/ö.txt`, 'utf8'), 'zipped');
    for (const [format, type, open] of [['tar.gz', 'application/gzip', 'tarfile.open(sys.argv[1], "r:gz")'], ['zip', 'application/zip', 'zipfile.ZipFile(sys.argv[1])']]) {
      const packed = await api.request('GET', `/v1/projects/${id}/archive`, { query: { format } });
      assert.deepEqual([packed.status, packed.headers['content-type']], [200, type], packed.text);
      assert.ok(packed.headers['content-disposition'].endsWith(`archive.${format}`), packed.headers['content-disposition']);
      fs.rmSync(`${dir}/out`, { recursive: true });
      fs.writeFileSync(`${dir}/packed`, packed.body);
      const { stderr } = spawnSync('python3', ['-c', `import sys, tarfile, zipfile; a = ${open}; a.extractall(sys.argv[2])`, `${dir}/packed`, `${dir}/out`], { encoding: 'utf8' });
      assert.equal(stderr, '');
      assert.equal(fs.readFileSync(`${dir}/out/below/zip/ö.txt`, 'utf8'), 'zipped', format);
      if (format === 'zip') {
        const again = await create('zip-again');
        assert.equal((await api.request('PUT', `/v1/projects/${again.id}/archive`, { body: packed.body, headers: { 'content-type': type } })).status, 200);
        assert.deepEqual(await paths(again.id), await paths(id));
      }
    }
    assertError(await api.request('GET', `/v1/projects/${id}/archive`, { query: { format: 'rar' } }), 400, /tar, tar\.gz or zip/);
    const bad = spawnSync('python3', ['-c', "import tarfile,io,sys\nt=tarfile.open(fileobj=sys.stdout.buffer,mode='w|')\nfor n in ('fine.txt','../up.txt'):\n i=tarfile.TarInfo(n); i.size=1; t.addfile(i,io.BytesIO(b'x'))\nt.close()"]).stdout;
    assert.equal(assertError(await api.request('PUT', `/v1/projects/${id}/archive`, { body: bad, headers: { 'content-type': 'application/x-tar' } }), 400).code, 'invalid_path');
    assert.ok(!(await paths(id)).includes('fine.txt'));
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

test('sandboxes see the files read-only, new ones at once, and cannot change them', async () => {
  const { id } = await create('seen');
  await put(id, 'src/a.txt', 'first');
  await put(id, 'run.sh', '#!/bin/sh\necho ran', { executable: true });
  const sandbox = (await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: {} })).json;
  api.made.add(sandbox.id);
  assert.equal(sandbox.owner.project, 'seen');
  assert.equal(await api.out(sandbox.id, `cat ${FILES}/src/a.txt; ${FILES}/run.sh`), 'firstran\n');
  await put(id, 'src/later.txt', 'later');
  assert.equal(await api.out(sandbox.id, `cat ${FILES}/src/later.txt`), 'later');
  await put(id, 'src/a.txt', 'second');
  assert.equal(await api.out(sandbox.id, `cat ${FILES}/src/a.txt`), 'second');
  await api.request('DELETE', `/v1/projects/${id}/files/${encodeURIComponent('src/later.txt')}`);
  assert.equal(await api.out(sandbox.id, `ls ${FILES}/src`), 'a.txt\n');
  for (const attempt of [`echo x > ${FILES}/src/a.txt`, `rm ${FILES}/src/a.txt`, `touch ${FILES}/new`, `chmod 777 ${FILES}/src/a.txt`, `chown 0 ${FILES}/src/a.txt`, `mount -o remount,rw ${FILES}`, `umount ${FILES}`, `ln ${FILES}/src/a.txt /workspace/stolen`]) {
    assert.notEqual((await api.exec(sandbox.id, { command: attempt, user: 'root' })).exit_code, 0, attempt);
  }
  assert.equal((await get(id, 'src/a.txt')).text, 'second');
  await api.verb(sandbox.id, 'stop');
  assert.equal(await api.out(sandbox.id, `cat ${FILES}/src/a.txt`), 'second');
  assert.equal(assertError(await api.request('DELETE', `/v1/projects/${id}`), 409).code, 'project_in_use');
  assert.equal(assertError(await api.request('PATCH', `/v1/projects/${id}`, { json: { name: 'other' } }), 409).code, 'project_in_use');
  await api.purge(sandbox.id);
});

test('a name that is not there yet is made, an id is not; each session has a sandbox of its own', async () => {
  const first = await api.create({ project: 'fresh' });
  const project = (await api.request('GET', '/v1/projects/fresh')).json;
  made.add(project.id);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { project: '01k9zq3v5h7n2m4p6r8t0w1x3y' } }), 404);
  assert.equal(assertError(await api.request('POST', '/v1/sandboxes', { json: { project: project.id } }), 409).code, 'project_has_sandbox');
  const chat = await api.create({ project: project.id, session: 'chat-1' });
  assert.deepEqual([chat.owner.project, chat.owner.session], ['fresh', 'chat-1']);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { project: 'fresh', session: 'chat-1' } }), 409);
  const again = await api.request('POST', '/v1/sandboxes/ensure', { json: { project: 'fresh', session: 'chat-1' } });
  assert.deepEqual([again.status, again.json.id], [200, chat.id]);
  const alone = await api.create({ session: 'chat-1' });
  assertError(await api.request('POST', '/v1/sandboxes', { json: { session: 'chat-1' } }), 409);
  const found = (await api.request('GET', '/v1/sandboxes', { query: { project: project.id } })).json.sandboxes.map((one) => one.id);
  assert.deepEqual(found.sort(), [first.id, chat.id].sort());
  for (const one of [first, chat, alone]) await api.purge(one.id);
});

test('the defaults of a project hold for its sandboxes, and variables for every command', async () => {
  const { id } = await create('defaults', { defaults: { resources: { memory: '200Mi', pids: 77 }, ports: [4321], idle_timeout_s: 600, environment_config: { env_vars: { MODE: 'project', OWN: 'project' } } } });
  const sandbox = await api.create({ project: id, env: { OWN: 'sandbox' } });
  assert.deepEqual([sandbox.resources.memory, sandbox.resources.pids, sandbox.ports, sandbox.idle_timeout_s], ['200Mi', 77, [4321], 600]);
  // The client of these tests looks whether the answer is as the document says.
  assert.equal((await api.request('POST', '/v1/projects', { json: { name: 'open', defaults: { ports: [{ port: 4322, public: true }] } } })).status, 201);
  assert.equal(await api.out(sandbox.id, 'echo $MODE $OWN'), 'project sandbox\n');
  await api.request('PATCH', `/v1/projects/${id}`, { json: { defaults: { environment_config: { env_vars: { MODE: 'changed' } } } } });
  assert.equal(await api.out(sandbox.id, 'echo $MODE'), 'changed\n');
  await api.purge(sandbox.id);
});

test('what belongs to others is not there', async () => {
  const { id } = await create('mine');
  await put(id, 'a.txt', 'secret');
  const other = await ownerApi(api, 'other', 'eve');
  for (const answer of [await other.request('GET', `/v1/projects/${id}`), await get(id, 'a.txt', {}, other), await put(id, 'a.txt', 'x', {}, other), await other.request('DELETE', `/v1/projects/${id}`), await other.request('POST', `/v1/projects/${id}/sandboxes`, { json: {} })]) {
    assert.equal(assertError(answer, 404).code, 'project_not_found');
  }
  assert.deepEqual((await other.request('GET', '/v1/projects')).json.projects, []);
});

test('the quota of an owner bounds the files of its projects', async () => {
  const bob = await ownerApi(api, 'small', 'bob');
  await api.request('PUT', '/v1/quotas/small', { json: { projects: 1000 } });
  const { id } = await create('bounded', {}, bob);
  assert.equal((await put(id, 'fits', Buffer.alloc(900), {}, bob)).status, 201);
  const refused = await put(id, 'more', Buffer.alloc(200, 1), {}, bob);
  assert.equal(assertError(refused, 429).code, 'quota_exceeded');
  assert.match(refused.json.error.message, /projects/);
  assert.deepEqual((await list(id, bob)).map((one) => one.path), ['fits']);
  assert.deepEqual(blobs(id).length, 1);
  assert.equal((await put(id, 'fits', 'smaller', {}, bob)).status, 200);
  assert.equal((await bob.request('DELETE', `/v1/projects/${id}`)).status, 204);
});

test('a scrub removes what no row has, makes links anew and reports what is missing', async () => {
  const { id } = await create('scrubbed');
  await upload(id, [['a.txt', 'a'], ['dir/b.txt', 'b'], ['gone.txt', 'gone']]);
  const dir = path.join(instance.dataDir, 'state/projects', id);
  fs.writeFileSync(path.join(dir, 'blobs', sha256('stray')), 'stray');
  fs.writeFileSync(path.join(dir, 'files/stray.txt'), 'stray');
  fs.rmSync(path.join(dir, 'files/dir'), { recursive: true });
  fs.rmSync(path.join(dir, 'blobs', sha256('gone')));
  const scrub = (await api.request('POST', '/v1/projects/scrub')).json;
  assert.deepEqual([scrub.blobs_removed, scrub.links_made, scrub.links_removed, scrub.missing], [1, 1, 1, 1]);
  assert.deepEqual(scrub.missing_files, [{ project: id, path: 'gone.txt', sha256: sha256('gone') }]);
  assert.equal(fs.readFileSync(path.join(dir, 'files/dir/b.txt'), 'utf8'), 'b');
  assert.equal(assertError(await get(id, 'gone.txt'), 409).code, 'content_missing');
  await put(id, 'gone.txt', 'gone');
  assert.equal((await api.request('POST', '/v1/projects/scrub')).json.missing, 0);
});

test('a scrub finds content that was changed or cut, and the next upload brings it back', async () => {
  const { id } = await create('damaged');
  await upload(id, [['whole.txt', 'whole'], ['changed.txt', 'right'], ['same.txt', 'right'], ['cut.txt', 'all of it']]);
  const dir = path.join(instance.dataDir, 'state/projects', id);
  fs.writeFileSync(path.join(dir, 'blobs', sha256('right')), 'wrong');
  fs.truncateSync(path.join(dir, 'blobs', sha256('all of it')), 3);
  const scrub = (await api.request('POST', '/v1/projects/scrub')).json;
  assert.deepEqual([scrub.damaged, scrub.missing, scrub.blobs_removed], [2, 3, 0], JSON.stringify(scrub));
  assert.deepEqual(scrub.missing_files.map((one) => one.path).sort(), ['changed.txt', 'cut.txt', 'same.txt']);
  assert.equal(fs.readFileSync(path.join(dir, 'files/changed.txt'), 'utf8'), 'wrong', 'what is there is not taken away');
  await upload(id, [['changed.txt', 'right'], ['cut.txt', 'all of it']]);
  const after = (await api.request('POST', '/v1/projects/scrub')).json;
  assert.deepEqual([after.damaged, after.missing], [0, 0], JSON.stringify(after));
  for (const [name, text] of [['whole.txt', 'whole'], ['changed.txt', 'right'], ['same.txt', 'right'], ['cut.txt', 'all of it']]) {
    assert.equal((await get(id, name)).text, text);
    assert.equal(fs.readFileSync(path.join(dir, 'files', name), 'utf8'), text);
  }
});

test('sandlot project makes one, uploads files and directories, downloads a file past links, and removes', async () => {
  const cwd = fs.mkdtempSync(path.join(fs.realpathSync('/tmp'), 'sandlot-project-'));
  const run = (...args) => ok(['project', ...args], { cwd });
  const fails = async (said, ...args) => {
    const { code, stderr } = await sandlot(['project', ...args], { cwd });
    assert.notEqual(code, 0, args.join(' '));
    assert.match(stderr, said);
  };
  try {
    fs.mkdirSync(`${cwd}/app/node_modules/x`, { recursive: true });
    fs.mkdirSync(`${cwd}/real`);
    for (const [name, text] of [['app/main.py', 'main'], ['app/node_modules/x/left', 'out'], ['ä b?.txt', 'note']]) fs.writeFileSync(`${cwd}/${name}`, text);
    fs.writeFileSync(`${cwd}/run.sh`, '#!/bin/sh\n', { mode: 0o755 });
    for (const [target, name] of [['/etc/passwd', 'app/link'], ['real', 'aside'], ['real/victim', 'taken']]) fs.symlinkSync(target, `${cwd}/${name}`);
    const id = (await run('create', 'typed', '--label', 'team=search', '-t', 'host', '-e', 'MODE=x')).trim();
    made.add(id);
    const project = await json(['project', 'show', 'typed']);
    assert.deepEqual([project.id, project.labels, project.defaults], [id, { team: 'search' }, { environment_type: 'host', environment_config: { env_vars: { MODE: 'x' } } }]);
    assert.equal(await run('upload', 'typed', 'app', 'run.sh', 'ä b?.txt'), 'app: 1 files, 4 B\nrun.sh\nä b?.txt\n');
    await run('upload', 'typed', 'app/.', 'run.sh', '--to', 'deep/er');
    assert.equal(await run('files', 'typed', '-q'), 'app/main.py\ndeep/er/main.py\ndeep/er/run.sh\nrun.sh\nä b?.txt\n');
    assert.deepEqual((await json(['project', 'files', id, '-o', 'json'])).filter((one) => one.executable).map((one) => one.path), ['deep/er/run.sh', 'run.sh']);
    assert.match(await run('ls'), new RegExp(`^${id} +5 +\\d+ .*typed$`, 'm'));
    assert.equal(await run('download', 'typed', 'ä b?.txt', '-'), 'note');
    await run('download', 'typed', 'deep/er/main.py');
    await run('download', id, 'app/main.py', 'taken');
    for (const name of ['main.py', 'taken']) assert.deepEqual([fs.lstatSync(`${cwd}/${name}`).isFile(), fs.readFileSync(`${cwd}/${name}`, 'utf8')], [true, 'main']);
    await fails(/symbolic link/, 'download', 'typed', 'run.sh', 'aside/');
    await fails(/symbolic link/, 'download', 'typed', 'run.sh', 'aside/run.sh');
    assert.deepEqual(fs.readdirSync(`${cwd}/real`), []);
    await run('download', 'typed');
    await run('download', 'typed', '.', 'all');
    for (const name of ['typed', 'all']) assert.deepEqual([fs.readFileSync(`${cwd}/${name}/ä b?.txt`, 'utf8'), fs.statSync(`${cwd}/${name}/deep/er/run.sh`).mode & 0o700], ['note', 0o700]);
    fs.symlinkSync('real', `${cwd}/linked`);
    await fails(/symbolic link/, 'download', 'typed', '.', 'linked/');
    assert.equal(await run('rm', 'typed', 'deep/er/main.py'), 'deep/er/main.py\n');
    for (const bad of ['', '.', '..']) await fails(/is no path/, 'rm', '-f', 'typed', bad);
    await fails(/not there|no file|not found/i, 'rm', 'typed', 'deep/er/main.py');
    await fails(/--force/, 'rm', 'typed');
    assert.equal((await list(id)).length, 4);
    assert.equal(await run('rm', '--force', 'typed'), 'typed\n');
    assertError(await api.request('GET', `/v1/projects/${id}`), 404);
  } finally {
    fs.rmSync(cwd, { recursive: true });
  }
});

test('all projects can be removed, and leave nothing', async () => {
  for (const id of made) await api.request('DELETE', `/v1/projects/${id}`);
  assert.deepEqual((await api.request('GET', '/v1/projects')).json.projects.filter((one) => made.has(one.id)), []);
  assert.deepEqual(fs.readdirSync(path.join(instance.dataDir, 'state/projects')).filter((name) => made.has(name.slice(0, 26))), []);
});

finish();
