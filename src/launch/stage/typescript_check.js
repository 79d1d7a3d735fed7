// SPDX-License-Identifier: Apache-2.0
// Parses a file of TypeScript by what the app or this node has for it. Errors are told as "file:line:column: ERROR: what",
// and it ends with 1; with 90 if nothing here can parse it.
'use strict';
const fs = require('node:fs');
const nodeModule = require('node:module');
const path = require('node:path');

const [, , file] = process.argv;
const text = fs.readFileSync(file, 'utf8');

/** A package of the app, or one that only another package of it has; undefined: it is not there. */
function find(name, ...owners) {
  try {
    let from = path.resolve('package.json');
    for (const owner of owners) from = nodeModule.createRequire(from).resolve(`${owner}/package.json`);
    return nodeModule.createRequire(from)(name);
  } catch {
    return undefined;
  }
}

function byTypescript() {
  const typescript = find('typescript');
  if (typeof typescript?.transpileModule !== 'function') return undefined;
  const { diagnostics } = typescript.transpileModule(text, { fileName: file, reportDiagnostics: true, compilerOptions: { target: typescript.ScriptTarget.ESNext, module: typescript.ModuleKind.ESNext } });
  return diagnostics.filter((one) => one.file).map((one) => {
    const { line, character } = one.file.getLineAndCharacterOfPosition(one.start ?? 0);
    return { line: line + 1, column: character + 1, what: typescript.flattenDiagnosticMessageText(one.messageText, ' ') };
  });
}

function byEsbuild() {
  const esbuild = find('esbuild') ?? find('esbuild', 'tsx') ?? find('esbuild', 'vite');
  if (!esbuild) return undefined;
  try {
    // Decorators of parameters are an error to it unless it is told of them.
    esbuild.transformSync(text, { sourcefile: file, loader: file.endsWith('x') ? 'tsx' : 'ts', logLevel: 'silent', tsconfigRaw: '{"compilerOptions":{"experimentalDecorators":true}}' });
    return [];
  } catch (error) {
    if (!error.errors) return undefined; // its program cannot be run here
    return error.errors.map(({ text: what, location }) => ({ line: location?.line ?? 1, column: (location?.column ?? 0) + 1, what }));
  }
}

function byNode() {
  if (typeof nodeModule.stripTypeScriptTypes !== 'function') return undefined;
  try {
    nodeModule.stripTypeScriptTypes(text, { mode: 'transform' });
    return [];
  } catch (error) {
    if (error.code !== 'ERR_INVALID_TYPESCRIPT_SYNTAX') return undefined;
    const [, line = 1] = /^[^\n]*:(\d+)\n/.exec(error.stack) ?? [];
    return [{ line, column: 1, what: error.message.trim().split('\n')[0] }];
  }
}

const errors = byTypescript() ?? byEsbuild() ?? byNode();
if (!errors) process.exit(90);
for (const { line, column, what } of errors.slice(0, 10)) console.error(`${file}:${line}:${column}: ERROR: ${what}`);
process.exitCode = errors.length > 0 ? 1 : 0;
