// SPDX-License-Identifier: Apache-2.0
//
// Runs JavaScript for an execution, and TypeScript if the first argument says so. The daemon gives this text to `node -e` and writes a request to standard
// input: ten digits, the length of a JSON document, and that document. Results go to descriptor 3 as lines of
// JSON; runtime/python.py describes them. All that is needed after the code is looked up before it.
'use strict';
(() => {
  const fs = require('fs');
  const path = require('path');
  const vm = require('vm');
  const util = require('util');
  const { createRequire } = require('module');
  const { writeSync, readSync, readdirSync } = fs;
  const { cpuUsage, resourceUsage } = process;
  const block = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  const { stringify, parse } = JSON;
  const { max } = Math;
  const Range = RangeError;
  const Failure = Error;
  const { from: bytesOf, byteLength, prototype: BufferMethods } = Buffer;
  const { isView } = ArrayBuffer;
  const { set, apply: call } = Reflect;
  const { indexOf, replace } = String.prototype;
  const Text = String;
  const once = process.once.bind(process);
  const { from: listOf } = Array;
  const inspect = util.inspect;
  const exit = process.reallyExit.bind(process);
  const words = process.argv.slice(1);
  const isTypeScript = words[0] === 'typescript' && Boolean(words.shift());
  const isWarm = words.shift() === 'warm'; // it is started before there is a request
  let RESULT = 3;
  let mark = ''; // before each line, in a context
  const TEXT_MAX = 65536;
  const NAME_MAX = 256; // of the type of an error
  const DEPTH = 100;

  // JSON without halves of letters beyond 16 bits, which strings of JavaScript may have and nobody else can read.
  const wellFormed = (text) => (call(indexOf, text, ['\\ud']) < 0 ? text
    : call(replace, text, [/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === '\\\\' ? found : '\ufffd')]));
  const lineOf = (kind, text) => `${mark && `\n${mark} `}{"${kind}":${wellFormed(text)}}\n`;
  const send = (kind, text) => putLine(lineOf(kind, text));
  const noteCut = (part) => send('cut', `"${part}"`);

  function cutText(text, part, most = TEXT_MAX) {
    if (text.length <= most) return text;
    noteCut(part);
    return `${text.slice(0, most)}...`;
  }

  function putLine(line) {
    const data = bytesOf(line);
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

  const tooLarge = (limit) => Object.assign(new Failure(`the result is larger than ${limit} bytes of JSON`), { name: 'TooLarge', stack: '' });

  // What JSON.stringify does not know.
  function replaceIn(holder, key, value, limit) {
    const held = holder[key];
    if (isView(held) && !(held instanceof DataView)) {
      if (held.byteLength > 4 * limit) throw tooLarge(limit); // no number has less than two of eight bytes as text
      return held instanceof Uint8Array ? bytesOf(held).toString('base64') : listOf.call(Array, held, Number);
    }
    if (typeof value === 'bigint') return value.toString();
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return { type: value.name, message: value.message };
    if (typeof value === 'function' || typeof value === 'symbol') return String(value).slice(0, TEXT_MAX);
    return value;
  }

  // How deep JSON is nested.
  function depthOf(text) {
    let deepest = 0, depth = 0, isText = false;
    for (let at = 0; at < text.length; at++) {
      const letter = text.charCodeAt(at);
      if (isText && letter === 92) at++; // what is escaped
      else if (letter === 34) isText = !isText;
      else if (!isText && (letter === 91 || letter === 123)) deepest = max(deepest, ++depth);
      else if (!isText && (letter === 93 || letter === 125)) depth--;
    }
    return deepest;
  }

  // What is much too large is noticed before it has been made text: it would cost the interpreter its memory. For the same
  // reason the toJSON of Buffer, which makes a number of each byte, has to wait.
  function encode(value, limit) {
    const tooDeep = () => new Range(`the result is nested more than ${DEPTH} deep`);
    const { toJSON } = BufferMethods;
    let text, room = limit;
    const replaceSome = function (key, given) {
      const made = replaceIn(this, key, given, limit);
      if (typeof made === 'string') room -= made.length;
      else if (made !== undefined) room--;
      if (room < 0) throw tooLarge(limit);
      return made;
    };
    try {
      set(BufferMethods, 'toJSON', undefined);
      text = value === undefined ? 'null' : stringify(value, replaceSome) ?? 'null';
    } catch (failure) {
      throw failure instanceof Range && /call stack/.test(failure.message) ? tooDeep() : failure;
    } finally {
      set(BufferMethods, 'toJSON', toJSON);
    }
    if (byteLength(text) > limit) throw tooLarge(limit);
    if (text.length > 2 * DEPTH && depthOf(text) > DEPTH) throw tooDeep();
    return text;
  }

  function textOf(value) {
    try {
      const text = inspect(value, { depth: 4, maxStringLength: TEXT_MAX });
      if (typeof value === 'string' && value.length > TEXT_MAX) noteCut('results');
      return cutText(text, 'results');
    } catch {
      return typeof value;
    }
  }

  function mimeOf(value) {
    const found = {};
    const given = value && typeof value === 'object' && value['text/html'] ? value : null;
    if (given) return given;
    if (value && typeof value.toHTML === 'function') {
      try {
        found['text/html'] = String(value.toHTML());
      } catch { /* it is shown as text */ }
    }
    found['text/plain'] = typeof value === 'string' ? cutText(value, 'results') : textOf(value);
    return found;
  }

  // --- TypeScript ---

  // What makes JavaScript of TypeScript, the first that is there: each gives a function of the code that returns it as
  // JavaScript, with a source map.
  const TRANSPILERS = {
    typescript: (tool) => (code, fileName) => {
      const { ScriptTarget, ModuleKind } = tool;
      const made = tool.transpileModule(code, { fileName, reportDiagnostics: true, compilerOptions: { target: ScriptTarget.ES2022, module: ModuleKind.ESNext, sourceMap: true } });
      const [wrong] = made.diagnostics ?? [];
      if (wrong) {
        const line = code.slice(0, wrong.start).split('\n').length;
        const failure = new SyntaxError(`${tool.flattenDiagnosticMessageText(wrong.messageText, '\n')} (${fileName}, line ${line})`);
        failure.stack = `${fileName}:${line}\n${code.split('\n')[line - 1]}\n\nSyntaxError: ${failure.message}`;
        throw failure;
      }
      return { code: made.outputText.replace(/^\/\/# sourceMappingURL=.*$|^export \{\};$/gm, ''), map: made.sourceMapText };
    },
    esbuild: (tool) => (code, sourcefile) => {
      try {
        const { code: made, map } = tool.transformSync(code, { loader: 'ts', sourcefile, sourcemap: 'external', target: 'es2022', logLevel: 'silent' });
        return { code: made, map };
      } catch (failure) {
        const [{ text, location }] = failure.errors ?? [{ text: failure.message }];
        throw Object.assign(new SyntaxError(`${text} (${sourcefile}, line ${location?.line})`), { stack: `${sourcefile}:${location?.line}\n${location?.lineText}\n\nSyntaxError: ${text}` });
      }
    },
  };
  const sourceLines = new Map(); // by file: of each line that was made, [column, line of the source]
  let transpile;

  function findTranspiler(directory) {
    const paths = [directory, '/usr/lib', '/usr/local/lib', path.resolve(process.execPath, '../../lib')];
    for (const [name, adapt] of Object.entries(TRANSPILERS)) {
      for (const place of [() => require.resolve(name, { paths }), () => `/usr/share/nodejs/${name}`]) {
        try {
          return adapt(require(place()));
        } catch { /* it is elsewhere, or not there */ }
      }
    }
    const { stripTypeScriptTypes } = require('module');
    return stripTypeScriptTypes && ((code) => ({ code: stripTypeScriptTypes(code) }));
  }

  // The numbers of a source map are differences, five bits in each letter, the lowest first, with the sign at the end.
  function readMap(text) {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    let line = 0;
    return parse(text).mappings.split(';').map((group) => {
      let column = 0;
      return group.split(',').filter(Boolean).map((segment) => {
        const numbers = [];
        let value = 0, shift = 0;
        for (const letter of segment) {
          const digit = digits.indexOf(letter);
          value += (digit & 31) << shift;
          shift = digit & 32 ? shift + 5 : 0;
          if (shift === 0) {
            numbers.push(value & 1 ? -(value >> 1) : value >> 1);
            value = 0;
          }
        }
        column += numbers[0];
        line += numbers[2] ?? 0;
        return [column, line + 1];
      });
    });
  }

  // The code as JavaScript; its own lines are found again in tracebacks.
  function translate(code, file, directory) {
    if (!isTypeScript) return code;
    transpile ??= findTranspiler(directory);
    if (!transpile) {
      const failure = new Error('the sandbox has nothing that makes JavaScript of TypeScript: install typescript or esbuild there, or take a template with node 22.13 or newer');
      failure.name = 'LanguageMissing';
      failure.stack = '';
      throw failure;
    }
    const { code: made, map } = transpile(code, file);
    if (map) sourceLines.set(file, readMap(map));
    return made;
  }

  function withSourceLines(text) {
    for (const [file, lines] of sourceLines) {
      const parts = text.split(`${file}:`);
      text = parts[0] + parts.slice(1).map((part) => {
        const [all, line, column] = /^(\d+)(?::(\d+))?/.exec(part) ?? [''];
        const found = all && lines[line - 1]?.findLast(([from]) => from < (column ?? Infinity));
        return `${file}:${found ? found[1] + part.slice(all.length) : part}`;
      }).join('');
    }
    return text;
  }

  if (isWarm) {
    for (const name of words) {
      try {
        require(name);
      } catch { /* the code that wants it is told */ }
    }
    if (isTypeScript) transpile = findTranspiler(process.cwd());
    transpile?.('const warm: number = 1;', 'main.ts');
    send('ready', '1');
  }
  // What a handler took, and whether there may be files of it; nothing is promised of a sandbox that stays.
  function spent() {
    if (!request.passing) return '1';
    const used = cpuUsage.call(process, before);
    let outputs = false;
    try {
      outputs = readdirSync('/workspace/outputs').length > 0;
    } catch { /* there are none */ }
    return `{"cpu_us":${used.user + used.system},"memory":${resourceUsage.call(process).maxRSS * 1024},"outputs":${outputs}}`;
  }

  const request = receive();
  const before = isWarm ? cpuUsage() : undefined;
  Object.assign(process.env, request.env);
  const { limits } = request;

  function show(value) {
    try {
      send('display', encode(mimeOf(value), limits.display));
    } catch (failure) {
      noteCut('results');
      send('display', `{"text/plain":"(${failure instanceof Failure && failure.name === 'TooLarge' ? 'too large to be shown' : 'it cannot be shown'})"}`);
    }
  }

  // Only the lines of the user's own code: those of this file and of node say nothing to them.
  function stackOf(failure) {
    const lines = String(failure && failure.stack ? failure.stack : failure).split('\n');
    const text = lines
      .filter((line) => !/^\s+at /.test(line) || !/(\[eval\]|node:internal|node:vm|node:repl|node:async_hooks|node:events|\(node:domain|evalmachine)/.test(line))
      .join('\n');
    return cutText(withSourceLines(text), 'error');
  }

  // A text of an error, or else another: anything may be thrown, also what fails when it is looked at.
  function attempt(make, otherwise) {
    try {
      return make();
    } catch {
      return otherwise;
    }
  }

  function sendError(failure, type) {
    const isError = attempt(() => failure && typeof failure === 'object' && 'message' in failure, false);
    const name = type || attempt(() => isError && failure.name && Text(failure.name), '') || 'Error';
    const said = attempt(() => (isError || typeof failure === 'string' ? Text(isError ? failure.message : failure) : textOf(failure)), '');
    const traceback = attempt(() => stackOf(failure), '');
    // Put together by hand: code may have given all objects a toJSON.
    send('error', `{"type":${stringify(cutText(name, 'error', NAME_MAX))},"message":${stringify(cutText(said, 'error'))},"traceback":${stringify(traceback)}}`);
  }

  function fail(failure, type) {
    sendError(failure, type);
    exit(1);
  }

  globalThis.display = (...values) => values.forEach(show);

  // The environment as AWS Lambda has it, but for what the sandbox or the request says itself.
  function becomeLambda() {
    const name = request.name || 'handler', version = request.version || '$LATEST';
    const day = new Date().toISOString().slice(0, 10).replaceAll('-', '/');
    const given = {
      _HANDLER: request.handler || 'main.handler',
      LAMBDA_TASK_ROOT: directory,
      AWS_REGION: 'local',
      AWS_DEFAULT_REGION: 'local',
      AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${process.versions.node.split('.')[0]}.x`,
      AWS_LAMBDA_FUNCTION_NAME: name,
      AWS_LAMBDA_FUNCTION_VERSION: version,
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(request.memory_mb || 0),
      AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
      AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${name}`,
      AWS_LAMBDA_LOG_STREAM_NAME: `${day}/[${version}]${request.id}`,
    };
    for (const [variable, value] of Object.entries(given)) process.env[variable] ??= value;
    globalThis.awslambda = awslambda;
  }

  function contextOf(settle) {
    const end = Date.now() + request.timeout_ms;
    return {
      functionName: request.name || 'handler',
      functionVersion: request.version || '$LATEST',
      invokedFunctionArn: `arn:aws:lambda:local:0:function:${request.name || 'handler'}`,
      memoryLimitInMB: String(request.memory_mb || 0),
      awsRequestId: request.id,
      logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME ?? '',
      logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME ?? '',
      identity: undefined,
      clientContext: undefined,
      callbackWaitsForEmptyEventLoop: true,
      getRemainingTimeInMillis: () => Math.max(0, end - Date.now()),
      succeed: (value) => settle(null, value),
      fail: (failure) => settle(failure || new Error('failed')),
      done: settle,
    };
  }

  // What it returns, or what its promise becomes. If it returns nothing, then what it calls back with, once nothing is left
  // to wait for (callbackWaitsForEmptyEventLoop), or null if it never does.
  function callHandler(handler) {
    let settle, answer;
    const settled = new Promise((resolve, reject) => {
      settle = (failure, value) => (failure ? reject(failure) : resolve(value));
    });
    const context = contextOf(settle);
    const callBack = (failure, value) => {
      if (failure || !context.callbackWaitsForEmptyEventLoop) settle(failure, value);
      else answer ??= value;
    };
    if (streaming.has(handler)) return collect(handler, context);
    const value = handler(request.event, context, callBack);
    if (value && typeof value.then === 'function')
      value.then((given) => settle(null, given === undefined ? answer : given), (failure) => settle(failure || new Error('nothing was thrown')));
    else if (value !== undefined) settle(null, value);
    else once('beforeExit', () => settle(null, answer));
    return settled;
  }

  // Handlers that write a stream: what they wrote is their answer, with what HttpResponseStream was told of it.
  const streaming = new WeakSet();
  const awslambda = {
    streamifyResponse(handler) {
      streaming.add(handler);
      return handler;
    },
    HttpResponseStream: {
      from: (stream, metadata) => Object.assign(stream, { metadata: { ...stream.metadata, ...metadata } }),
    },
  };

  async function collect(handler, context) {
    const { Writable } = require('stream');
    const chunks = [];
    let room = limits.result;
    const stream = new Writable({
      write(chunk, encoding, done) {
        chunks.push(chunk);
        room -= chunk.length;
        done(room < 0 ? tooLarge(limits.result) : null);
      },
    });
    stream.setContentType = (type) => awslambda.HttpResponseStream.from(stream, { statusCode: 200, headers: { 'Content-Type': type } });
    const ended = new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject));
    ended.catch(() => {});
    await Promise.race([handler(request.event, stream, context), ended.then(() => new Promise(() => {}))]);
    // What it pipes may still be on its way when it returns.
    if (!stream.writableEnded) once('beforeExit', () => stream.end());
    await ended;
    const data = Buffer.concat(chunks);
    const isText = Buffer.from(data.toString()).equals(data);
    const body = data.toString(isText ? 'utf8' : 'base64');
    return stream.metadata ? { ...stream.metadata, body, isBase64Encoded: !isText } : body;
  }

  const directory = request.path ? path.dirname(path.resolve(request.path)) : process.cwd();
  const file = request.path || (isTypeScript ? 'main.ts' : 'main.js');
  const ownRequire = createRequire(path.join(directory, 'main.js'));

  // A module of the code's own imports, as a module of node's vm.
  async function link(specifier, from) {
    const isFile = /^[./]/.test(specifier);
    const typed = isFile && isTypeScript && findTyped(path.resolve(path.dirname(path.resolve(from?.identifier ?? file)), specifier));
    if (typed) return typedModule(typed);
    const target = isFile ? require('url').pathToFileURL(path.resolve(directory, specifier)).href : resolveBare(specifier);
    const found = await import(target);
    const names = Object.keys(found);
    const module = new vm.SyntheticModule(names, () => names.forEach((name) => module.setExport(name, found[name])));
    await module.link(() => {});
    await module.evaluate();
    return module;
  }

  const typedModules = new Map();

  function findTyped(target) {
    return ['', '.ts', '.mts', '/index.ts'].map((ending) => target + ending).concat(target.replace(/js$/, 'ts'))
      .find((name) => /ts$/.test(name) && fs.existsSync(name));
  }

  // A file of TypeScript beside the code; whoever imports it links it.
  function typedModule(name) {
    if (!typedModules.has(name)) typedModules.set(name, new vm.SourceTextModule(translate(fs.readFileSync(name, 'utf8'), name, path.dirname(name)), { identifier: name, importModuleDynamically: linkNow }));
    return typedModules.get(name);
  }

  async function linkNow(specifier, from) {
    const module = await link(specifier, from);
    if (module.status === 'unlinked') await module.link(link);
    if (module.status === 'linked') await module.evaluate();
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

  // Where the last expression of a module begins, or -1: the rest from there on is one, and all before it is whole.
  // A beginning that could belong to the line before is left alone, and so is what declares something.
  function lastExpression(code) {
    const compiles = (text) => {
      try {
        return Boolean(new vm.SourceTextModule(text));
      } catch {
        return false;
      }
    };
    const end = code.trimEnd().length;
    for (let at = end, tries = 0; at > 0 && tries < 20; tries++) {
      at = Math.max(code.lastIndexOf('\n', at - 1), code.lastIndexOf(';', at - 1), 0);
      const begin = at === 0 ? 0 : at + 1;
      const last = code.slice(begin, end).trim().replace(/;+$/, '');
      if (/^export\b/.test(last)) return -1;
      if (!last || /^([([`+\-*/.,?&|<>=]|(async\s+)?function\b|class\b|\{|import\b\s*[^(\s])/.test(last)) continue;
      if (compiles(`(${last}\n)`) && compiles(code.slice(0, begin))) return begin;
    }
    return -1;
  }

  // Of a module, as of a script, the value of the last expression is taken, and told to `onValue`.
  async function runModule(code, onValue) {
    const begin = lastExpression(code);
    const source = begin < 0 ? code : `${code.slice(0, begin)}import.meta.result((${code.slice(begin).trimEnd().replace(/;+$/, '')}\n));`;
    globalThis.require = ownRequire;
    const module = new vm.SourceTextModule(source, {
      identifier: file,
      importModuleDynamically: linkNow,
      initializeImportMeta: (meta) => {
        meta.url = require('url').pathToFileURL(path.resolve(file)).href;
        meta.result = onValue;
      },
    });
    await module.link(link);
    await module.evaluate();
    return module.namespace;
  }

  // Whether it has an `await (x)` that a plain script would take for the call of a function. In a function of a module, where
  // await is a word of the language, such an await is wrong unless it stands in an asynchronous function.
  function awaitsCall(code) {
    if (!/\bawait\s*[([`+\-/]/.test(code)) return false;
    try {
      return !new vm.SourceTextModule(`function f() {\n${code}\n}`);
    } catch (failure) {
      return /await|^Unexpected reserved word/.test(failure.message);
    }
  }

  // A plain script: its completion value is that of its last expression.
  function runScript(code) {
    if (awaitsCall(code)) throw new SyntaxError('await is only valid in a module');
    const script = new vm.Script(code, { filename: file, importModuleDynamically: linkNow });
    return script.runInThisContext();
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
    const code = translate(request.path ? fs.readFileSync(request.path, 'utf8') : request.code, file, directory);
    const name = (request.handler || 'handler').split('.').pop();
    const module = { exports: {} };
    Object.assign(globalThis, { require: ownRequire, module, exports: module.exports, __filename: path.resolve(file), __dirname: directory });
    let value, found;
    if ('handler' in request || 'event' in request || code.includes(name) || /\b(module\.exports|export\s+default)\b/.test(code)) becomeLambda();
    process.argv.length = 1;
    process.argv.push(file);
    send('begin', '1');
    try {
      value = runScript(code);
      found = (module.exports && module.exports[name]) || (/^[A-Za-z_$][\w$]*$/.test(name) && declared(name));
      if (typeof module.exports === 'function' && !found) found = module.exports;
    } catch (failure) {
      if (!isModule(failure)) throw failure;
      const space = await runModule(code, (last) => { value = last; });
      found = space[name] || (space.default && space.default[name]) || (typeof space.default === 'function' ? space.default : undefined) || module.exports[name];
    }
    if (typeof found === 'function') {
      send('begin', '"handler"');
      const result = encode(await callHandler(found), limits.result);
      putLine(lineOf('result', result) + lineOf('done', spent()));
      while (request.passing) block(); // the sandbox ends when the answer is sent; to leave would cost those who wait
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
    const { openSync, closeSync, fstatSync, statSync } = fs;
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
    const streams = [process.stdout, process.stderr];
    const outputs = [1, 2].map((fd) => openSync(`/proc/self/fd/${fd}`, 'w'));
    const prints = { ...console };
    const { hasOwn } = Object;
    globalThis.require = ownRequire;
    RESULT = results;
    mark = request.id;

    function hasOutputs(since, place = '/workspace/outputs', left = { count: 1000 }) {
      try {
        return readdirSync(place, { withFileTypes: true }).some((entry) => {
          const name = `${place}/${entry.name}`;
          if (left.count-- <= 0) return true;
          return entry.isDirectory() ? hasOutputs(since, name, left) : statSync(name).ctimeMs >= since;
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

    // What an execution closed or replaced of the output is there again for the next.
    function restoreOutput() {
      for (const [i, stream] of streams.entries()) {
        try {
          fstatSync(i + 1);
        } catch {
          const fd = openSync(`/proc/self/fd/${outputs[i]}`, 'w');
          if (fd !== i + 1) closeSync(fd);
        }
        if (hasOwn(stream, 'write')) delete stream.write;
      }
      for (const name in prints) if (typeof console[name] !== typeof prints[name]) console[name] = prints[name];
    }

    function run(next) {
      restoreOutput();
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
        code = translate(code, next.path ?? `cell ${cell.number}`, process.cwd());
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
        if (!awaitsCall(code)) script = compile(code, filename);
      } catch (failure) {
        if (/import statement/.test(failure.message)) code = awaitImports(code);
        if (!/await/.test(code)) {
          finish(cell, failure);
          return;
        }
      }
      if (!script) {
        evaluate.call(server, `${code}\n`, server.context, filename, (failure, value) => {
          finish(cell, failure ? tidy(failure.err ?? failure) : undefined, value);
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
      if (failure && failure.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
        failure = interruption();
        streams.forEach(mend);
      }
      finish(cell, failure, value);
    }

    // Code that is interrupted while it writes leaves a stream that waits for the end of this write, and writes no more.
    function mend(stream) {
      const state = stream._writableState;
      if (!state || (!state.writing && state.length === 0)) return;
      Object.assign(state, { writing: false, bufferProcessing: false, corked: 0, length: 0, writelen: 0, writecb: null, needDrain: false, afterWriteTickInfo: null });
      Object.assign(state, { buffered: [], bufferedIndex: 0, allBuffers: true, allNoop: true });
    }

    // Import statements, which only modules have, as what says the same here: each stays on its lines.
    function awaitImports(code) {
      return code.replace(/^([ \t]*)import\b\s*(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|(\{[^}]*\})\s*)?(?:\bfrom\s*)?((['"])[^'"\n]+\6)[ \t]*;?/gm, (all, indent, main, space, names, from) => {
        const lines = '\n'.repeat(all.split('\n').length - 1);
        const parts = [];
        if (space) parts.push(`${space} = await import(${from})`);
        if (names) parts.push(`${names.replace(/\s+/g, ' ').replace(/ as /g, ': ')} = await import(${from})`);
        if (main) parts.push(`{ default: ${main} } = await import(${from})`);
        return `${indent}${parts.length > 0 ? `var ${parts.join(', ')}` : `await import(${from})`};${lines}`;
      });
    }

    // The REPL puts the line and a mark before the message.
    function tidy(failure) {
      if (!(failure instanceof SyntaxError)) return failure;
      const lines = failure.message.trim().split('\n').filter((line) => line.trim());
      const message = lines.length > 1 && lines.findIndex((line) => /^\s*\^+\s*$/.test(line));
      if (message === false || message < 0) return failure;
      return Object.assign(failure, { message: lines.slice(message + 1).join(' '), stack: `SyntaxError: ${lines.slice(message + 1).join(' ')}` });
    }

    // What looks like an object is one, not a block.
    function compile(code, filename) {
      const options = { filename, importModuleDynamically: linkNow };
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
    // node tells of signals after all else: an interrupt of what ran before must not meet what comes now.
    channel.on('data', (data) => { input = concat([input, data]); later(() => later(take)); });
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
