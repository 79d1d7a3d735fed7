// SPDX-License-Identifier: Apache-2.0
// Real work behind the walls: what people run, started for real, under the profile that its template has.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';

const { api, finish } = await suite('workloads', { args: ['--templates', 'host,browser'] });
const { id } = await api.create({ resources: { memory: '2Gi', cpu: 2 } });

/** Runs lines of shell as the ordinary user, in a directory of their own; standard output. */
async function work(script, sandbox = id) {
  const command = `set -e; export HOME=$(mktemp -d) LC_ALL=C.UTF-8; cd "$HOME"\n${script}`;
  const result = await api.exec(sandbox, { command, timeout_ms: 300_000 });
  assert.equal(result.exit_code, 0, `${result.stdout.slice(-1500)}\n${result.stderr.slice(-1500)}`);
  return result.stdout.trim();
}

test('python: processes, threads, sockets, shared memory, a virtual environment', async () => {
  assert.equal(await work(`python3 - <<'END'
import asyncio, concurrent.futures, multiprocessing, multiprocessing.shared_memory, socket, sqlite3, threading
with concurrent.futures.ProcessPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, -2])))
memory = multiprocessing.shared_memory.SharedMemory(create=True, size=4096); memory.buf[0] = 7; print(memory.buf[0]); memory.close(); memory.unlink()
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()); print(await reader.read()); writer.close(); server.close()
asyncio.run(main())
END`), '[1, 2]\n7\nb\'\'');
});

test('node and npm: threads, children, a server, a local package', async () => {
  assert.match(await work(`node -e '
const { Worker } = require("worker_threads"); const { execSync } = require("child_process"); const http = require("http");
new Worker("require(\\"worker_threads\\").parentPort.postMessage(6 * 7)", { eval: true }).on("message", (m) => {
  const server = http.createServer((q, s) => s.end(String(m))).listen(0, () => http.get({ port: server.address().port }, (r) => r.on("data", (d) => { console.log(String(d), execSync("echo child").toString().trim()); server.close(); })));
});'
mkdir a b && (cd a && npm init -y >/dev/null) && cd b && npm init -y >/dev/null && npm install --offline --no-audit --no-fund ../a >/dev/null && ls node_modules`), /^42 child\na$/);
});

test('git: a repository, branches, a merge, a clone', async () => {
  assert.equal(await work(`git init -q r && cd r && git config user.name a && git config user.email a@b && echo 1 > f && git add f && git commit -qm one && git checkout -qb x && echo 2 > g && git add g && git commit -qm two && git checkout -q - && git merge -q x && git gc -q && cd .. && git clone -q r s && git -C s log --oneline | wc -l`), '2');
});

test('gcc compiles, strace and gdb look into what it made', async () => {
  assert.equal(await work(`printf '#include <stdio.h>\\nint main(void) { puts("hello"); return 3; }\\n' > m.c && gcc -g -O1 -o m m.c && ./m || echo $?
strace -f -o trace ./m >/dev/null || true; grep -c '^[0-9]* *exit_group(3)' trace
gdb -batch -ex 'break main' -ex run -ex continue ./m 2>&1 | grep -o 'exited with code 03'`), 'hello\n3\n1\nexited with code 03');
});

test('java starts, compiles and collects garbage', async () => {
  assert.equal(await work(`printf 'class M { public static void main(String[] a) throws Exception { for (int i = 0; i < 200; i++) { byte[] b = new byte[1 << 20]; } Thread t = new Thread(() -> System.out.println(Runtime.getRuntime().availableProcessors() > 0)); t.start(); t.join(); } }' > M.java && if command -v javac >/dev/null; then javac M.java && java -Xmx64m M; else java -version 2>/dev/null && echo true; fi`), 'true');
});

test('postgres is initialised, started and asked', async () => {
  assert.equal(await work(`bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
$bin/initdb -D data -U me >/dev/null && $bin/pg_ctl -D data -w -l log -o "-k $PWD -c listen_addresses=127.0.0.1 -p 5439" start >/dev/null
psql -h "$PWD" -p 5439 -U me -d postgres -Atc 'create table t as select generate_series(1, 1000) n; select sum(n) from t' | tail -1
$bin/pg_ctl -D data -m fast stop >/dev/null`), '500500');
});

test('redis is started, written to and saves in the background', async () => {
  assert.equal(await work(`redis-server --port 6399 --daemonize yes --dir "$PWD" >/dev/null
for i in $(seq 1000); do redis-cli -p 6399 ping >/dev/null 2>&1 && break; sleep 0.1; done
redis-cli -p 6399 set k v; redis-cli -p 6399 bgsave; for i in $(seq 1000); do test -s dump.rdb && break; sleep 0.1; done; redis-cli -p 6399 get k; redis-cli -p 6399 shutdown; ls dump.rdb`), 'OK\nBackground saving started\nv\ndump.rdb');
});

const PAGE = 'data:text/html,<p id=x></p><script>document.getElementById("x").textContent=6*7</script>';
const browse = (flags) => `timeout 240 chromium --headless --disable-gpu --disable-dev-shm-usage ${flags} --dump-dom '${PAGE}' 2>err || { tail -3 err; exit 1; }`;

test('Chromium renders a page without its own sandbox under the default profile', async () => {
  assert.match(await work(browse('--no-sandbox')), /<p id="x">42<\/p>/);
});

test('Chromium\'s own sandbox works under the browser profile, and only there', async () => {
  const { id: browser, template } = await api.create({ template: 'browser', resources: { memory: '2Gi', cpu: 2 } });
  assert.equal(template, 'browser');
  assert.match(await work(browse(''), browser), /<p id="x">42<\/p>/);
  const refused = await api.exec(id, { command: `export HOME=/tmp; ${browse('')}`, timeout_ms: 300_000 });
  assert.notEqual(refused.exit_code, 0);
  await api.purge(browser);
});

test('the workloads are those that are installed for the tests', () => {
  for (const program of ['chromium', 'redis-server', 'gdb', 'strace', 'git', 'java']) assert.ok(fs.existsSync(`/usr/bin/${program}`), `not proven: ${program} is missing, see scripts/deps.sh`);
});

/** A package of Python as a wheel, which is a zip archive; it brings the command `greet`. */
const WHEEL = `
import zipfile
with zipfile.ZipFile('greet-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('greet.py', 'def main():\\n    print("hello from a package")\\n')
    wheel.writestr('greet-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: greet\\nVersion: 1.0\\n')
    wheel.writestr('greet-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('greet-1.0.dist-info/entry_points.txt', '[console_scripts]\\ngreet = greet:main\\n')
    wheel.writestr('greet-1.0.dist-info/RECORD', '')
`;

test('pip install puts packages into the home directory, and PATH finds what they bring', async () => {
  const { id } = await api.create();
  await api.out(id, { argv: ['python3', '-c', WHEEL], cwd: '/tmp' });
  await api.out(id, { command: '/usr/bin/python3 -m pip install --no-index --quiet greet-1.0-py3-none-any.whl', cwd: '/tmp' });
  assert.equal(await api.out(id, 'greet'), 'hello from a package\n');
  assert.equal(await api.out(id, "bash -lc 'command -v greet'"), '/home/sandbox/.local/bin/greet\n', 'login shells find it too');
  assert.equal(await api.out(id, '/usr/bin/python3 -c "import greet; greet.main()"'), 'hello from a package\n');
  await api.purge(id);
});

test('npm install -g puts packages into the home directory, and PATH finds what they bring', async () => {
  const { id } = await api.create();
  const script = 'mkdir -p /tmp/greet && cd /tmp/greet && npm init -y >/dev/null && npm pkg set bin.greet=greet.js && printf "#!/usr/bin/env node\\nconsole.log(\'hello from npm\')\\n" >greet.js && npm pack --silent && npm install -g --offline --no-audit --no-fund ./greet-1.0.0.tgz';
  await api.out(id, script);
  assert.equal(await api.out(id, 'greet'), 'hello from npm\n');
  assert.equal(await api.out(id, 'command -v greet'), '/home/sandbox/.local/bin/greet\n');
  await api.purge(id);
});

test('apt says in one line why it installs nothing and what to use; other commands of it work', async () => {
  const { id } = await api.create();
  for (const [command, user] of [['apt-get update', 'sandbox'], ['apt-get install -y curl', 'sandbox'], ['apt install curl', 'root'], ['apt-get -q dist-upgrade', 'root']]) {
    const { exit_code: code, stdout, stderr } = await api.exec(id, { command, user });
    assert.equal(code, 100);
    assert.equal(stdout, '');
    assert.match(stderr, /^apt(-get)?: this sandbox .*pip.*sandlot run -it -t debian12\n$/);
    assert.equal(stderr.trim().split('\n').length, 1);
  }
  assert.match(await api.out(id, 'apt-get --version'), /^apt /);
  assert.match((await api.exec(id, { command: 'touch /usr/bin/mine', user: 'root' })).stderr, /Read-only file system/);
  const { json } = await api.request('GET', '/v1/templates');
  assert.ok(json.templates.some(({ name }) => name === 'debian12'), 'what it names is there');
  await api.purge(id);
});

finish();
