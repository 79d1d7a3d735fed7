// SPDX-License-Identifier: Apache-2.0
// Sandboxes as a small team might have them, for pictures of the console.
import { busybox, image, layoutArchive } from './images.mjs';

const APP = `from http.server import *
import time
print('listening on 3000', flush=True)
class H(SimpleHTTPRequestHandler):
    pass
HTTPServer(('0.0.0.0', 3000), H).serve_forever()
`;

const MAIN = `"""Fetches the weather of a city and prints a table of it."""
import json
import sys
from dataclasses import dataclass


@dataclass
class Day:
    name: str
    low: float
    high: float

    def row(self) -> str:
        return f"{self.name:<10} {self.low:>5.1f} {self.high:>5.1f}"


def load(path: str) -> list[Day]:
    with open(path) as file:
        return [Day(**day) for day in json.load(file)]


if __name__ == "__main__":
    days = load(sys.argv[1] if len(sys.argv) > 1 else "days.json")
    print("\\n".join(day.row() for day in days))
`;

const SERVER = `require('node:http').createServer((request, response) => response.end('hello')).listen(process.env.PORT, '127.0.0.1');
`;

const BUSY = 'while :; do python3 -c "sum(i * i for i in range(400000))"; sleep 0.3; done';

/** Makes them with a client of the API; those to look at closely come back. */
export async function showcase(api) {
  const web = await api.create({ name: 'web-preview', ports: [3000], labels: { team: 'core', env: 'dev' }, start: [{ name: 'app', command: 'python3 -u app.py', cwd: '/workspace/project' }] });
  const put = (path, body) => api.request('PUT', `/v1/sandboxes/${web.id}/files`, { query: { path }, body });
  const exec = (id, json) => api.request('POST', `/v1/sandboxes/${id}/exec`, { json });
  await put('/workspace/project/app.py', APP);
  await put('/workspace/project/main.py', MAIN);
  await put('/workspace/project/README.md', '# Weather\n\nA table of the weather.\n');
  await put('/workspace/project/days.json', JSON.stringify([{ name: 'Monday', low: 3.5, high: 9.1 }, { name: 'Tuesday', low: 4, high: 11.8 }], null, 2));
  await exec(web.id, { command: BUSY, background: true, keep_awake: true });
  await exec(web.id, { command: 'for i in $(seq 1 40); do echo "request $i: GET /api/items/$i 200 in $((i % 7 + 2)) ms"; done; echo "slow query: 812 ms" >&2; sleep 100000', background: true });
  await api.request('POST', `/v1/sandboxes/${web.id}/snapshots`, { json: { name: 'before the upgrade' } });
  const agent = await api.create({ name: 'agent-worker', labels: { team: 'research' }, network: { mode: 'allowlist', allow: ['index.example'] }, resources: { cpu: 2, memory: '512Mi' } });
  await exec(agent.id, { command: BUSY.replace('0.3', '1.2'), background: true, keep_awake: true });
  await exec(agent.id, { command: 'for name in example.org packages.example.com; do curl -s -m 2 https://$name; done; true' });
  const notebook = await api.create({ name: 'notebook', labels: { team: 'research' }, idle_timeout_s: null });
  await exec(notebook.id, { command: 'python3 -c "x = bytearray(200 << 20); import time; time.sleep(100000)"', background: true });
  await api.create({ name: 'ci-4711', labels: { branch: 'main' }, idle_timeout_s: 300 });
  const paused = await api.create({ name: 'load-test' });
  await api.request('POST', `/v1/sandboxes/${paused.id}/pause`);
  for (const name of ['docs-build', 'old-demo']) {
    const { id } = await api.create({ name });
    await api.request('POST', `/v1/sandboxes/${id}/stop`);
  }
  const putFile = (path, body) => api.request('PUT', '/v1/projects/shop/files', { query: { path }, body });
  await api.request('POST', '/v1/projects', { json: { name: 'shop' } });
  await putFile('server.js', SERVER);
  await putFile('package.json', JSON.stringify({ name: 'shop', scripts: { start: 'node server.js' } }, null, 2));
  await putFile('public/index.html', '<h1>Shop</h1>\n');
  const launch = (await api.request('POST', '/v1/launches', { json: { project: 'shop' } })).json;
  await api.request('PUT', '/v1/functions/greet', { json: { language: 'python', code: 'def handler(event, context):\n    return {"hello": event.get("name", "you")}\n' } });
  for (const name of ['Ada', 'Grace']) await api.request('POST', '/v1/functions/greet/invoke', { json: { name } });
  await api.request('PUT', '/v1/secrets/models', { json: { value: 'not-a-real-key', url: 'https://models.example.com', header: 'Authorization' } });
  for (const [name, user, scopes] of [['ci-deploy', 'ci', ['read', 'run', 'files', 'manage']], ['dashboard', 'ops', ['read']]]) {
    const { token } = (await api.request('POST', '/v1/tokens', { json: { name, user, organization: 'acme', scopes, expires_in_s: 2592000 } })).json;
    if (scopes.includes('run')) await api.request('POST', '/v1/sandboxes', { json: { name: 'nightly' }, token });
  }
  await api.request('PUT', '/v1/quotas/acme/ci', { json: { sandboxes: 20, running: 5, memory: '8Gi', disk: '40Gi' } });
  const stack = await api.create({ name: 'stack', labels: { team: 'core' }, members: [{ role: 'cache', template: 'host', port: 6379, command: 'echo "ready to accept connections on port 6379"; exec sleep 100000', health: { command: 'true' } }] });
  await api.request('PUT', '/v1/templates/small/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  return { web, agent, stack, launch };
}
