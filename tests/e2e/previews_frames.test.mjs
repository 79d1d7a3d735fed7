// SPDX-License-Identifier: Apache-2.0
// A private preview is shown inside no page of another origin, also not of a neighbour, whose requests carry the cookie of its link.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Previews } from './lib/preview.mjs';
import { background } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('previews-frames');
const browser = new Chromium();
after(() => browser.close());

// /inner tells the page around it that it is shown; /around?<address> shows that address in all ways there are, and
// collects in its title what it is told; /served says how often /inner was asked for.
const APP = `
let served = 0;
require('http').createServer((req, res) => {
  const url = new URL(req.url, 'http://x');
  res.setHeader('content-type', 'text/html');
  if (url.pathname === '/inner') { served++; res.setHeader('content-security-policy', "frame-ancestors *; default-src 'unsafe-inline'"); res.end('<p>inner</p><script>parent.postMessage("seen", "*")</script>'); }
  else if (url.pathname === '/served') res.end(String(served));
  else { const at = decodeURIComponent(url.search.slice(1)); res.end('<script>let n = 0, ended = 0; onmessage = (e) => { document.title = "seen " + ++n; }; const end = () => { window.ended = ++ended; }</script>'
    + '<iframe onload=end() src="' + at + '"></iframe><object onload=end() onerror=end() type="text/html" data="' + at + '"></object><embed onload=end() type="text/html" src="' + at + '">'); }
}).listen(3000);
`;

async function serve(body) {
  const sandbox = await api.create({ ports: [3000], ...body });
  await background(api, sandbox.id, ['node', '-e', APP]);
  const previews = new Previews(api, sandbox);
  await until(async () => (await previews.request(3000, '/served')).status === 200, { what: 'the app answers' });
  return previews;
}

const [victim, neighbour] = await Promise.all([serve(), serve({ ports: [{ port: 3000, public: true }] })]);
const link = (await api.request('POST', `/v1/sandboxes/${victim.id}/ports/3000/links`, { json: {} })).json.url;
const cookie = `sandlot_preview=${new URL(link).searchParams.get('sandlot_link')}`;
const served = async () => Number((await victim.request(3000, '/served')).text);
const inner = `http://${victim.host(3000)}/inner`;

test('what a browser asks for to show it inside a page of another origin is refused, and the app not asked', async () => {
  const before = await served();
  const ask = (dest, site, agent) => victim.request(3000, '/inner', { token: false, agent, headers: { cookie, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': dest, 'sec-fetch-site': site } });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let passed = 0;
  for (const dest of ['iframe', 'frame', 'object', 'embed', 'fencedframe']) {
    for (const site of ['same-site', 'cross-site']) {
      assert.equal((await ask('document', site, agent)).status, 200, `${site} window`);
      const refused = await ask(dest, site, agent); // also on a connection that is good for a window
      assert.deepEqual([refused.status, refused.json.error.code], [403, 'foreign_origin'], `${dest} ${site}`);
      passed++;
    }
    for (const site of ['same-origin', 'none']) assert.equal((await ask(dest, site)).status, 200, `${dest} ${site}`);
    passed += 2;
  }
  agent.destroy();
  assert.equal(await served(), before + passed);
});

test('older browsers are told by the answer, whose own policy stays', async () => {
  const { headers } = await victim.request(3000, '/inner', { token: false, headers: { cookie } });
  assert.equal(headers['content-security-policy'], 'frame-ancestors *; default-src \'unsafe-inline\', frame-ancestors \'self\'');
  assert.equal(headers['x-frame-options'], 'SAMEORIGIN');
  const closed = await victim.request(3000, '/', { token: false });
  assert.equal(closed.status, 401);
  assert.match(closed.headers['content-security-policy'], /frame-ancestors 'self'$/);
  const open = await neighbour.request(3000, '/inner', { token: false });
  assert.deepEqual([open.headers['content-security-policy'], open.headers['x-frame-options']], ['frame-ancestors *; default-src \'unsafe-inline\'', undefined]);
});

test('a neighbour\'s page shows nothing of it in a browser that has its cookie; its own page does, and all show what is public', async () => {
  const owner = await browser.open(link.replace('/?', '/inner?'));
  await owner.shows('document.body.innerText.trim()', 'inner');
  const before = await served();
  const page = await browser.open(`http://${neighbour.host(3000)}/around?${encodeURIComponent(inner)}`);
  await page.shows('window.ended >= 3', true);
  assert.equal(await page.evaluate('document.title'), '');
  assert.equal(await served(), before, 'the app was not asked');
  await owner.go(`http://${victim.host(3000)}/around?${encodeURIComponent('/inner')}`);
  await owner.shows('document.title', 'seen 3');
  await page.go(`http://${victim.host(3000)}/around?${encodeURIComponent(`http://${neighbour.host(3000)}/inner`)}`);
  await page.shows('document.title', 'seen 3');
});

test('the browser leaves', async () => {
  await browser.close();
  await Promise.all([victim, neighbour].map(({ id }) => api.purge(id)));
});

finish();
