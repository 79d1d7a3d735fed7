// SPDX-License-Identifier: Apache-2.0
// What executions show and give back: figures, tables and numbers, what notebooks are used to, and what is cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';

const { api, finish } = await suite('execution_results');
const { id } = await api.create({});
const PLOTS = { MATPLOTLIBRC: '/usr/share/matplotlib/mpl-data/matplotlibrc' };
const CHART = 'application/vnd.sandlot.chart+json';

async function run(body, status = 'succeeded', at = `/v1/sandboxes/${id}/executions`) {
  const answer = await api.request('POST', at, { json: { timeout_ms: 120000, ...body } });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.status, status, JSON.stringify(answer.json).slice(0, 4000));
  return answer.json;
}

const python = (code, more, status) => run({ language: 'python', code, ...more }, status);
const javascript = (code, more, status) => run({ language: 'javascript', code, ...more }, status);

async function context(language, env) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language, env } });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

const notebook = await context('python', PLOTS);
const cell = (code, status) => run({ context_id: notebook, code }, status);
const points = (execution) => execution.results.map((one) => one[CHART]?.elements?.[0].points);

// Figures -------------------------------------------------------------------------------------

test('each plt.show() shows what is open then, in contexts, scripts and handlers', async () => {
  const twice = 'import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4])\nplt.show()\nprint("between")\nplt.plot([5, 6], [7, 8])\nplt.show()\n';
  const two = [[[1, 3], [2, 4]], [[5, 7], [6, 8]]];
  assert.deepEqual(points(await cell(twice)), two);
  const script = await python(twice, { env: PLOTS });
  assert.deepEqual([points(script), script.stdout, script.stderr], [two, 'between\n', '']);
  const handler = await python(`def handler(event):\n    ${twice.trim().replaceAll('\n', '\n    ')}\n    plt.figure()\n    plt.plot([9], [9])\n    return "drawn"`, { env: PLOTS });
  assert.deepEqual([points(handler), handler.result], [[...two, [[9, 9]]], 'drawn']);
  const open = await cell('one, a = plt.subplots()\na.plot([1], [1])\nother, b = plt.subplots()\nb.plot([2], [2])\nother');
  assert.deepEqual(points(open), [[[2, 2]], [[1, 1]]], 'the value of the last expression, then what else is open');
});

// Values --------------------------------------------------------------------------------------

test('values of numpy and pandas are results as JSON', async () => {
  const code = `import numpy as np, pandas as pd
def handler(event):
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, None]}, index=["x", "y"])
    return {"array": np.arange(4).reshape(2, 2), "int": np.int64(7), "float": np.float32(0.5), "nan": np.float64("nan"), "bool": np.bool_(True),
            "text": np.str_("t"), "time": np.datetime64("2026-01-02"), "frame": frame, "series": frame["a"], "stamp": pd.Timestamp("2026-01-02T03:04:05"),
            "nothing": pd.NaT, "index": frame.index, "row": frame.loc["x"], "kinds": pd.Series(["u", "v"], dtype="category")}`;
  const { result } = await python(code, { event: {} });
  assert.deepEqual(result, {
    array: [[0, 1], [2, 3]], int: 7, float: 0.5, nan: 'NaN', bool: true, text: 't', time: '2026-01-02',
    frame: { index: ['x', 'y'], columns: ['a', 'b'], data: [[1, 0.5], [2, 'NaN']] }, series: { x: 1, y: 2 }, stamp: '2026-01-02T03:04:05',
    nothing: 'NaT', index: ['x', 'y'], row: { a: 1, b: 0.5 }, kinds: { 0: 'u', 1: 'v' },
  });
  assert.deepEqual((await cell('import numpy as np\nnp.array([1.5, 2])')).result, [1.5, 2]);
  assert.deepEqual((await cell('import pandas as pd\npd.DataFrame({"n": [1]})')).result, { index: [0], columns: ['n'], data: [[1]] });
});

// Bounds --------------------------------------------------------------------------------------

test('what is cut is marked: long texts, many points and rows, large things', async () => {
  const long = await cell('"x" * 100000');
  assert.deepEqual([long.truncated, long.result.length, long.results[0]['text/plain'].length < 70000], [['results'], 100000, true]);
  assert.deepEqual((await cell('list(range(100000))')).truncated, ['results']);
  assert.deepEqual((await cell('class Long:\n    def __repr__(self): return "y" * 70000\ndisplay(Long())')).truncated, ['results']);
  assert.deepEqual((await python('class Long:\n    def __repr__(self): return "y" * 70000\ndef handler(e): return Long()')).truncated, ['result']);
  assert.deepEqual((await python('raise ValueError("z" * 70000)', {}, 'failed')).truncated, ['error']);
  const large = await cell('class Large:\n    def _repr_html_(self): return "h" * (5 << 20)\n    def _repr_markdown_(self): return "short"\n    def __repr__(self): return "large"\ndisplay(Large())\ndisplay({"text/html": "h" * (5 << 20)}, raw=True)');
  assert.deepEqual([large.results, large.truncated], [[{ 'text/markdown': 'short', 'text/plain': 'large' }, { 'text/plain': '(too large to be shown)' }], ['results']]);
  const chart = await cell('import matplotlib.pyplot as plt\nplt.plot(range(10001))\nplt.show()');
  assert.deepEqual([chart.truncated, points(chart)[0].length], [['results'], 10000]);
  assert.deepEqual((await cell('plt.plot(range(10000))\nplt.show()')).truncated, []);
  const frame = await cell('import pandas as pd\npd.DataFrame({"n": range(10001)})');
  assert.deepEqual([frame.truncated, frame.results[0]['application/vnd.sandlot.table+json'].rows], [['results'], 10001]);
  assert.deepEqual((await javascript('"x".repeat(100000)')).truncated, ['results']);
  assert.deepEqual((await javascript('display({ "text/html": "h".repeat(5 << 20) })')).truncated, ['results']);
  assert.deepEqual((await javascript('throw new Error("z".repeat(70000))', {}, 'failed')).truncated, ['error']);
  assert.deepEqual((await javascript('display("short")')).truncated, []);
});

test('results are measured in bytes, however their numbers are written anew', async () => {
  const wide = await python('def handler(e): return "\\u20ac" * 400000', {}, 'failed');
  assert.equal(wide.error.type, 'TooLarge');
  assert.equal((await python('def handler(e): return "\\u20ac" * 300000')).result.length, 300000);
  assert.equal((await python('def handler(e): return [0.1] * 200000')).result.length, 200000);
});

test('a result that is nested too deep is an error in both languages, and that of a script is text', async () => {
  const nest = (depth) => `exports.handler = () => { let value = 1; for (let i = 0; i < ${depth}; i++) value = i % 2 ? [value] : { '"]\\\\"': value }; return value; };`;
  for (const depth of [101, 3000]) {
    const failed = await javascript(nest(depth), {}, 'failed');
    assert.deepEqual([failed.error.type, failed.error.message, failed.result], ['RangeError', 'the result is nested more than 100 deep', null]);
  }
  let { result } = await javascript(nest(100));
  for (let i = 99; i >= 0; i--) result = i % 2 ? result[0] : result['"]\\"'];
  assert.equal(result, 1);
  const script = await javascript('let value = 1; for (let i = 0; i < 3000; i++) value = [value]; value');
  assert.deepEqual([script.result, Object.keys(script.results[0])], [null, ['text/plain']]);
});

test('a result that is far too large is refused before it takes the memory of its interpreter', async () => {
  const values = {
    python: ['"x" * (200 << 20)', 'b"x" * (200 << 20)', '["x" * 1000] * 1000000', 'range(10 ** 12)', '(n for n in __import__("itertools").count())', '__import__("numpy").zeros(1 << 27, dtype="u1")'],
    javascript: ['"x".repeat(500 << 20)', 'Array(2000000).fill("x".repeat(1000))', '({ data: Buffer.alloc(200 << 20) })', 'new Uint32Array(1e7)'],
  };
  for (const [language, codes] of Object.entries(values)) {
    for (const value of codes) {
      const { error, result } = await run({ language, code: language === 'python' ? `def handler(event): return ${value}` : `exports.handler = () => ${value};` }, 'failed');
      assert.deepEqual([error.type, error.message, result], ['TooLarge', 'the result is larger than 1048576 bytes of JSON', null], value);
    }
  }
  const shell = await run({ language: 'shell', code: 'handler() { head -c 20000000 /dev/zero > "$RESULT"; }' }, 'failed');
  assert.deepEqual([shell.error.type, shell.result], ['TooLarge', null]);
  assert.equal((await run({ language: 'shell', code: 'handler() { printf "\\377\\376" > "$RESULT"; }' })).result, '//4=', 'bytes that are no text');
});

test('an interpreter that ends itself for want of memory says so', async () => {
  const { error } = await javascript('const kept = []; for (;;) kept.push(new Array(1000).fill(kept.length + 0.5));', { env: { NODE_OPTIONS: '--max-old-space-size=32' } }, 'failed');
  assert.equal(error.type, 'OutOfMemory', JSON.stringify(error));
});

test('who is shown a generator leaves it to the code, and columns of one name are all told', async () => {
  const shown = await cell('numbers = (n for n in range(3))\nnumbers');
  assert.match(shown.results[0]['text/plain'], /generator/);
  assert.deepEqual((await cell('list(numbers)')).result, [0, 1, 2]);
  const twins = await cell('import pandas as pd\npd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"], index=["x", "y"])');
  assert.deepEqual([twins.results[0]['application/vnd.sandlot.table+json'], twins.results[0]['application/vnd.sandlot.data+json'], twins.stderr.includes('sandlot')],
    [{ index: ['x', 'y'], columns: ['a', 'a'], rows: 2, data: [[1, 2], [3, 4]] }, { a: [1, 3] }, false]);
});

// Notebooks -----------------------------------------------------------------------------------

test('a semicolon behind the last expression keeps its value to itself, but no figure', async () => {
  const quiet = await cell('5 ;  # not to be shown');
  assert.deepEqual([quiet.result, quiet.results], [null, []]);
  assert.equal((await cell('_')).result, 5);
  const drawn = await cell('import matplotlib.pyplot as plt\nplt.hist([1, 1, 2], bins=2);');
  assert.deepEqual([drawn.result, drawn.results.length, drawn.results[0][CHART].type], [null, 1, 'bar']);
  assert.equal((await cell('semicolon = ";"\nsemicolon')).result, ';');
});

test('what people type in notebooks beside Python: time, files, listings, help, other languages', async () => {
  const written = await cell('%%writefile /workspace/written.py\nimport sys\nleft = sys.argv[1:]');
  assert.equal(written.stdout, 'wrote /workspace/written.py\n');
  assert.deepEqual((await cell('%run /workspace/written.py one "two words"\nleft')).result, ['one', 'two words']);
  const timed = await cell('%%time\nproduct = 6 * 7\nproduct');
  assert.equal(timed.result, 42);
  assert.match(timed.stdout, /^CPU time: [\d.]+ s\nWall time: [\d.]+ s\n$/);
  assert.equal((await cell('%time product + 1')).result, 43);
  assert.match((await cell('%timeit -n 1\nproduct', 'failed')).error.message, /invalid syntax|not defined|unary/);
  assert.match((await cell('%timeit sum(range(10))')).stdout, /^[\d.e+]+ (ns|us|ms|s) per loop/);
  assert.equal((await cell('place = "/workspace"\n%ls {place}/written.py')).stdout, '/workspace/written.py\n');
  assert.equal((await cell('%pwd')).result, '/workspace');
  assert.match((await cell('def f(a):\n    "What it does."\n\nf?')).stdout, /f\(a\)\n.*What it does\./);
  assert.deepEqual((await cell('%%html\n<b>bold</b>')).results, [{ 'text/html': '<b>bold</b>', 'text/plain': '<b>bold</b>' }]);
  assert.match((await cell('%%nonsense\nx', 'failed')).error.message, /no magic %%nonsense here, but .*%%writefile/);
});

test('lines of commands and magics take values of Python, and leave the shell its own', async () => {
  const said = async (code) => (await cell(code)).stdout;
  await cell('name, numbers = "Ada", [1, 2]\nclass Thing: pass\nthing = Thing()\nthing.size = 5');
  assert.equal(await said('!echo $name {name.upper()} {numbers[1] + 1} {numbers[0]:03d} $thing.size'), 'Ada ADA 3 001 5\n');
  assert.equal(await said("!echo 'a b' | awk '{print $2}'"), 'b\n');
  const home = await said('!echo -n $HOME');
  assert.match(home, /^\//);
  assert.equal(await said('!echo {{name}} "$HOME" {name}'), `{name} ${home} Ada\n`);
  assert.equal(await said('!word=shell; echo $word ${word} {name}'), 'shell shell {name}\n', 'what is no value of Python leaves all to the shell');
  assert.equal(await said('!word=shell; echo $$word {name}'), 'shell Ada\n');
  assert.deepEqual((await cell('def listed(local):\n    found = !echo {local} $local\n    return found\nlisted("in a function")')).result, ['in a function in a function']);
  assert.equal(await said('place = "/tmp"\n%cd {place}'), '/tmp\n');
  assert.equal(await said('import os\nprint(os.getcwd())\n!pwd'), '/tmp\n/tmp\n');
  assert.equal(await said('%cd'), `${home}\n`);
  assert.equal(await said('%env GREETING=hello $name\n!echo $GREETING'), 'env: GREETING=hello Ada\nhello Ada\n');
  assert.equal((await cell('value = %env GREETING\nvalue')).result, 'hello Ada');
  assert.equal(await said('%%bash\nfor i in 1 2; do echo "$i {name}"; done'), '1 {name}\n2 {name}\n');
  assert.equal((await cell('%%bash\nexit 3', 'failed')).error.message, 'bash ended with exit code 3');
  assert.match((await cell('%nonsense', 'failed')).error.message, /no magic %nonsense here/);
});

test('what notebooks import of IPython shows things, whether it is installed or not', async () => {
  const shown = await cell('from IPython.display import HTML, Image, JSON, Markdown, Math, clear_output, display\nimport IPython\nclear_output(wait=True)\ndisplay(HTML("<b>bold</b>"), Markdown("*m*"))\ndisplay(JSON({"a": 1}), Math("x^2"))\ndisplay({"text/csv": "a,b"}, raw=True)\nIPython.display.Image(data=b"\\x89PNG")');
  assert.deepEqual(shown.results.map(({ 'text/plain': _, ...rest }) => rest), [
    { 'text/html': '<b>bold</b>' }, { 'text/markdown': '*m*' }, { 'application/json': { a: 1 } }, { 'text/latex': '$\\displaystyle x^2$' },
    { 'text/csv': 'a,b' }, { 'image/png': Buffer.from('\x89PNG', 'latin1').toString('base64') },
  ]);
  assert.equal((await cell('import IPython.terminal', 'failed')).error.type, 'ModuleNotFoundError');
  // A package of that name, as one that is installed: its display() knows of nothing to show things in.
  const files = {
    '/workspace/installed/IPython/__init__.py': 'real = True\n',
    '/workspace/installed/IPython/display.py': 'class HTML:\n    def __init__(self, data): self.data = data\n    def _repr_html_(self): return self.data\ndef display(*values): print("lost", *values)\n',
  };
  const own = await python('import sys\nsys.path.insert(0, "/workspace/installed")\nfrom IPython.display import HTML, display\nimport IPython\ndisplay(HTML("<i>"))\nIPython.real', { files });
  assert.deepEqual([own.result, own.stdout, own.results[0]['text/html']], [true, '', '<i>']);
});

finish();
