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
  const { from: bytesOf, byteLength } = Buffer;
  const inspect = util.inspect;
  const exit = process.reallyExit.bind(process);
  let RESULT = 3;
  let mark = ''; // before each line, in a context
  const TEXT_MAX = 65536;

  function send(kind, text) {
    const data = bytesOf(`${mark && `\n${mark} `}{"${kind}":${text}}\n`);
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
      return held instanceof Uint8Array ? bytesOf(held).toString('base64') : Array.from(held, Number);
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
    if (byteLength(text) > limit) {
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

  if (process.argv[1] === 'warm') { // started before there was a request
    for (const name of process.argv.slice(2)) {
      try {
        require(name);
      } catch { /* the code that wants it is told */ }
    }
    send('ready', '1');
  }
  const request = receive();
  Object.assign(process.env, request.env);
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
      .filter((line) => !/^\s+at /.test(line) || !/(\[eval\]|node:internal|node:vm|node:repl|node:async_hooks|node:events|\(node:domain|evalmachine)/.test(line))
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

  // Files that come with a request, before its code runs.
  function writeFiles(from) {
    for (const [given, encoding] of [[from.files, 'utf8'], [from.files_base64, 'base64']]) {
      for (const [name, text] of Object.entries(given ?? {})) {
        fs.mkdirSync(path.dirname(path.resolve(name)), { recursive: true });
        fs.writeFileSync(name, text, encoding);
      }
    }
  }

  async function runOnce() {
    writeFiles(request);
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

  // A context: one request after another, in one global scope, run by node's own REPL, which knows `await` and
  // keeps what let, const and class declare. Every line of results begins with the id of its execution.
  function serve() {
    const { PassThrough } = require('stream');
    const { AsyncLocalStorage } = require('async_hooks');
    const { subarray } = Uint8Array.prototype;
    const { openSync, closeSync, readdirSync, statSync } = fs;
    const { cpuUsage, resourceUsage, stderr } = process;
    const concat = Buffer.concat;
    const later = setImmediate;
    const now = Date.now;
    // Both are opened anew, so that no child gets them; standard input is empty.
    const results = openSync('/proc/self/fd/3', 'w');
    closeSync(3);
    const channel = new (require('net').Socket)({ fd: openSync('/proc/self/fd/0', 'r'), readable: true, writable: false });
    closeSync(0);
    openSync('/dev/null', 'r');
    const sink = new PassThrough();
    sink.resume();
    const server = require('repl').start({ prompt: '', input: new PassThrough(), output: sink, useGlobal: true, terminal: false });
    const evaluate = server.eval;
    const Script = vm.Script;
    const cells = new AsyncLocalStorage();
    let input = Buffer.alloc(0);
    let count = 0;
    let current = null;
    globalThis.require = ownRequire;
    RESULT = results;
    mark = request.id;

    function hasOutputs(since, place = '/workspace/outputs', left = { count: 1000 }) {
      try {
        return readdirSync(place, { withFileTypes: true }).some((entry) => {
          const name = `${place}/${entry.name}`;
          if (left.count-- <= 0) return true;
          return entry.isDirectory() ? hasOutputs(since, name, left) : statSync(name).mtimeMs >= since;
        });
      } catch {
        return false;
      }
    }

    function complete(cell, failure, value) {
      if (current !== cell) return;
      if (failure !== undefined) {
        sendError(failure);
      } else if (value !== undefined) {
        show(value);
        let text = 'null';
        try {
          text = encode(value, limits.result);
        } catch { /* it was shown */ }
        send('result', text);
      }
      const used = cpuUsage(cell.before);
      for (const [name, old] of Object.entries(cell.kept)) {
        if (old === undefined) delete process.env[name];
        else process.env[name] = old;
      }
      current = null;
      send('done', `{"cpu_us":${used.user + used.system},"memory":${resourceUsage().maxRSS * 1024},"outputs":${hasOutputs(cell.since)}}`);
      take();
    }

    // After what its own promises have to say: a rejection that nobody handles is its error.
    function finish(cell, failure, value) {
      cell.failure ??= failure;
      later(() => complete(cell, cell.failure, value));
    }

    function run(next) {
      const cell = { id: next.id, number: ++count, failure: undefined, since: now() - 20, before: cpuUsage(), kept: {} };
      current = cell;
      mark = next.id;
      let code = next.code;
      try {
        for (const [name, value] of Object.entries(next.env ?? {})) {
          cell.kept[name] = process.env[name];
          process.env[name] = value;
        }
        writeFiles(next);
        if (next.path) code = fs.readFileSync(next.path, 'utf8');
      } catch (failure) {
        finish(cell, failure);
        return;
      }
      cells.run(cell, () => evaluateCell(cell, code, next.path ?? `cell ${cell.number}`));
    }

    // As a script of its own it can be interrupted; only what awaits something needs the REPL.
    function evaluateCell(cell, code, filename) {
      let script;
      try {
        script = compile(code, filename);
      } catch (failure) {
        if (!/await/.test(code)) {
          finish(cell, failure);
          return;
        }
        evaluate.call(server, `${code}\n`, server.context, filename, (failure, value) => {
          finish(cell, failure ? failure.err ?? failure : undefined, value);
        });
        return;
      }
      let value, failure;
      try {
        value = script.runInThisContext({ breakOnSigint: true });
      } catch (thrown) {
        failure = thrown ?? new Error('nothing was thrown');
      }
      listen();
      if (failure && failure.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') failure = interruption();
      finish(cell, failure, value);
    }

    // What looks like an object is one, not a block.
    function compile(code, filename) {
      const options = { filename, importModuleDynamically: link };
      if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
        try {
          return new Script(`(${code.trim()}\n)`, options);
        } catch { /* it is a block */ }
      }
      return new Script(code, options);
    }

    // A script that can be interrupted takes the signal over, and node drops all listeners before: an interrupt in
    // between would end the process. So there is a listener that node does not know of, set up anew after each.
    const onInterrupt = () => {
      if (current) complete(current, interruption());
    };
    let listener;
    try {
      listener = new (process.binding('signal_wrap').Signal)();
      listener.unref();
      listener.onsignal = onInterrupt;
    } catch {
      process.on('SIGINT', onInterrupt);
    }

    function listen() {
      if (!listener) return;
      listener.stop();
      listener.start(2);
    }

    function interruption() {
      return Object.assign(new Error('interrupted'), { name: 'KeyboardInterrupt', stack: 'KeyboardInterrupt: interrupted' });
    }

    // One at a time: the next waits for the end of the one before.
    function take() {
      if (current || input.length < 10) return;
      const size = Number(input.subarray(0, 10).toString());
      if (input.length < 10 + size) return;
      const next = parse(input.subarray(10, 10 + size).toString());
      input = input.subarray(10 + size);
      run(next);
    }

    // What nobody catches ends the execution that it comes from. What a timer or promise of an earlier one throws is
    // no error of the one that runs.
    function blame(failure) {
      const cell = cells.getStore();
      if (cell && cell === current) finish(cell, failure ?? new Error('nothing was thrown'));
      else writeSync(2, `uncaught in the background: ${stackOf(failure)}\n`);
    }

    process.removeAllListeners('uncaughtException');
    process.removeAllListeners('unhandledRejection');
    process.on('uncaughtException', blame);
    process.on('unhandledRejection', blame);
    server._domain.removeAllListeners('error');
    server._domain.on('error', blame);
    listen();
    channel.on('data', (data) => { input = concat([input, data]); take(); });
    channel.on('end', () => exit(0));
    send('done', '{}');
  }

  if (request.serve) {
    serve();
    return;
  }
  process.on('uncaughtException', (failure) => fail(failure));
  process.on('unhandledRejection', (failure) => fail(failure));
  runOnce().catch((failure) => fail(failure));
})();
