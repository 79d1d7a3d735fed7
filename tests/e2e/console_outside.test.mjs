// SPDX-License-Identifier: Apache-2.0
// The console from outside: behind nginx with TLS on another port, with what hostile sandboxes say, and as its own pages say to use it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { authority } from './lib/certificates.mjs';
import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { BUILD_DIR } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';
import { tlsProxy } from './lib/tls_proxy.mjs';
import { takeTurns } from './lib/views.mjs';

const NAME = 'console.preview.localhost';
const ca = authority();
const made = {};
let api;

const proxy = await tlsProxy(ca.issue('console', [`DNS:${NAME}`]));
const origin = `https://${NAME}:${proxy.port}`;
const { finish, ...started } = await suite('console_outside', { args: ['--api-hosts', `${NAME}:${proxy.port}`], width: 1 });
({ api } = started);
await proxy.start(api.port);
const browser = new Chromium({ authority: ca.file });
after(async () => { await browser.close(); await proxy.close(); ca.remove(); });

const console = await Console.open(browser, origin);
const { page } = console;
takeTurns((view) => console.look(view));

/** Shown as text it does nothing; run, it leaves a mark. */
const CANARY = '"><img src=x onerror="window.canary=1"><svg onload="window.canary=1"></svg><script>window.canary=1</script>';
const FILE = CANARY.replaceAll('/', '');

test('behind a proxy with TLS on another port one signs in, and the list is live', async () => {
  await console.signIn(api.token);
  await console.says('No sandboxes yet');
  page.errors.length = 0; // the browser itself tells of the 401 before
  assert.equal(await page.evaluate('location.protocol'), 'https:');
  assert.equal(await page.evaluate('document.cookie'), '');
  await page.send('Page.reload');
  await console.says('No sandboxes yet');
  made.id = (await api.create({ name: 'behind', labels: { note: CANARY.slice(0, 60) }, idle_timeout_s: null })).id;
  await console.says('1 sandbox, 1 running');
  console.isCalm();
});

test('there a command streams, a file is saved, and a terminal echoes over its socket', async () => {
  await console.go(`/sandboxes/${made.id}/run`);
  await console.fill('Command', 'echo "it is $((6 * 7))"');
  await console.press('Enter');
  await console.says('it is 42');
  await console.go(`/sandboxes/${made.id}/terminal`);
  await console.button('New terminal');
  await page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  await page.evaluate('document.querySelector(".xterm-helper-textarea").focus(), 1');
  await console.type('echo "it is $((7 * 7))"');
  await console.press('Enter');
  await page.shows('document.querySelector(".xterm-rows")?.innerText.replaceAll("\\u00a0", " ").includes("it is 49")', true);
  assert.ok(page.sockets.every((url) => url.startsWith(`wss://${NAME}:`)), page.sockets.join());
  await page.evaluate(`fetch('/v1/sandboxes/${made.id}/files?path=/workspace/saved.txt', { method: 'PUT', body: 'saved' }).then(({ status }) => { window.put = status; })`);
  await page.shows('window.put', 201);
  console.isCalm();
});

test('a name, label, path, log line, argument or result that looks like markup is shown, and runs nowhere', async () => {
  await api.tryPut(made.id, `/workspace/${FILE}`, CANARY);
  await api.tryPut(made.id, '/workspace/picture.svg', '<svg xmlns="http://www.w3.org/2000/svg" onload="window.canary=1"><script>window.canary=1; parent.canary=1</script><rect width="9" height="9"/></svg>');
  await api.tryPut(made.id, '/workspace/page.html', CANARY);
  await api.request('POST', `/v1/sandboxes/${made.id}/snapshots`, { json: { name: 'hostile' } });
  await api.request('POST', `/v1/sandboxes/${made.id}/exec`, { json: { command: `printf '%s\\n' '${CANARY}'; printf '\\033]8;;javascript:window.canary=1\\007link\\033]8;;\\007'; curl -s -m 2 'http://${'x'.repeat(20)}.invalid/'`, background: true } });
  const tabs = ['', '/processes', '/files', `/files?path=${encodeURIComponent(`/workspace/${FILE}`)}`, '/files?path=/workspace/picture.svg', '/files?path=/workspace/page.html', '/network', '/snapshots', '/events', '/settings'];
  for (const tab of tabs) {
    await console.go(`/sandboxes/${made.id}${tab}`);
    await page.shows('document.querySelector("h1") !== null && document.querySelector(".bone") === null', true);
    assert.equal(await page.evaluate('window.canary ?? null'), null, tab);
  }
  await console.go(`/sandboxes/${made.id}/processes`);
  await console.says('<script>window.canary=1</script>');
  await console.go(`/sandboxes/${made.id}/files`);
  await console.says(FILE);
  await console.go('/audit');
  await console.says('file.write');
  for (const frame of await page.evaluate('[...document.querySelectorAll("iframe")].map((one) => one.getAttribute("sandbox"))')) assert.equal(frame, '');
  assert.equal(await page.evaluate('window.canary ?? null'), null);
  page.errors.length = 0; // the browser tells of what it has blocked
});

test('cells of the notebook share a context: what one defines the next has; HTML of it stands in a frame without scripts', async () => {
  await console.go(`/sandboxes/${made.id}/playground`);
  await page.shows('document.querySelector(".cm-content") !== null', true);
  const keep = (name, value) => page.evaluate(`localStorage.setItem('sandlot.${name}', ${JSON.stringify(JSON.stringify(value))}), 1`);
  const { id: context } = (await api.request('POST', `/v1/sandboxes/${made.id}/contexts`, { json: { language: 'python' } })).json;
  await keep(`code.${made.id}.python`, 'x = 6\n');
  await keep(`code.${made.id}.python.1`, 'class Shown:\n    def _repr_html_(self):\n        return f"<b>{x * 7}</b><script>parent.canary=1</script>"\n\nShown()\n');
  await keep(`cells.${made.id}.python`, [0, 1]);
  await keep(`context.${made.id}.python`, context);
  await page.send('Page.reload');
  await page.shows('document.querySelectorAll(".cell .cm-content").length', 2);
  await page.shows('document.querySelector("select[aria-label=\\"Where it runs\\"]")?.value', context);
  await console.click('.cell:nth-of-type(1) button', 'Run');
  await page.shows('document.querySelectorAll(".cell .badge.ok").length', 1);
  await console.click('.cell:nth-of-type(2) button', 'Run');
  await page.shows('document.querySelector(".cell iframe")?.getAttribute("sandbox")', '');
  assert.match(await page.evaluate('document.querySelector(".cell iframe").srcdoc'), /<b>42<\/b>/);
  assert.equal(await page.evaluate('window.canary ?? null'), null);
  page.errors.length = 0; // the browser tells that it has blocked a script
});

test('what the Connect page says to copy runs as it stands, once a token is in it', async () => {
  await console.go('/connect');
  const run = promisify(execFile);
  const env = { ...process.env, PATH: `${path.resolve(BUILD_DIR)}:${process.env.PATH}`, SANDLOT_TOKEN: api.token, HOME: '/nonexistent' };
  const steps = async (way) => {
    await console.click('.segments button', way);
    await page.shows('document.querySelector(".card h2").innerText', way);
    // The proxy is for the browser alone: programs of this machine do not know its authority.
    return (await page.evaluate('[...document.querySelectorAll(".copyable pre")].map((one) => one.innerText)')).map((code) => code.replaceAll(origin, `http://127.0.0.1:${api.port}`).replaceAll('<token>', api.token));
  };
  const cli = await steps('CLI');
  const { stdout } = await run('sh', ['-euc', cli.join('\n').replace(/sandlot shell "\$id"/, 'echo exit | script -qec "sandlot shell $id" /dev/null; sandlot purge "$id"')], { env });
  assert.match(stdout, /^42$/m);
  assert.match(stdout, /^Linux /m);
  let id;
  for (const code of await steps('curl')) {
    const answer = await run('sh', ['-euc', code.replaceAll('<id>', id ?? '<id>')], { env });
    id ??= JSON.parse(answer.stdout).id;
    assert.doesNotMatch(answer.stdout, /"error"/);
  }
  assert.equal((await api.files('GET', id, '/workspace/hello.txt')).text, 'hello');
  await api.purge(id);
  for (const [way, program, flags] of [['Python', 'python3', ['-c']], ['JavaScript', 'node', ['--input-type=module', '-e']]]) {
    const [code] = await steps(way);
    assert.match((await run(program, [...flags, code], { env })).stdout, /^hello\n? 0\n$/, way);
  }
  const [configuration, list] = await steps('MCP');
  const { url, headers } = JSON.parse(configuration).mcpServers.sandlot;
  const answer = await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });
  const names = ({ result }) => result.tools.map(({ name }) => name);
  assert.ok(names(await answer.json()).includes('sandbox_create'));
  assert.ok(names(JSON.parse((await run('sh', ['-euc', list], { env })).stdout)).includes('exec'));
  const { preview_url: previews } = (await api.request('GET', '/v1/version')).json;
  const [makeKey, setUp, code] = await steps('E2B');
  assert.ok(setUp.includes(`E2B_SANDBOX_URL=${previews}\n`), setUp);
  assert.equal(makeKey, 'sandlot token create --e2b');
  const at = { ...env, SANDLOT_URL: `http://127.0.0.1:${api.port}` };
  const { token: key } = JSON.parse((await run('sh', ['-euc', `${makeKey} --json`], { env: at })).stdout);
  // The names of previews are known to the browser alone.
  const known = setUp.replace(previews, `http://127.0.0.1:${new URL(previews).port}`).replace('<key>', key);
  const said = await run('sh', ['-euc', `${known}\nexec node --input-type=module -e "$CODE"`], { env: { ...at, CODE: code }, cwd: import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname) });
  assert.match(said.stdout, /^hello\n? 0\n$/);
  console.isCalm();
});

test('/docs has no flaw that axe knows dark and wide, or light and narrow; what is tried out there uses the session', async () => {
  const flaws = [];
  for (const [theme, width] of [['dark', 1280], ['light', 320]]) {
    await page.evaluate(`localStorage.setItem('sandlot.theme', '"${theme}"'), 1`);
    await page.send('Emulation.setDeviceMetricsOverride', { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
    await console.go('/docs/');
    await page.shows('document.documentElement.dataset.theme', theme);
    await page.shows('document.querySelectorAll(".opblock-tag").length > 5', true);
    await page.evaluate('document.querySelector(".opblock-tag[data-tag=service] button").click(), document.querySelector(".opblock-tag[data-tag=tokens] button").click(), 1');
    await page.shows('document.querySelectorAll(".opblock").length > 6', true);
    await page.evaluate('for (const name of ["getVersion", "createToken", "revokeToken"]) document.querySelector("[id$=" + name + "] .opblock-summary-control").click(), 1');
    await page.shows('document.querySelectorAll(".opblock.is-open .execute:not(:disabled)").length', 3);
    if (width > 500) {
      await page.evaluate('document.querySelector("[id$=getVersion] .execute").click(), 1');
      await page.shows('document.querySelector("[id$=getVersion] .live-responses-table tbody .response-col_status")?.innerText.startsWith("200")', true);
    }
    assert.deepEqual(page.console, []);
    for (const flaw of await console.flaws()) flaws.push(`${theme} ${width} ${flaw}`);
    const arrow = await page.evaluate('getComputedStyle(document.querySelector(".opblock-control-arrow svg path")).fill');
    if (arrow === 'rgb(0, 0, 0)') flaws.push(`${theme}: the arrows are ${arrow}`);
    if (await page.evaluate('document.documentElement.scrollWidth') > width) flaws.push(`${theme} ${width}: it sticks out`);
  }
  await page.send('Emulation.clearDeviceMetricsOverride');
  assert.deepEqual(flaws, []);
  console.isCalm();
});

test('/docs offers to execute an operation only once it can: no click is lost', async () => {
  await console.go('/docs/');
  await page.shows('document.querySelectorAll(".opblock-tag").length > 5', true);
  await page.evaluate('document.querySelector(".opblock-tag[data-tag=service] button").click(), 1');
  await page.shows('document.querySelector("[id$=getVersion] .opblock-summary-control") !== null', true);
  // What it is made of is put together after it was opened; its button is there at once.
  const early = await page.evaluate(`new Promise((resolve) => {
    const look = () => { const button = document.querySelector('[id$=getVersion] .execute'); return button ? resolve(button.disabled) : setTimeout(look, 0); };
    document.querySelector('[id$=getVersion] .opblock-summary-control').click();
    look();
  })`);
  assert.equal(early, true);
  await page.shows('document.querySelector("[id$=getVersion] .execute").disabled', false);
  await page.evaluate('document.querySelector("[id$=getVersion] .execute").click(), 1');
  await page.shows('document.querySelector("[id$=getVersion] .live-responses-table tbody .response-col_status")?.innerText.startsWith("200")', true);
  console.isCalm();
});

test('the sandbox goes, and the browser leaves', async () => {
  await api.purge(made.id);
  for (const snapshot of (await api.request('GET', '/v1/snapshots')).json.snapshots) await api.request('DELETE', `/v1/snapshots/${snapshot.id}`);
  await browser.close();
});

finish();
