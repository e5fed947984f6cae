// Packs the SDK with its dependencies, and installs them into a project without a registry:
//
//     node scripts/install-into.mjs FOLDER [--built]
//
// Builds the SDK first, with the packages of its lock file, unless `--built` says that this is done. Does nothing if the project has
// these sources already.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

const project = resolve(process.argv[2]);
const root = new URL('..', import.meta.url).pathname;
const stamp = join(project, 'node_modules/@perennial/client/.sources');
const sources = hashSources();

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== sources) {
  console.error('installing the SDK');
  if (!process.argv.includes('--built')) {
    run('npx', ['--yes', 'pnpm@10', 'install', '--frozen-lockfile', '--silent']);
    run('node', ['scripts/build.mjs']);
  }
  const folder = mkdtempSync(join(tmpdir(), 'perennial-sdk-'));
  try {
    pack(folder);
    const archives = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    // In an empty project, because npm asks the registry for the other packages of the project, even for installed ones.
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    writeFileSync(join(empty, 'package.json'), '{}');
    const options = ['--silent', '--offline', '--no-audit', '--no-fund', '--no-save', '--no-package-lock'];
    run('npm', ['install', ...options, ...archives.map((name) => join(folder, name))], empty);
    rmSync(join(empty, 'node_modules/.package-lock.json'));
    cpSync(join(empty, 'node_modules'), join(project, 'node_modules'), { recursive: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(stamp, sources);
}

/** Writes the archives of the SDK and of each package that it needs. */
function pack(folder) {
  run('npx', ['--yes', 'pnpm@10', '--silent', 'pack', '--pack-destination', folder]);
  const fetch = realpathSync(join(root, 'node_modules/openapi-fetch'));
  for (const path of [fetch, realpathSync(join(dirname(fetch), 'openapi-typescript-helpers'))]) {
    // A copy, because pnpm links equal files to each other, and npm does not unpack links.
    const copy = join(folder, basename(path));
    cpSync(path, copy, { recursive: true, filter: (source) => basename(source) !== 'node_modules' });
    run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], copy);
  }
}

function hashSources() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package.json')));
  for (const name of readdirSync(join(root, 'src')).toSorted()) hash.update(readFileSync(join(root, 'src', name)));
  return hash.digest('hex');
}

function run(command, args, cwd = root) {
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 2] });
}
