// SPDX-License-Identifier: Apache-2.0
// A server of packages for pip and npm, with a few small ones of our own, and the settings of a daemon that uses it.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import zlib from 'node:zlib';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';

import { nameServer } from './outside.mjs';
import { tar } from './tar.mjs';
import { until } from './wait.mjs';

const HOST = 'packages.test';

const WHEEL = `
import io, sys, zipfile
version = sys.argv[1]
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as z:
    z.writestr('tiny_one.py', f"word = 'one {version}'\\ndef main():\\n    print(word)\\n")
    info = f'tiny_one-{version}.dist-info/'
    z.writestr(info + 'METADATA', f'Metadata-Version: 2.1\\nName: tiny-one\\nVersion: {version}\\n')
    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr(info + 'entry_points.txt', '[console_scripts]\\ntiny-one-tool = tiny_one:main\\n')
    z.writestr(info + 'RECORD', '')
sys.stdout.buffer.write(out.getvalue())
`;
const wheel = (version) => execFileSync('python3', ['-c', WHEEL, version]);

function nodePackage(name, version, word) {
  const manifest = { name, version, main: 'main.js', bin: { [`${name}-tool`]: 'tool.js' } };
  return { manifest, tarball: zlib.gzipSync(tar([
    { name: 'package/package.json', data: JSON.stringify(manifest) },
    { name: 'package/main.js', data: `exports.word = '${word} ${version}';\n` },
    { name: 'package/tool.js', data: `#!/usr/bin/env node\nconsole.log('${word} ${version}');\n`, mode: 0o755 },
  ])) };
}

/** What npm asks for first: all versions of a package. */
function packument(url, name, versions) {
  const entries = versions.map(({ manifest, tarball }) => [manifest.version, { ...manifest, dist: { tarball: `${url}/-/${name}-${manifest.version}.tgz`, integrity: `sha512-${crypto.createHash('sha512').update(tarball).digest('base64')}` } }]);
  return { name, 'dist-tags': { latest: entries.at(-1)[0] }, versions: Object.fromEntries(entries) };
}

/** tiny-one 1.0.0 and 1.1.0 for pip; tiny-two 2.0.0 and 2.1.0, and held-package, for npm. */
export async function packageServer() {
  const wheels = Object.fromEntries(['1.0.0', '1.1.0'].map((version) => [`tiny_one-${version}-py3-none-any.whl`, wheel(version)]));
  const node = { 'tiny-two': ['2.0.0', '2.1.0'].map((version) => nodePackage('tiny-two', version, 'two')), 'held-package': [nodePackage('held-package', '1.0.0', 'held')] };
  const names = await nameServer({ [HOST]: '127.0.0.1' });
  let isHolding = false, asked = 0, waiting = 0;
  const kept = [];

  function answer(request, response) {
    const [, file, name] = request.url.match(/^\/(?:-|files|simple)\/([^/]+)\/?$/) ?? request.url.match(/^(\/)(.+)$/) ?? [];
    if (request.url.startsWith('/simple/')) {
      if (file !== 'tiny-one') return response.writeHead(404).end();
      return response.setHeader('content-type', 'text/html').end(Object.keys(wheels).map((one) => `<a href="/files/${one}">${one}</a>`).join('\n'));
    }
    if (wheels[file]) return response.end(wheels[file]);
    const found = Object.values(node).flat().find(({ manifest }) => file === `${manifest.name}-${manifest.version}.tgz`);
    if (found) return response.end(found.tarball);
    if (!node[name]) return response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"Not found"}');
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(packument(`http://${HOST}:${server.port}`, name, node[name])));
  }

  const server = http.createServer((request, response) => {
    asked++;
    if (isHolding && request.url === '/held-package') {
      waiting++;
      kept.push(() => answer(request, response));
    } else {
      answer(request, response);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.port = server.address().port;
  const url = `http://${HOST}:${server.port}`;

  return {
    args: ['--resolver', `127.0.0.1:${names.port}`, '--pip-index', `${url}/simple`, '--npm-registry', url, '--network', 'internet', '--allow', `127.0.0.1:${server.port}`],

    /** A package-lock.json of a project that needs tiny-two. */
    lock(version) {
      const { dist } = packument(url, 'tiny-two', node['tiny-two']).versions[version];
      return JSON.stringify({ name: 'app', version: '1.0.0', lockfileVersion: 3, requires: true, packages: {
        '': { name: 'app', version: '1.0.0', dependencies: { 'tiny-two': '^2.0.0' } },
        'node_modules/tiny-two': { version, resolved: dist.tarball, integrity: dist.integrity, bin: { 'tiny-two-tool': 'tool.js' } } } });
    },

    /** Nothing is asked for while `work` goes on. */
    async unasked(work) {
      const before = asked;
      await work();
      assert.equal(asked, before, 'nothing was fetched');
    },

    /** Requests for held-package wait while `work` goes on, which is told how to wait for the next of them. */
    async hold(work) {
      isHolding = true;
      try {
        await work(async () => { await until(() => waiting > 0, { what: 'held-package is asked for' }); waiting = 0; });
      } finally {
        isHolding = false;
        for (const go of kept.splice(0)) go();
      }
    },

    close() {
      names.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
