// SPDX-License-Identifier: Apache-2.0
//
// Runs JavaScript for an execution. The daemon gives this text to `node -e` and writes a request to standard
// input: ten digits, the length of a JSON document, and that document. Results go to descriptor 3 as lines of
// JSON; runtime/python.py describes them. All that is needed after the code is looked up before it.
'use strict';
(() => {
  const fs = require('fs');
  const path = require('path');
  const vm = require('vm');
  const util = require('util');
  const { createRequire } = require('module');
  const { writeSync, readSync } = fs;
  const { stringify, parse } = JSON;
  const inspect = util.inspect;
  const exit = process.reallyExit.bind(process);
  const RESULT = 3;
  const TEXT_MAX = 65536;

  function send(kind, text) {
    const data = Buffer.from(`{"${kind}":${text}}\n`);
    for (let at = 0; at < data.length;) {
      try {
        at += writeSync(RESULT, data, at);
      } catch (failure) {
        if (failure.code !== 'EAGAIN') return;
      }
    }
  }

  function readAll(size) {
    const data = Buffer.alloc(size);
    for (let at = 0; at < size;) {
      let n = 0;
      try {
        n = readSync(0, data, at, size - at, null);
      } catch (failure) {
        if (failure.code === 'EAGAIN') continue;
        throw failure;
      }
      if (n === 0) return null;
      at += n;
    }
    return data;
  }

  function receive() {
    const head = readAll(10);
    const body = head && readAll(Number(head.toString()));
    return body && parse(body.toString());
  }

  // What JSON.stringify does not know; bytes first, because Buffer has a toJSON of its own.
  function replace(key, value) {
    const held = this[key];
    if (ArrayBuffer.isView(held) && !(held instanceof DataView))
      return held instanceof Uint8Array ? Buffer.from(held).toString('base64') : Array.from(held, Number);
    if (typeof value === 'bigint') return value.toString();
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return { type: value.name, message: value.message };
    if (typeof value === 'function' || typeof value === 'symbol') return String(value).slice(0, TEXT_MAX);
    return value;
  }

  function encode(value, limit) {
    const text = value === undefined ? 'null' : stringify(value, replace) ?? 'null';
    if (Buffer.byteLength(text) > limit) {
      const failure = new Error(`the result is larger than ${limit} bytes of JSON`);
      failure.name = 'TooLarge';
      throw failure;
    }
    return text;
  }

  function textOf(value) {
    try {
      return inspect(value, { depth: 4, maxStringLength: TEXT_MAX }).slice(0, TEXT_MAX);
    } catch {
      return typeof value;
    }
  }

  function mimeOf(value) {
    const found = {};
    const given = value && typeof value === 'object' && value['text/html'] ? value : null;
    if (given) return given;
    if (value && typeof value.toHTML === 'function') found['text/html'] = String(value.toHTML());
    found['text/plain'] = typeof value === 'string' ? value.slice(0, TEXT_MAX) : textOf(value);
    return found;
  }

  const request = receive();
  const { limits } = request;

  function show(value) {
    try {
      send('display', encode(mimeOf(value), limits.display));
    } catch {
      send('display', '{"text/plain":"(too large to be shown)"}');
    }
  }

  // Only the lines of the user's own code: those of this file and of node say nothing to them.
  function stackOf(failure) {
    const lines = String(failure && failure.stack ? failure.stack : failure).split('\n');
    return lines
      .filter((line) => !/^\s+at /.test(line) || !/(\[eval\]|node:internal|node:vm|node:repl|\(node:domain|evalmachine)/.test(line))
      .join('\n')
      .slice(0, TEXT_MAX);
  }

  function sendError(failure, type) {
    const isError = failure && typeof failure === 'object' && 'message' in failure;
    send('error', stringify({
      type: type || (isError && failure.name ? String(failure.name) : 'Error'),
      message: (isError ? String(failure.message) : textOf(failure)).slice(0, TEXT_MAX),
      traceback: stackOf(failure),
    }));
  }

  function fail(failure, type) {
    sendError(failure, type);
    exit(1);
  }

  globalThis.display = (...values) => values.forEach(show);

  function contextOf(settle) {
    const end = Date.now() + request.timeout_ms;
    return {
      functionName: request.name || 'handler',
      functionVersion: request.version || '$LATEST',
      invokedFunctionArn: `arn:aws:lambda:local:0:function:${request.name || 'handler'}`,
      memoryLimitInMB: String(request.memory_mb || 0),
      awsRequestId: request.id,
      logGroupName: '',
      logStreamName: '',
      callbackWaitsForEmptyEventLoop: true,
      getRemainingTimeInMillis: () => Math.max(0, end - Date.now()),
      succeed: (value) => settle(null, value),
      fail: (failure) => settle(failure || new Error('failed')),
      done: settle,
    };
  }

  // Whatever comes first: what it returns, what its promise becomes, or what it calls back with.
  function callHandler(handler) {
    return new Promise((resolve, reject) => {
      const settle = (failure, value) => (failure ? reject(failure) : resolve(value));
      const value = handler(request.event, contextOf(settle), settle);
      if (value && typeof value.then === 'function') value.then(resolve, reject);
      else if (value !== undefined || handler.length < 3) resolve(value);
    });
  }

  const directory = request.path ? path.dirname(path.resolve(request.path)) : process.cwd();
  const file = request.path || 'main.js';
  const ownRequire = createRequire(path.join(directory, 'main.js'));

  // A module of the code's own imports, as a module of node's vm.
  async function link(specifier) {
    const isFile = /^[./]/.test(specifier);
    const target = isFile ? require('url').pathToFileURL(path.resolve(directory, specifier)).href : resolveBare(specifier);
    const found = await import(target);
    const names = Object.keys(found);
    const module = new vm.SyntheticModule(names, () => names.forEach((name) => module.setExport(name, found[name])));
    await module.link(() => {});
    await module.evaluate();
    return module;
  }

  function resolveBare(specifier) {
    try {
      const found = ownRequire.resolve(specifier);
      return path.isAbsolute(found) ? require('url').pathToFileURL(found).href : found;
    } catch {
      return specifier;
    }
  }

  async function runModule(code) {
    globalThis.require = ownRequire;
    const module = new vm.SourceTextModule(code, {
      identifier: file,
      importModuleDynamically: link,
      initializeImportMeta: (meta) => { meta.url = require('url').pathToFileURL(path.resolve(file)).href; },
    });
    await module.link(link);
    await module.evaluate();
    return module.namespace;
  }

  // A plain script: its completion value is that of its last expression.
  function runScript(code) {
    const module = { exports: {} };
    Object.assign(globalThis, { require: ownRequire, module, exports: module.exports, __filename: path.resolve(file), __dirname: directory });
    const script = new vm.Script(code, { filename: file, importModuleDynamically: link });
    return { value: script.runInThisContext(), exported: module.exports };
  }

  function isModule(failure) {
    return failure instanceof SyntaxError &&
      /import statement|Unexpected token 'export'|await is only valid|import\.meta|Unexpected reserved word|missing \) after argument/.test(failure.message);
  }

  function declared(name) {
    try {
      return vm.runInThisContext(`typeof ${name} === 'function' ? ${name} : undefined`);
    } catch {
      return undefined;
    }
  }

  async function runOnce() {
    const code = request.path ? fs.readFileSync(request.path, 'utf8') : request.code;
    const name = (request.handler || 'handler').split('.').pop();
    let value, found;
    process.argv.length = 1;
    process.argv.push(file);
    send('begin', '1');
    try {
      const ran = runScript(code);
      value = ran.value;
      found = (ran.exported && ran.exported[name]) || (/^[A-Za-z_$][\w$]*$/.test(name) && declared(name));
      if (typeof ran.exported === 'function' && !found) found = ran.exported;
    } catch (failure) {
      if (!isModule(failure)) throw failure;
      const space = await runModule(code);
      found = space[name] || (space.default && space.default[name]) || (typeof space.default === 'function' ? space.default : undefined);
    }
    if (typeof found === 'function') {
      send('begin', '"handler"');
      send('result', encode(await callHandler(found), limits.result));
      send('done', '1');
      exit(0); // timers and sockets that are left end with it
    }
    if ('handler' in request || 'event' in request) {
      const failure = new Error(`the code has no function ${name}(event, context) that is exported or declared`);
      failure.name = 'HandlerNotFound';
      throw failure;
    }
    if (value !== undefined && typeof value !== 'function') {
      show(value);
      let text = 'null';
      try {
        text = encode(value, limits.result);
      } catch { /* more than JSON can say: it was shown */ }
      send('result', text);
    }
    process.on('exit', (code) => { if (code === 0) send('done', '1'); });
  }

  // A context: one request after another, in one global scope, run by node's own REPL, which knows `await`.
  function serve() {
    const { PassThrough } = require('stream');
    const net = require('net');
    const sink = new PassThrough();
    sink.resume();
    const server = require('repl').start({ prompt: '', input: new PassThrough(), output: sink, useGlobal: true, terminal: false });
    let input = Buffer.alloc(0);
    let count = 0;
    let settle = null;
    globalThis.require = ownRequire;

    function finish(failure, value) {
      if (!settle) return;
      settle = null;
      if (failure !== null && failure !== undefined) {
        sendError(failure.err || failure);
      } else if (value !== undefined) {
        show(value);
        let text = 'null';
        try {
          text = encode(value, limits.result);
        } catch { /* it was shown */ }
        send('result', text);
      }
      send('done', '1');
      take();
    }

    function run(next) {
      send('begin', String(++count));
      settle = finish;
      server.eval(next.code + '\n', server.context, `cell ${count}`, finish);
    }

    // One at a time: the next waits for the end of the one before.
    function take() {
      if (settle || input.length < 10) return;
      const size = Number(input.subarray(0, 10).toString());
      if (input.length < 10 + size) return;
      const next = parse(input.subarray(10, 10 + size).toString());
      input = input.subarray(10 + size);
      run(next);
    }

    process.removeAllListeners('uncaughtException');
    process.removeAllListeners('unhandledRejection');
    process.on('uncaughtException', (failure) => finish(failure));
    process.on('unhandledRejection', (failure) => finish(failure));
    process.on('SIGINT', () => finish(Object.assign(new Error('interrupted'), { name: 'KeyboardInterrupt' })));
    const channel = new net.Socket({ fd: 0, readable: true, writable: false });
    channel.on('data', (data) => { input = Buffer.concat([input, data]); take(); });
    channel.on('end', () => exit(0));
    send('done', '1');
  }

  if (request.serve) {
    serve();
    return;
  }
  process.on('uncaughtException', (failure) => fail(failure));
  process.on('unhandledRejection', (failure) => fail(failure));
  runOnce().catch((failure) => fail(failure));
})();
