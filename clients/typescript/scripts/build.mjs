// Builds dist/, and copies the license into the package.
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';

const root = new URL('..', import.meta.url);
const file = (path) => new URL(path, root).pathname;

rmSync(file('dist'), { recursive: true, force: true });
execFileSync(file('node_modules/.bin/tsc'), { cwd: file('.'), stdio: 'inherit' });
// The compiler does not copy declarations.
copyFileSync(file('src/schema.d.ts'), file('dist/schema.d.ts'));
copyFileSync(file('../../LICENSE'), file('LICENSE'));
