// SPDX-License-Identifier: Apache-2.0
// Loaded into the process of every file of tests before the file itself (run.mjs): a test that hangs fails with its name
// after E2E_TEST_MS, and the file goes on. A test with a `timeout` of its own keeps that. A process that stays although
// all of its tests are over is ended as well, which fails its file.
//
// Debian's node (18) has no setting for this, and a `test` that wraps node's would stand in all reports as the place of
// every test. But each test takes its limit from the one that it is in, and the outermost is an asynchronous resource.
'use strict';

const { createHook } = require('node:async_hooks');

const LEAVE_MS = 60_000 * Number(process.env.E2E_PATIENCE ?? 1);

delete process.env.NODE_OPTIONS; // it was for this process, not for its children
let outermost;
const hook = createHook({
  init(id, type, trigger, resource) {
    if (type === 'Test') outermost ??= resource;
  },
}).enable();
require('node:test').after(() => {
  setTimeout(() => {
    console.error(`the process of the file stays although its tests are over: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, LEAVE_MS).unref();
});
hook.disable();
if (outermost) outermost.timeout = Number(process.env.E2E_TEST_MS);
