// Writes src/schema.d.ts and src/idempotent_paths.ts from the committed OpenAPI document.
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';

const NOTE = '// Generated from the OpenAPI document by `pnpm generate`.\n\n';

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'));

function write(name, content) {
  writeFileSync(new URL(`../src/${name}`, import.meta.url), NOTE + content);
}

write('schema.d.ts', astToString(await openapiTypescript(document)));

const paths = Object.entries(document.paths)
  .filter(([, { post }]) => post?.parameters?.some(({ $ref }) => $ref?.endsWith('/IdempotencyKey')))
  .map(([path]) => `  '${path}',\n`);
write(
  'idempotent_paths.ts',
  `/** The paths whose POST accepts an Idempotency-Key. */\nexport const IDEMPOTENT_PATHS: ReadonlySet<string> = new Set([\n${paths.join('')}]);\n`,
);
