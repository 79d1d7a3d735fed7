// SPDX-License-Identifier: Apache-2.0
// Handlers that work with the SDKs of AWS, with E2E_FULL: boto3 and @aws-sdk/client-s3 as their registries have them, against a
// store of objects in the same sandbox. They need a network; without one the test says so and is skipped.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { registryAccess } from './lib/registry.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

// Keeps what is put, and gives it back.
const STORE = `import http.server
OBJECTS = {}
class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_PUT(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            data = b""
            while size := int(self.rfile.readline(), 16): data += self.rfile.read(size); self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers["Content-Length"]))
        if "aws-chunked" in (self.headers.get("Content-Encoding") or ""): # the first chunk is all of it here
            size, _, rest = data.partition(b"\\r\\n")
            data = rest[:int(size.split(b";")[0], 16)]
        OBJECTS[self.path.partition("?")[0]] = data
        self.answer(200, b"")
    def do_GET(self):
        data = OBJECTS.get(self.path.partition("?")[0])
        self.answer(404 if data is None else 200, data or b"")
    def answer(self, status, data):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Store)
open("/workspace/ready", "w").close()
server.serve_forever()
`;
const PYTHON = `import json
import logging
import os

import boto3

store = boto3.client("s3")
logger = logging.getLogger()
logger.setLevel("INFO")

def write_bill(bucket, key, text):
    store.put_object(Bucket=bucket, Key=key, Body=text)

def lambda_handler(event, context):
    bucket = os.environ["BILL_BUCKET"]
    key = f"bills/{event['order']}.txt"
    write_bill(bucket, key, f"{event['thing']}: {event['price']}")
    logger.info("order %s is written by %s", event["order"], context.function_name)
    try:
        store.get_object(Bucket=bucket, Key="bills/none.txt")
    except store.exceptions.ClientError as error:
        missing = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return {"statusCode": 200, "body": json.dumps({"missing": missing, "bill": store.get_object(Bucket=bucket, Key=key)["Body"].read().decode()})}
`;
const JAVASCRIPT = `import { S3Client, PutObjectCommand, GetObjectCommand } from '@aws-sdk/client-s3';

const client = new S3Client({ forcePathStyle: true });

/** Writes the bill of an order. */
export const handler = async (event, context) => {
  const Bucket = process.env.BILL_BUCKET;
  if (!Bucket) throw new Error('BILL_BUCKET is not set');
  const Key = \`bills/\${event.order}.txt\`;
  await client.send(new PutObjectCommand({ Bucket, Key, Body: \`\${event.thing}: \${event.price}\` }));
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  let missing;
  try {
    await client.send(new GetObjectCommand({ Bucket, Key: 'bills/none.txt' }));
  } catch (error) {
    missing = error.$metadata.httpStatusCode;
  }
  console.log('written by', context.functionName);
  return { statusCode: 200, body: JSON.stringify({ missing, bill: await Body.transformToString() }) };
};
`;

if (!process.env.E2E_FULL) {
  test('handlers with the SDKs of AWS run unchanged', { skip: 'with E2E_FULL' });
} else {
  const { api, finish } = await suite('functions_aws');

  test('handlers with the SDKs of AWS run unchanged', async (t) => {
    const access = await registryAccess('npm', 'pip');
    if (!access) return t.skip('not proven: no registry can be reached from this machine');
    const { id } = await api.create(access);
    const path = `/v1/sandboxes/${id}/dependencies`;
    assert.equal((await api.request('POST', path, { json: { python: ['boto3'], node: ['@aws-sdk/client-s3'] } })).status, 202);
    let found;
    await until(async () => !['queued', 'running'].includes((found = (await api.request('GET', path)).json).status), { what: 'the packages', timeout_ms: 600_000 });
    assert.deepEqual([found.status, found.error], ['succeeded', null]);
    await api.put(id, '/workspace/store.py', STORE);
    assert.equal((await api.tryExec(id, { command: 'python3 /workspace/store.py', background: true })).status, 201);
    await until(async () => (await api.tryExec(id, 'test -e /workspace/ready')).json.exit_code === 0, { what: 'the store listens' });
    const env = { BILL_BUCKET: 'shop', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9000', AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-central-1' };
    for (const [language, code, handler] of [['python', PYTHON, 'lambda_function.lambda_handler'], ['javascript', JAVASCRIPT, 'index.handler']]) {
      const { json } = await api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { language, code, handler, env, event: { order: language, thing: 'tea', price: 3.5 }, timeout_ms: 120_000 } });
      assert.deepEqual([json.status, json.error, json.result], ['succeeded', null, { statusCode: 200, body: language === 'python' ? '{"missing": 404, "bill": "tea: 3.5"}' : '{"missing":404,"bill":"tea: 3.5"}' }], JSON.stringify(json).slice(0, 3000));
      assert.match(json.stdout, language === 'python' ? /^\[INFO\]\t.*order python is written by handler\n$/s : /^written by handler\n$/);
    }
    await api.purge(id);
  });

  finish();
}
