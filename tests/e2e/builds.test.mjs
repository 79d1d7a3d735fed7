// SPDX-License-Identifier: Apache-2.0
// Templates built by recipes and Dockerfiles: each step in a sandbox, each result a layer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { remains } from './lib/remains.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('builds', { args: ['--pip-index', 'http://127.0.0.1:9/simple'] });

const put = (name, body, who = api) => who.request('PUT', `/v1/templates/${name}/archive`, { body, headers: { 'content-type': 'application/x-tar' } });
const ask = (json, who = api) => who.request('POST', '/v1/templates', { json });
const layers = () => fs.readdirSync(path.join(instance.dataDir, 'layers')).filter((name) => !name.startsWith('.'));
const stored = () => sql(instance, 'SELECT id FROM builders UNION SELECT id FROM workspaces').split('\n').filter(Boolean);
const builders = async () => (await api.request('GET', '/v1/sandboxes')).json.sandboxes;

/** Waits for the build of a template: the template. */
async function built(name, who = api) {
  let found;
  await until(async () => (found = (await who.request('GET', `/v1/templates/${name}`)).json).status !== 'building', { what: `${name} is built` });
  return found;
}

async function make(json, who = api) {
  const answer = await ask(json, who);
  assert.equal(answer.status, 202, answer.text);
  return built(json.name, who);
}

/** The log of the last build, as text. */
async function logOf(name) {
  const { text } = await api.request('GET', `/v1/templates/${name}/log`, { headers: { accept: 'text/event-stream' } });
  return text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)).data ?? '').join('');
}

/** What the log of a running build has so far. */
async function logSoFar(name) {
  const { json } = await api.request('GET', `/v1/templates/${name}`);
  return instance.stateFiles().filter((file) => file.includes(json.job)).map((file) => fs.readFileSync(file, 'latin1')).join('');
}

async function run(template, command, more = {}) {
  const { id } = await api.create({ template });
  const answer = await api.exec(id, { command, ...more });
  await api.purge(id);
  return answer;
}

const base = busybox();
for (const name of ['chown', 'true', 'false', 'rmdir', 'ln', 'mkfifo', 'yes', 'head', 'seq', 'tail', 'grep', 'wc', 'pwd', 'sort', 'date', 'cp', 'mv', 'chmod']) base.push({ name: `bin/${name}`, type: 'symlink', target: 'busybox' });
base.find(({ name }) => name === 'etc/passwd').data += 'app:x:1234:1235:app:/srv:/bin/sh\n';
base.push({ name: 'etc/group', data: 'root:x:0:\napp:x:1235:\n' }, { name: 'old', data: 'old\n' }, { name: 'dir' }, { name: 'dir/below', data: 'x' }, { name: 'lib', type: 'symlink', target: 'bin' });

test('a base is imported', async () => {
  const { status } = await put('base', layoutArchive(image([base], { config: { Env: ['PATH=/bin', 'KEPT=yes'], Cmd: ['sh'] } })));
  assert.equal(status, 200);
});

test('a Dockerfile is built: commands, files, users, and the config of the result', async () => {
  const made = await make({
    name: 'app',
    dockerfile: [
      'ARG BASE=base', 'FROM $BASE AS main', 'ARG VERSION=1', 'LABEL a=b',
      'ENV PATH=/opt/bin:$PATH GREETING="hello $VERSION"',
      'WORKDIR /srv/app',
      'COPY --chown=app:app --chmod=750 src/ ./code/', 'COPY bin.dat one.txt /data/', 'COPY one.txt /lib',
      'RUN echo "$GREETING $KEPT $(id -u)" > out; \\', '  # a comment', '  pwd >> out', 'RUN rm -r /old /dir && mkdir /dir && touch /dir/new && echo $VERSION > /version',
      'USER app', 'RUN ["sh", "-c", "id -u; id -g; touch /tmp/gone; touch /srv/who 2>/dev/null || echo denied"]',
      'EXPOSE 8080', 'CMD ["cat", "/srv/app/out"]',
    ].join('\n'),
    files: { 'src/a.sh': 'echo a\n', 'src/sub/b.sh': 'echo b\n', 'one.txt': 'one\n' },
    files_base64: { 'bin.dat': Buffer.from([0, 255, 10]).toString('base64') },
    args: { VERSION: '7' },
  });
  assert.deepEqual([made.status, made.error, made.version, made.source], ['ready', null, 1, 'dockerfile']);
  assert.deepEqual([made.env, made.user, made.workdir, made.command, made.ports], [{ PATH: '/opt/bin:/bin', KEPT: 'yes', GREETING: 'hello 7' }, 'app', '/srv/app', ['cat', '/srv/app/out'], [8080]]);
  const { stdout, stderr } = await run('app', 'cat out; stat -c "%a %u:%g" code/a.sh code/sub/b.sh; stat -c %a:%s /data/bin.dat; cat /data/one.txt /bin/one.txt; ls -d /old /dir/* 2>/dev/null; readlink /lib; cat /version; ls /tmp', { user: 'root', cwd: '/srv/app' });
  assert.equal(stderr, '');
  assert.equal(stdout, 'hello 7 yes 0\n/srv/app\n750 1234:1235\n750 1234:1235\n644:3\none\none\n/dir/new\nbin\n7\n');
  const log = await logOf('app');
  assert.match(log, /line 4: LABEL is left out/);
  assert.match(log, /step 7 of 7: RUN \["sh"/);
  assert.match(log, /1234\n1235\ndenied\n/);
});

test('steps are in the groups of their user', async () => {
  await make({ name: 'grouped', dockerfile: 'FROM base\nRUN echo "team:x:77:app" >> /etc/group; echo "late:x:4321:4322::/:/bin/sh" >> /etc/passwd; echo "more:x:78:late,app" >> /etc/group\nUSER app\nRUN id -G > /tmp/x; echo "app $(id -G)"\nUSER late\nRUN echo "late $(id -u) $(id -G)"\nUSER app:team\nRUN echo "named $(id -G)"\n' });
  assert.match(await logOf('grouped'), /^app 1235 77 78$[^]*^late 4321 4322 78$[^]*^named 77$/m);
});

test('COPY keeps what files are: executables, links, empty directories; ADD unpacks an archive', async () => {
  const archive = tar([{ name: 'sub' }, { name: 'sub/tool', data: '#!/bin/sh\necho unpacked\n', mode: 0o755 }, { name: 'sub/link', type: 'symlink', target: 'tool' }]);
  const made = await make({
    name: 'copied',
    dockerfile: 'FROM base\nCOPY run.sh /\nRUN /run.sh > /told\nCOPY tree /tree\nCOPY --chmod=700 run.sh /run700\nCOPY now /was-link\nCOPY empty /made/\nADD a.tar.gz /opt/\nADD b.tar /opt2\nCOPY b.tar /opt/\nUSER app\nENTRYPOINT ["/run.sh"]\nCMD ["more"]\n',
    files: { 'run.sh': '#!/bin/sh\necho ran $*\n', 'tree/secret': 's' },
    files_base64: { 'a.tar.gz': zlib.gzipSync(archive).toString('base64'), 'b.tar': archive.toString('base64') },
    modes: { 'run.sh': '755', 'tree/secret': '600' },
    links: { 'tree/below/link': '../secret', 'tree/absolute': '/run.sh', now: 'run.sh' },
    directories: ['tree/none', 'empty'],
  });
  assert.deepEqual([made.error, made.entrypoint, made.command], [null, ['/run.sh'], ['more']]);
  const { stdout, stderr } = await run('copied', 'cat /told; stat -c "%n %a %F" /run.sh /tree/secret /tree/none /run700 /was-link /made /opt/b.tar; readlink /tree/below/link; readlink /tree/absolute; /opt/sub/link; /opt2/sub/tool', { user: 'root' });
  assert.equal(stderr, '');
  assert.equal(stdout, 'ran\n/run.sh 755 regular file\n/tree/secret 600 regular file\n/tree/none 755 directory\n/run700 700 regular file\n/was-link 755 regular file\n/made 755 directory\n/opt/b.tar 644 regular file\n../secret\n/run.sh\nunpacked\nunpacked\n');
  const { id } = await api.create({ template: 'copied' });
  assert.equal((await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: {} })).json.stdout, 'ran more\n', 'ENTRYPOINT and CMD are one command');
  await api.purge(id);
  for (const [what, more, pattern] of [
    ['an archive that leads out', { files_base64: { 'a.tar': tar([{ name: '../../out', data: 'x' }]).toString('base64') } }, /a\.tar/],
    ['an archive with a device', { files_base64: { 'a.tar': tar([{ name: 'dev', type: 'char', major: 1, minor: 3 }]).toString('base64') } }, /a\.tar/],
    ['what is no archive', { files: { 'a.tar': 'text' } }, /a\.tar/],
  ]) {
    const bad = await make({ name: 'refused', dockerfile: 'FROM base\nADD a.tar /x/\n', ...more });
    assert.equal(bad.status, 'error', what);
    assert.match(bad.error, pattern, what);
  }
  assertError(await ask({ name: 'refused', dockerfile: 'FROM base\n', modes: { none: '755' } }), 400, /modes: none must be a file/);
});

const MULTI = [
  'ARG BASE=base', 'FROM $BASE AS Tools', 'RUN mkdir -p /out/sub/empty && echo made > /out/sub/file && ln -s file /out/sub/link && echo one > /out/a.txt && echo two > /out/b.txt && chmod 750 /out/a.txt && chown 7:7 /out/a.txt',
  'FROM base AS unused', 'RUN false',
  'FROM tools AS more', 'ENV FROM_STAGE=yes', 'RUN echo more > /out/more; echo "the base is $FROM_STAGE"',
  'FROM base', 'COPY --from=tools /out/ /all/', 'COPY --from=0 --chown=app:app --chmod=700 /out/a.txt /out/sub/link /owned/', 'COPY --from=more /out/more /renamed', 'COPY --from=tools /out/*.txt /texts/', 'COPY --from=other /only-there /', 'RUN [ -z "$FROM_STAGE" ] && cat /all/sub/file > /seen',
].join('\n');

test('a Dockerfile has several stages: what one has made is copied into another, and what nothing needs is not made', async () => {
  assert.equal((await put('other', layoutArchive(image([base, [{ name: 'only-there', data: 'from elsewhere\n' }]])))).status, 200);
  const made = await make({ name: 'multi', dockerfile: MULTI });
  assert.deepEqual([made.status, made.error], ['ready', null]);
  const { stdout, stderr } = await run('multi', 'cd /all; find . | sort; readlink sub/link; stat -c "%n %a %u:%g" a.txt /owned/a.txt; cat /owned/link /renamed; ls /texts; cat /only-there /seen; ls -d /out', { user: 'root' });
  assert.equal(stdout, '.\n./a.txt\n./b.txt\n./sub\n./sub/empty\n./sub/file\n./sub/link\nfile\na.txt 750 0:0\n/owned/a.txt 700 1234:1235\nmade\nmore\na.txt\nb.txt\nfrom elsewhere\nmade\n');
  assert.match(stderr, /\/out/, 'nothing else of a stage is in the result');
  const log = await logOf('multi');
  assert.match(log, /stage 4 of 4: from base[^]*stage 1 of 4: from base[^]*stage 3 of 4: from tools[^]*the base is yes/);
  assert.doesNotMatch(log, /stage 2/);
  assert.deepEqual((await api.request('GET', '/v1/templates/multi')).json.env, { PATH: '/bin', KEPT: 'yes' });
  assert.deepEqual(await stored(), [], 'no builder stays');
});

test('stages are taken from the cache, until what is copied has changed', async () => {
  const before = layers().length;
  await make({ name: 'multi', dockerfile: `${MULTI}\nRUN true` });
  assert.equal((await logOf('multi')).match(/taken from the cache/g).length, 8);
  const changed = await make({ name: 'multi', dockerfile: MULTI.replace('echo more >', 'echo else >') });
  assert.equal(changed.error, null);
  const log = await logOf('multi');
  assert.match(log, /COPY --from=tools \/out\/ \/all\/\ntaken from the cache/);
  assert.doesNotMatch(log, /COPY --from=more \/out\/more \/renamed\ntaken from the cache/);
  assert.equal((await run('multi', 'cat /renamed')).stdout, 'else\n');
  assert.ok(layers().length > before);
});

test('a stage is wanted by its name or its number, and what cannot be copied is named', async () => {
  await make({ name: 'staged', dockerfile: MULTI, target: 'TOOLS' });
  assert.equal((await run('staged', 'cat /out/b.txt')).stdout, 'two\n');
  await make({ name: 'staged', dockerfile: MULTI, target: '2' });
  assert.equal((await run('staged', 'cat /out/more; echo $FROM_STAGE')).stdout, 'more\nyes\n');
  const dir = fs.mkdtempSync(path.join(instance.dataDir, '..', 'stages-'));
  fs.writeFileSync(path.join(dir, 'Dockerfile'), MULTI);
  await commandLine(instance).ok(['template', 'build', 'staged', dir, '--target', 'tools']);
  assert.equal((await run('staged', 'ls /out')).stdout, 'a.txt\nb.txt\nsub\n');
  for (const [dockerfile, pattern, more] of [
    ['FROM base\nCOPY --from=2 /a /b\n', /line 2: there is no stage 2 before/],
    ['FROM base\nCOPY --from=nothing-of-that-name /a /b\n', /there is no template nothing-of-that-name/],
    ['FROM base\nADD --from=base /a /b\n', /line 2: --from is for COPY/],
    ['FROM base AS a\nFROM base AS b\nCOPY --from=b /a /b\n', /there is no template b/],
    ['FROM base AS a\nRUN true\n', /no stage ghost/, { target: 'ghost' }],
    ['FROM base AS a\nBAD\nFROM base\n', /line 2: BAD is not supported/],
  ]) assertError(await ask({ name: 'refused', dockerfile, ...more }), 400, pattern);
  for (const [line, pattern] of [['COPY --from=base /none /x', /base has no \/none/], ['COPY --from=base /bin/none* /x/', /base has no \/bin\/none\*/], ['COPY --from=base /*/*/none /x/', /base has no \/\*\/\*\/none/], ['COPY --from=base /old /bin', null], ['COPY --from=base /dir /old', /old/]]) {
    const made = await make({ name: 'refused', dockerfile: `FROM base\n${line}\n` });
    if (pattern) assert.match(made.error, pattern, line);
    else assert.equal(made.error, null, line);
  }
});

test('a pattern is held against all names of a large directory, and links in circles end a build', async () => {
  const stage = 'FROM base AS made\nRUN mkdir /m /d; cd /m; seq -f a%g 17000 | xargs touch; touch z1 z2; cd /d; for i in $(seq 40); do ln -s . l$i; done\n';
  assert.equal((await make({ name: 'large', dockerfile: `${stage}FROM base\nCOPY --from=made /m/z* /n/\n` })).error, null);
  assert.equal((await run('large', 'ls /n')).stdout, 'z1\nz2\n');
  assert.match((await make({ name: 'circles', dockerfile: `${stage}FROM base\nCOPY --from=made /d/*/*/*/*/x* /n/\n` })).error, /the pattern leads to more than 16384 names/);
});

test('a stage that begins with nothing has what is copied alone', async () => {
  const made = await make({ name: 'tiny', dockerfile: 'FROM base AS tools\nRUN mkdir /sub\nFROM scratch\nCOPY --from=tools /bin/busybox /bin/sh\nCOPY note /note\nENV PATH=/bin\nCMD ["sh"]\n', files: { note: 'of nothing\n' } });
  assert.deepEqual([made.status, made.error], ['ready', null]);
  assert.equal((await run('tiny', 'while read line; do echo $line; done < /note; echo /*')).stdout.split('\n')[0], 'of nothing');
});

test('a build that nothing can come of is refused at once, and leaves neither a template nor a job', async () => {
  const jobs = async () => (await api.request('GET', '/v1/jobs')).json.jobs.length;
  const before = await jobs();
  for (const [from, status, code, text] of [['host', 400, 'invalid_base', /host's files/], ['browser', 400, 'invalid_base', /host's files/], ['nothing-of-that-name', 400, 'template_not_found', /from nothing-of-that-name: there is no/]]) {
    for (const body of [{ recipe: { from, run: ['true'] } }, { dockerfile: `ARG BASE=${from}\nFROM $BASE\nRUN true\n` }]) {
      assert.equal(assertError(await ask({ name: 'hopeless', ...body }), status, text).code, code);
    }
  }
  assertError(await api.request('GET', '/v1/templates/hopeless'), 404);
  assert.equal(await jobs(), before);
});

test('builders are in no list, and nothing of them stays', async () => {
  assert.deepEqual(await builders(), []);
  assert.deepEqual(stored(), []);
  // A spare disk may be in the making.
  await until(() => { assert.deepEqual(remains(instance, new Set()), {}); return true; }, { what: 'nothing remains' });
});

test('a recipe writes files and runs commands as root, and its result is the base of another', async () => {
  const made = await make({ name: 'tools', recipe: { from: 'app', files: { '/etc/tools.conf': 'on\n' }, run: ['id -u > /etc/who', 'cat /etc/tools.conf >> /etc/who'], env: { MODE: 'test' } } });
  assert.deepEqual([made.status, made.error, made.user, made.env.MODE, made.env.KEPT], ['ready', null, 'app', 'test', 'yes']);
  assert.equal((await run('tools', 'cat /etc/who; echo $MODE', { user: 'root' })).stdout, '0\non\ntest\n');
});

test('steps are taken from the cache until one of their inputs changes', async () => {
  const recipe = (text, name = 'cached') => ({ name, recipe: { from: 'base', files: { '/input': text }, run: ['cat /proc/sys/kernel/random/uuid > /stamp', 'cat /input > /copy'] } });
  await make(recipe('1'));
  const stamp = (await run('cached', 'cat /stamp')).stdout;
  const count = layers().length;
  await make(recipe('1', 'again'));
  assert.match(await logOf('again'), /step 3 of 3: run cat \/input > \/copy\ntaken from the cache/);
  assert.equal((await run('again', 'cat /stamp')).stdout, stamp);
  assert.equal(layers().length, count);
  await make(recipe('2'));
  const fresh = await run('cached', 'cat /stamp /copy');
  assert.notEqual(fresh.stdout.split('\n')[0], stamp.trim());
  assert.equal(fresh.stdout.split('\n')[1], '2');
  assert.equal((await api.request('POST', '/v1/templates/again/build', { json: { no_cache: true } })).status, 202);
  assert.equal((await built('again')).version, 2);
  const second = (await run('again', 'cat /stamp')).stdout;
  assert.notEqual(second, stamp);
  const { stderr } = await commandLine(instance).sandlot(['template', 'prune', '--build-cache']);
  assert.match(stderr, /[1-9]\d* steps are forgotten/);
  assert.equal((await api.request('POST', '/v1/templates/again/build', { json: {} })).status, 202);
  assert.equal((await built('again')).version, 3);
  assert.notEqual((await run('again', 'cat /stamp')).stdout, second);
});

test('the cache is an owner\'s own', async () => {
  const other = await ownerApi(api, 'acme', 'ann');
  assert.equal((await put('base', layoutArchive(image([base])), other)).status, 200);
  const { status, error } = await make({ name: 'cached', recipe: { from: 'base', files: { '/input': '1' }, run: ['cat /proc/sys/kernel/random/uuid > /stamp', 'cat /input > /copy'] } }, other);
  assert.deepEqual([status, error], ['ready', null]);
  const log = await other.request('GET', '/v1/templates/cached/log', { headers: { accept: 'text/event-stream' } });
  assert.doesNotMatch(log.text, /taken from the cache/);
  assertError(await other.request('GET', '/v1/templates/tools'), [404]);
});

test('what a step writes is a layer as it is: links, modes, times, attributes, what is gone', async () => {
  await make({ name: 'tree', recipe: { from: 'base', run: ['mkdir -p /t/d && cd /t && echo x > f && ln f hard && ln -s f soft && mkfifo fifo && chmod 4711 f && chown 7:8 d && touch -d "2001-02-03 04:05:06" d && rm /old && echo bad > /etc/resolv.conf && echo y > /workspace/y && seq 100000 > big'] } });
  const { stdout } = await run('tree', 'cd /t; stat -c "%n %a %u:%g %h" d f hard; stat -c %Y d; readlink soft; test -p fifo && echo fifo; test -e /old || echo gone; grep -c bad /etc/resolv.conf; ls /workspace; tail -n 1 big; wc -c < big', { cwd: '/' });
  assert.equal(stdout, `d 755 7:8 1\nf 4711 0:0 2\nhard 4711 0:0 2\n${Date.UTC(2001, 1, 3, 4, 5, 6) / 1000}\nf\nfifo\ngone\n0\nagent_workspace\noutputs\nproject_files\n100000\n588895\n`.replace(/d 755 7:8 1/, 'd 755 7:8 2'));
});

test('files of all sizes one after the other are in the layer as they were written', async () => {
  await make({ name: 'sizes', recipe: { from: 'base', run: ['mkdir /m; for i in $(seq 40); do seq $((i * i * 20)) > /m/$i; done; for i in $(seq 40); do tail -n 1 /m/$i; wc -c < /m/$i; done > /told'] } });
  const { stdout } = await run('sizes', 'for i in $(seq 40); do tail -n 1 /m/$i; wc -c < /m/$i; done > /tmp/now; cat /told; echo; cat /tmp/now', { user: 'root' });
  const [told, now] = stdout.split('\n\n');
  assert.equal(told.split('\n').length, 80);
  assert.equal(now.trim(), told);
});

test('packages are installed by the programs of the image, from the mirrors of the recipe or of the operator', async () => {
  const program = (name, text) => ({ name: `bin/${name}`, data: `#!/bin/sh\n${text}\n`, mode: 0o755 });
  const programs = [
    program('apt-get', 'echo "apt-get $* ($DEBIAN_FRONTEND)"; test -e /tmp/sandlot.list && cat /tmp/sandlot.list; case "$*" in *update*) mkdir -p /var/lib/apt/lists/x;; *install*) touch /installed;; esac'),
    program('python3', 'echo "python3 $* ($PIP_INDEX_URL)"'),
    program('npm', 'echo "npm $* ($NPM_CONFIG_REGISTRY) $npm_config_cache"'),
    program('apk', 'echo "apk $*"'),
    { name: 'etc/alpine-release', data: '3.20.3\n' },
    { name: 'etc/os-release', data: 'VERSION_CODENAME=bookworm\n' },
  ];
  assert.equal((await put('packaged', layoutArchive(image([base, programs], { config: { Env: ['PATH=/bin'] } })))).status, 200);
  const made = await make({ name: 'with-packages', recipe: { from: 'packaged', apt: ['git', 'curl'], pip: ['requests==2'], npm: ['left-pad'], mirrors: { apt: 'http://deb.example/debian' } } });
  assert.deepEqual([made.status, made.error], ['ready', null]);
  const log = await logOf('with-packages');
  assert.match(log, /^apt-get .*-o Dir::Etc::sourcelist=\/tmp\/sandlot.list .*update \(noninteractive\)\ndeb http:\/\/deb.example\/debian bookworm main$/m);
  assert.match(log, /^apt-get install -y --no-install-recommends .* git curl \(noninteractive\)$/m);
  assert.match(log, /^python3 -m pip install --no-cache-dir -- requests==2 \(http:\/\/127.0.0.1:9\/simple\)$/m);
  assert.match(log, /^npm install -g --no-audit --no-fund -- left-pad \(\) \/tmp\/npm$/m);
  assert.equal((await run('with-packages', 'ls /installed /var/lib/apt/lists')).stdout, '/installed\n\n/var/lib/apt/lists:\n');
  // RUN has the same: the operator's, and those of the build.
  const ran = await make({ name: 'run-mirrors', dockerfile: 'FROM packaged\nRUN echo "pip $PIP_INDEX_URL npm $NPM_CONFIG_REGISTRY"; cat "$APT_CONFIG" /tmp/sandlot-run.list\nENV PIP_INDEX_URL=http://own.example\nRUN echo "set $PIP_INDEX_URL"\n', mirrors: { apt: 'http://deb.example/debian', npm: 'http://npm.example' } });
  assert.deepEqual([ran.status, ran.error, ran.env], ['ready', null, { PATH: '/bin', PIP_INDEX_URL: 'http://own.example' }]);
  const said = await logOf('run-mirrors');
  assert.match(said, /^pip http:\/\/127.0.0.1:9\/simple npm http:\/\/npm.example$/m);
  assert.match(said, /^Dir::Etc::sourcelist "\/tmp\/sandlot-run.list";$/m);
  assert.match(said, /^deb http:\/\/deb.example\/debian bookworm main$/m);
  assert.match(said, /^set http:\/\/own.example$/m);
  assert.equal((await run('run-mirrors', 'echo $APT_CONFIG; ls /tmp')).stdout, '\n', 'nothing of that stays');
  const alpine = await make({ name: 'alpine', recipe: { from: 'packaged', apk: ['git', 'curl'], mirrors: { apk: 'https://alpine.example/alpine/' } } });
  assert.deepEqual([alpine.status, alpine.error], ['ready', null]);
  assert.match(await logOf('alpine'), /^apk add --no-cache --repositories-file \/dev\/null -X https:\/\/alpine.example\/alpine\/v3.20\/main -X https:\/\/alpine.example\/alpine\/v3.20\/community git curl$/m);
  assert.equal(assertError(await ask({ name: 'x', dockerfile: 'FROM base', mirrors: { gem: 'http://a' } }), 400, /apt, pip, npm and apk/).code, 'invalid_recipe');
  const plain = await make({ name: 'no-mirror', recipe: { from: 'packaged', apt: ['git'] } });
  assert.deepEqual([plain.status, plain.error], ['ready', null]);
  assert.match(await logOf('no-mirror'), /^apt-get -o APT::Sandbox::User=root -o Acquire::Retries=3 update \(noninteractive\)$/m);
});

test('a step that fails ends the build with its last words, and the version before stays', async () => {
  const bad = await make({ name: 'tools', recipe: { from: 'base', run: ['echo first', 'echo "cannot find it" >&2; exit 3'] } });
  assert.equal(bad.status, 'error');
  assert.equal(bad.version, 1);
  assert.match(bad.error, /step 2 \(run echo "cannot find it".*\): exit code 3.*: cannot find it/);
  assert.equal((await run('tools', 'cat /etc/who', { user: 'root' })).stdout, '0\non\n');
  assert.match((await make({ name: 'nobody', dockerfile: 'FROM base\nUSER nobody\nRUN true\n' })).error, /knows no user or group nobody/);
  assert.deepEqual(stored(), []);
});

test('a build that the network refuses, or that trusts no certificate, names the setting that helps and where its log is', async () => {
  const failure = async (line) => {
    const bad = await make({ name: 'unreached', recipe: { from: 'base', run: [line] } });
    assert.equal(bad.status, 'error');
    return { id: bad.job, ...(await api.request('GET', `/v1/jobs/${bad.job}`)).json.error };
  };
  const refused = await failure('busybox wget -q http://10.20.30.40:81/');
  assert.match(refused.message, /the network refused 10\.20\.30\.40:81; the rule 10\.20\.30\.40:81 would allow it\)/);
  assert.equal(refused.remediation, `sandlotd --allow 10.20.30.40:81 (SANDLOT_ALLOW, beside what is there) lets builds reach it; read the log of the build: sandlot job log ${refused.id}`);
  const distrusted = await failure('echo "curl: (60) SSL certificate problem: unable to get local issuer certificate" >&2; false');
  assert.equal(distrusted.remediation, `sandlotd --package-ca FILE (SANDLOT_PACKAGE_CA) names the certificates of mirrors; read the log of the build: sandlot job log ${distrusted.id}`);
  assert.equal((await failure('false')).remediation.replace(/\w{26}$/, 'ID'), 'read the log of the build: sandlot job log ID');
  const { ok } = commandLine(instance);
  assert.match(await ok(['job', 'ls']), /^\w{26} +template +unreached +failed +step 1 \(.{49}\.\.\. +\d+[smh]$/m);
  assert.match(await ok(['template', 'ls']), /^unreached +- +error +- +recipe$/m);
});

test('a source that cannot be read is refused before anything is done', async () => {
  assert.match(assertError(await ask({ name: 'x', dockerfile: 'FROM base\nRUN <<EOF\n' }), [400]).message, /^line 2: here-documents/);
  assert.match(assertError(await ask({ name: 'x', dockerfile: 'FROM base\nCOPY none /\n' }), [400]).message, /line 2: there is no file none in the request/);
  assertError(await ask({ name: 'x', recipe: { from: 'base', yum: [] } }), [400]);
  assertError(await ask({ name: 'x', recipe: { from: 'base' }, dockerfile: 'FROM base' }), [400]);
  assertError(await api.request('GET', '/v1/templates/x'), [404]);
});

test('a build is cancelled in the middle of a step', async () => {
  await ask({ name: 'slow', recipe: { from: 'base', run: ['echo begun; sleep 600'] } });
  await until(async () => (await logSoFar('slow')).includes('begun\n'), { what: 'the step runs' });
  assert.equal(stored().length, 1);
  const { json } = await api.request('GET', '/v1/templates/slow');
  assert.deepEqual(await builders(), []);
  assert.equal((await api.request('POST', '/v1/templates/slow/cancel')).status, 200);
  await until(async () => (await api.request('GET', `/v1/jobs/${json.job}`)).json.state === 'cancelled', { what: 'it is cancelled' });
  await until(async () => stored().length === 0, { what: 'the builder is gone' });
});

test('a daemon that is killed in the middle of a step leaves no builder, and the next builds on', async () => {
  await ask({ name: 'killed', recipe: { from: 'base', run: ['echo one > /one', 'test -e /workspace/x || { touch /workspace/x; echo here; sleep 3; }; echo two > /two'] } });
  await until(async () => (await logSoFar('killed')).includes('here'), { what: 'the second step runs' });
  await instance.crash();
  await instance.start();
  const made = await built('killed');
  assert.deepEqual([made.status, made.error], ['ready', null]);
  assert.match(await logOf('killed'), /begins anew|goes on/);
  assert.match(await logOf('killed'), /run echo one > \/one\ntaken from the cache/);
  assert.equal((await run('killed', 'cat /one /two')).stdout, 'one\ntwo\n');
  assert.deepEqual(stored(), []);
});

test('the command line makes templates of options, and of a directory with a Dockerfile', async () => {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'context-'));
  const { sandlot, ok } = commandLine(instance);
  try {
    fs.mkdirSync(path.join(dir, 'src'));
    for (const [name, data] of [['Dockerfile', 'FROM base\nARG WHO\nCOPY src /srv\nRUN echo building for $WHO\n'], ['.dockerignore', '# not these\nsrc/*.log\n/secret/\n'], ['src/a', 'a\n'], ['src/b.log', 'b\n'], ['src/bin', Buffer.from([0, 200, 1])]]) fs.writeFileSync(path.join(dir, name), data);
    fs.writeFileSync(path.join(dir, 'src/tool'), '#!/bin/sh\necho tool\n', { mode: 0o755 });
    fs.symlinkSync('tool', path.join(dir, 'src/link'));
    fs.mkdirSync(path.join(dir, 'src/empty'));
    fs.mkdirSync(path.join(dir, 'secret'));
    fs.writeFileSync(path.join(dir, 'secret/key'), 'k');
    const stdout = await ok(['template', 'build', 'cli-app', dir, '--build-arg', 'WHO=you', '--mirror', 'npm=http://npm.example']);
    assert.match(stdout, /^building for you$/m);
    assert.equal((await run('cli-app', 'cd /srv; ls; cat a; stat -c %s bin; ./tool; readlink link')).stdout, 'a\nbin\nempty\nlink\ntool\na\n3\ntool\ntool\n');
    await ok(['template', 'create', 'cli-tools', '--from', 'base', '--run', 'cat /etc/x > /etc/y', '--file', `/etc/x=${dir}/src/a`, '-e', 'MODE=cli']);
    assert.equal((await run('cli-tools', 'cat /etc/y; echo $MODE')).stdout, 'a\ncli\n');
    const bad = await sandlot(['template', 'create', 'cli-bad', '--from', 'base', '--run', 'exit 7']);
    assert.notEqual(bad.code, 0);
    assert.match(bad.stderr, /exit code 7[^]*sandlot job log \w{26}$/m);
    const once = await sandlot(['template', 'create', 'cli-once', '--from', 'base', '--run', 'true']);
    assert.equal(once.stderr, 'sandlot: to use it: sandlot run -t cli-once -- COMMAND\n');
    assert.match(once.stdout, /^cli-once is ready, version 1$/m);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

/** Writes files below a directory: texts, or what fs takes. */
function fill(dir, files) {
  for (const [name, data] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), data);
  }
}

const BIG = Buffer.alloc(3 << 20, 'more than a request may have\n');

test('files that are too many for a request are sent before it, and copied as others are', async () => {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'context-'));
  const { ok, sandlot } = commandLine(instance);
  try {
    fill(dir, {
      Dockerfile: 'FROM base\nCOPY . /all\nCOPY link s[r]c/*.sh */deep/no?e /some/\nCOPY --chown=7:8 --chmod=600 dev /dev-copy\nADD pack.tar.gz /unpacked\nRUN cat /proc/sys/kernel/random/uuid > /stamp\n',
      'big.bin': BIG, 'src/tool.sh': '#!/bin/sh\necho tool\n', 'src/deep/note': 'note\n', 'pack.tar.gz': zlib.gzipSync(tar([{ name: 'in/pack', data: 'packed\n' }])),
      // Names that mean something at the root of a sandbox.
      'dev/null': 'of the files\n', 'proc/version': 'of the files\n', 'etc/hosts': 'of the files\n', 'tmp/kept': 'kept\n', 'workspace/kept': 'kept\n',
      '.dockerignore': '*.bin\n!big.bin\n**/*.pyc\nleft\n!left/but-this\n', 'src/deep/x.pyc': 'x', 'small.bin': 'x', '.git/config': 'token', 'left/out': 'x', 'left/but-this': 'this\n',
    });
    fs.chmodSync(path.join(dir, 'src/tool.sh'), 0o755);
    fs.symlinkSync('src/tool.sh', path.join(dir, 'link'));
    fs.mkdirSync(path.join(dir, 'empty'));
    await ok(['template', 'build', 'many', dir]);
    const inside = 'cd /all; find . | sort; stat -c "%n %a %u:%g %s" big.bin src/tool.sh /some/* /dev-copy/null; cat dev/null proc/version etc/hosts /unpacked/in/pack; readlink link; /some/link';
    const names = ['.', './Dockerfile', './big.bin', './dev', './dev/null', './empty', './etc', './etc/hosts', './left', './left/but-this', './link', './pack.tar.gz', './proc', './proc/version', './src', './src/deep', './src/deep/note', './src/tool.sh', './tmp', './tmp/kept', './workspace', './workspace/kept'];
    const stats = [`big.bin 644 0:0 ${BIG.length}`, 'src/tool.sh 755 0:0 20', '/some/link 755 0:0 20', '/some/note 644 0:0 5', '/some/tool.sh 755 0:0 20', '/dev-copy/null 600 7:8 13'];
    assert.equal((await run('many', inside, { user: 'root' })).stdout, [...names, ...stats, 'of the files', 'of the files', 'of the files', 'packed', 'src/tool.sh', 'tool', ''].join('\n'));

    // The same again is the same layer, and no step of it runs; of a change the steps that copy it do.
    const [stamp, count] = [(await run('many', 'cat /stamp')).stdout, layers().length];
    assert.equal((await ok(['template', 'build', 'many', dir])).match(/taken from the cache/g).length, 5);
    assert.equal(layers().length, count);
    fs.appendFileSync(path.join(dir, 'Dockerfile'), '# said otherwise\n');
    assert.doesNotMatch(await ok(['template', 'build', 'many', dir]), /COPY \. \/all\ntaken from the cache/);
    fill(dir, { Dockerfile: 'FROM base\nCOPY src /src\nCOPY dev /dev-copy\nRUN cat /proc/sys/kernel/random/uuid > /stamp\n' });
    await ok(['template', 'build', 'many', dir]);
    fill(dir, { 'dev/null': 'another\n' });
    assert.match(await ok(['template', 'build', 'many', dir]), /COPY src \/src\ntaken from the cache\nstep 2 of 3: COPY dev \/dev-copy\nstep 3/);
    const later = (await run('many', 'cat /stamp')).stdout;
    assert.notEqual(later, stamp);
    assert.doesNotMatch(await ok(['template', 'build', 'many', dir, '--no-cache']), /taken from the cache/);
    assert.notEqual((await run('many', 'cat /stamp')).stdout, later);

    fill(dir, { Dockerfile: 'FROM base\nCOPY nothing /x\n' });
    const missing = await sandlot(['template', 'build', 'many', dir]);
    assert.notEqual(missing.code, 0);
    assert.match(missing.stderr, /step 1 \(COPY nothing \/x\): what was sent for the build has no \/nothing/);
    assert.deepEqual(stored(), []);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

test('files that were sent stay as long as a template names them, and are their owner\'s', async () => {
  const send = (body, who = api) => who.request('PUT', '/v1/templates/sent/files', { body, headers: { 'content-type': 'application/x-tar' } });
  const body = tar([{ name: 'big.bin', data: BIG }, { name: 'note', data: 'sent\n' }]);
  const sent = await send(body);
  assert.equal(sent.status, 200, sent.text);
  assert.deepEqual([sent.json.entries, sent.json.bytes], [2, BIG.length + 5]);
  assert.equal((await send(zlib.gzipSync(body))).json.files_digest, sent.json.files_digest);
  const asked = { name: 'sent', dockerfile: 'FROM base\nCOPY note /note\n', files_digest: sent.json.files_digest };
  assert.deepEqual([(await make(asked)).error, (await run('sent', 'cat /note')).stdout], [null, 'sent\n']);

  const stranger = await ownerApi(api, 'acme', 'zoe');
  assert.equal((await put('base', layoutArchive(image([base])), stranger)).status, 200);
  assert.equal(assertError(await ask(asked, stranger), 400).code, 'files_not_found');
  assert.equal(assertError(await ask({ ...asked, files: { note: 'x' } }), 400).code, 'invalid_recipe');
  assertError(await ask({ ...asked, files_digest: `sha256:${'../'.repeat(21)}x` }), 400);
  for (const name of ['../out', '/etc/out', 'a/../../out']) assertError(await send(tar([{ name, data: 'x' }])), 400);
  assertError(await send(tar([{ name: 'null', type: 'char' }])), 400);
  assertError(await send('no archive at all'), 400);
  assert.deepEqual(stored(), [], 'no builder stays');

  const prune = () => api.request('POST', '/v1/templates/prune', { json: {} });
  const place = sent.json.files_digest.slice(7);
  assert.equal((await prune()).status, 200);
  assert.ok(layers().includes(place));
  assert.equal((await api.request('POST', '/v1/templates/sent/build', { json: { no_cache: true } })).status, 202);
  assert.equal((await built('sent')).error, null);
  assert.equal((await api.request('DELETE', '/v1/templates/sent')).status, 204);
  assert.equal((await prune()).status, 200);
  assert.ok(!layers().includes(place));
  assert.equal(assertError(await ask(asked), 400).code, 'files_not_found');
});

test('a template is exported as an OCI layout that skopeo and umoci take, and that is imported again', async () => {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'export-'));
  const { ok } = commandLine(instance);
  try {
    // A link that an earlier copy brought out of a sandbox, say.
    fs.writeFileSync(path.join(dir, 'own'), 'own');
    fs.symlinkSync('own', path.join(dir, 'tree.tar'));
    await ok(['template', 'export', 'tree', path.join(dir, 'tree.tar')]);
    assert.equal(fs.readFileSync(path.join(dir, 'own'), 'utf8'), 'own');
    execFileSync('tar', ['-xf', 'tree.tar', '--one-top-level=layout'], { cwd: dir });
    const inspected = JSON.parse(execFileSync('skopeo', ['inspect', '--config', `oci:${dir}/layout:tree`]));
    assert.deepEqual(inspected.config.Env, ['PATH=/bin', 'KEPT=yes']);
    execFileSync('skopeo', ['copy', '-q', `oci:${dir}/layout:tree`, `oci:${dir}/copy:tree`]);
    execFileSync('umoci', ['unpack', '--image', `${dir}/copy:tree`, `${dir}/bundle`]);
    const unpacked = path.join(dir, 'bundle/rootfs');
    assert.equal(fs.readFileSync(path.join(unpacked, 't/big'), 'utf8').split('\n').length, 100001);
    assert.equal(fs.statSync(path.join(unpacked, 't/f')).nlink, 2);
    assert.ok(!fs.existsSync(path.join(unpacked, 'old')));
    assert.equal((await put('tree-again', fs.readFileSync(path.join(dir, 'tree.tar')))).status, 200);
    const inside = `cd /; find t bin etc dir | sort | while read f; do stat -c '%n %a %u:%g %Y' "$f"; readlink "$f"; done`;
    assert.equal((await run('tree-again', inside, { user: 'root' })).stdout, (await run('tree', inside, { user: 'root' })).stdout);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
  assertError(await (await ownerApi(api, 'acme', 'eve')).request('GET', '/v1/templates/tree/archive'), [404]);
  assertError(await api.request('GET', '/v1/templates/host/archive'), [400]);
});

finish();
