// SPDX-License-Identifier: Apache-2.0
// Puts the documentation of the API into dist/docs: Swagger UI as npm has it, and our page and styles around it (docs/).
// Nothing in it is inline, so that the console's content security policy holds for it as well.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const swagger = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const here = new URL('../', import.meta.url);
const target = new URL('dist/docs/', here);

fs.mkdirSync(target, { recursive: true });
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) {
  // Its maps are not shipped, so nothing may ask for them.
  const text = fs.readFileSync(path.join(swagger, name), 'utf8').replace(/\n?(\/\/|\/\*)# sourceMappingURL=.*$/m, '');
  fs.writeFileSync(new URL(name, target), text);
}
for (const name of fs.readdirSync(new URL('docs/', here))) fs.copyFileSync(new URL(`docs/${name}`, here), new URL(name, target));
