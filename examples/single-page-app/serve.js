// Serves the files in public/, which any web server can do. Two things are worth copying: the security headers, and that the
// app's settings come from its own origin. README.md explains how to run it.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';

const { URL: perennial = 'http://127.0.0.1:8080', PUBLISHABLE_ID, HOST = '127.0.0.1', PORT = '3000' } = process.env;

if (!PUBLISHABLE_ID?.startsWith('prn_pk_')) {
  throw new Error('PUBLISHABLE_ID must be the API key of a publishable client; a secret key must never reach a browser');
}

const TYPES = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };
const FILES = ['index.html', 'style.css', 'app.js', 'api.js', 'session.js', 'view.js'];

// Scripts only from this origin, requests only to this origin and to Perennial. A script that is injected into the page does not
// run, and if it did, it could not send tokens to another host.
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", 'img-src data:', `connect-src 'self' ${new URL(perennial).origin}`,
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
].join('; ');

createServer(async (req, res) => {
  const path = req.url.split('?')[0];
  const name = path === '/' ? 'index.html' : path.slice(1);
  res.setHeader('content-security-policy', POLICY);
  res.setHeader('x-content-type-options', 'nosniff');
  res.setHeader('referrer-policy', 'no-referrer');
  res.setHeader('cache-control', 'no-cache');
  if (name === 'settings.json') {
    res.writeHead(200, { 'content-type': TYPES['.json'] });
    res.end(JSON.stringify({ url: perennial, clientId: PUBLISHABLE_ID }));
  } else if (FILES.includes(name)) {
    res.writeHead(200, { 'content-type': `${TYPES[extname(name)]}; charset=utf-8` });
    res.end(await readFile(new URL(`public/${name}`, import.meta.url)));
  } else {
    res.writeHead(404, { 'content-type': 'text/plain' }).end('Not found');
  }
}).listen(Number(PORT), HOST, () => console.log(`single-page app: http://${HOST}:${PORT}, using Perennial at ${perennial}`));
