// Writes src/api/schema.d.ts from the committed OpenAPI document.
// openapi-typescript needs the compiler API of TypeScript 5, so that it runs beside the project's compiler.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = new URL('..', import.meta.url).pathname;
const snapshot = join(
  root,
  '../crates/server/tests/it/openapi/snapshots/it__openapi__document_matches_snapshot.snap',
);
const output = join(root, 'src/api/schema.d.ts');
const folder = mkdtempSync(join(tmpdir(), 'openapi-'));
try {
  const text = readFileSync(snapshot, 'utf8');
  const document = join(folder, 'openapi.json');
  writeFileSync(document, text.slice(text.indexOf('\n---\n') + 5));
  execFileSync(
    'npx',
    ['--yes', '--package=openapi-typescript@7.13.0', '--package=typescript@5.9.3'].concat([
      'openapi-typescript',
      document,
      '--output',
      output,
    ]),
    { stdio: 'inherit', cwd: folder },
  );
} finally {
  rmSync(folder, { recursive: true });
}
