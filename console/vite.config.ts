import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const CONTENT_TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** Replaces every built file by its .br and .gz form, and lists them in `manifest.tsv`: path, content type, SHA-256. */
function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    writeBundle({ dir = '' }) {
      const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
      const files = entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .toSorted();
      const lines = files.map((file) => {
        const bytes = readFileSync(file);
        const path = file.slice(dir.length + 1);
        const type = CONTENT_TYPES[extname(file)];
        if (!type) throw new Error(`no content type for ${path}`);
        const params = {
          [constants.BROTLI_PARAM_QUALITY]: 11,
          [constants.BROTLI_PARAM_LGWIN]: 22,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        rmSync(file);
        return `${path}\t${type}\t${createHash('sha256').update(bytes).digest('hex')}\n`;
      });
      writeFileSync(join(dir, 'manifest.tsv'), lines.join(''));
    },
  };
}

const service = process.env.PERENNIAL_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/console/',
  plugins: [react(), compress()],
  build: {
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 400,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      '^/(?!console/)': { target: service },
      '^/console/(session|sign-in|callback)': { target: service },
    },
  },
  test: { include: ['src/**/*.test.ts'] },
} as Parameters<typeof defineConfig>[0]);
