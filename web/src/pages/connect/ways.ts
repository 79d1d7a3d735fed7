// SPDX-License-Identifier: Apache-2.0
// Snippets; `at` is the address of this server, `previews` that of its previews.
import { text } from '../../text/en';

interface Way { name: string; steps: (at: string, previews: string) => { about: string; code: string }[] }

export const WAYS: Way[] = [
  {
    name: 'CLI',
    steps: (at) => [
      { about: text.connect.cliSetUp, code: `export SANDLOT_URL=${at}\nexport SANDLOT_TOKEN=<token>` },
      { about: text.connect.cliRun, code: `sandlot run -- python3 -c 'print(6 * 7)'` },
      { about: text.connect.cliShell, code: `id=$(sandlot create)\nsandlot exec "$id" uname -a\nsandlot shell "$id"` },
    ],
  },
  {
    name: 'curl',
    steps: (at) => [
      { about: text.connect.create, code: `export SANDLOT_TOKEN=<token>\ncurl -s -X POST ${at}/v1/sandboxes \\\n  -H "Authorization: Bearer $SANDLOT_TOKEN" \\\n  -H 'Content-Type: application/json' -d '{}'` },
      { about: text.connect.exec, code: `curl -s -X POST ${at}/v1/sandboxes/<id>/exec \\\n  -H "Authorization: Bearer $SANDLOT_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"command":"echo hello from $(hostname)"}'` },
      { about: text.connect.put, code: `curl -s -X PUT "${at}/v1/sandboxes/<id>/files?path=/workspace/hello.txt" \\\n  -H "Authorization: Bearer $SANDLOT_TOKEN" --data-binary 'hello'` },
    ],
  },
  {
    name: 'Python',
    steps: (at) => [{
      about: text.connect.python,
      code: `import json, os, urllib.request\n\ndef sandlot(method, path, body=None):\n    request = urllib.request.Request(\n        "${at}" + path, method=method,\n        data=json.dumps(body).encode() if body is not None else None,\n        headers={"Authorization": "Bearer " + os.environ["SANDLOT_TOKEN"],\n                 "Content-Type": "application/json"})\n    with urllib.request.urlopen(request) as answer:\n        return json.loads(answer.read() or "null")\n\nsandbox = sandlot("POST", "/v1/sandboxes", {})\nresult = sandlot("POST", f"/v1/sandboxes/{sandbox['id']}/exec",\n                 {"command": "echo hello"})\nprint(result["stdout"], result["exit_code"])\nsandlot("POST", f"/v1/sandboxes/{sandbox['id']}/purge")`,
    }],
  },
  {
    name: 'JavaScript',
    steps: (at) => [{
      about: text.connect.javascript,
      code: `const sandlot = async (method, path, body) => {\n  const answer = await fetch('${at}' + path, {\n    method,\n    headers: { authorization: \`Bearer \${process.env.SANDLOT_TOKEN}\`, 'content-type': 'application/json' },\n    body: body && JSON.stringify(body),\n  });\n  const text = await answer.text();\n  return text ? JSON.parse(text) : null;\n};\n\nconst { id } = await sandlot('POST', '/v1/sandboxes', {});\nconst { stdout, exit_code } = await sandlot('POST', \`/v1/sandboxes/\${id}/exec\`, { command: 'echo hello' });\nconsole.log(stdout, exit_code);\nawait sandlot('POST', \`/v1/sandboxes/\${id}/purge\`);`,
    }],
  },
  {
    name: 'MCP',
    steps: (at) => [
      { about: text.connect.mcpHttp, code: JSON.stringify({ mcpServers: { sandlot: { type: 'http', url: `${at}/mcp`, headers: { Authorization: 'Bearer <token>' } } } }, null, 2) },
      { about: text.connect.mcpTools, code: `export SANDLOT_TOKEN=<token>\ncurl -s ${at}/mcp \\\n  -H "Authorization: Bearer $SANDLOT_TOKEN" \\\n  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'` },
    ],
  },
  {
    name: 'E2B',
    steps: (at, previews) => [
      { about: text.connect.e2bKey, code: 'sandlot token create --e2b' },
      { about: text.connect.e2bSetUp, code: `export E2B_API_URL=${at}/e2b\nexport E2B_SANDBOX_URL=${previews}\nexport E2B_API_KEY=<key>` },
      { about: text.connect.e2bRun, code: "import { Sandbox } from 'e2b';\n\nconst sandbox = await Sandbox.create();\nconst { stdout, exitCode } = await sandbox.commands.run('echo hello');\nconsole.log(stdout, exitCode);\nawait sandbox.kill();" },
    ],
  },
];
