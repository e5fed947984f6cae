// Runs a stand-in as a process: listens on loopback, prints the address as its first line, and ends on SIGTERM or
// when the standard input closes.

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const options = {
  port: { type: 'string', default: '0' },
  now: { type: 'string' },
  'api-version': { type: 'string' },
};

/**
 * @param create Returns the request handler of the stand-in, given the arguments and a function that returns its address. Its
 *   property `upgrade` takes connections of WebSockets.
 */
export function run(create) {
  const { values } = parseArgs({ options });
  let address;
  const handle = create(values, () => address);
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => {
      // A defect of the stand-in, or a request that is not even JSON.
      console.error(error);
      if (!response.headersSent) sendJson(response, 500, { error: { type: 'api_error', message: error.message } });
    });
  });
  server.on('upgrade', (request, socket) => (handle.upgrade ? handle.upgrade(request, socket) : socket.destroy()));
  // Clients reuse connections between bursts.
  server.keepAliveTimeout = 60_000;
  server.listen(Number(values.port), '127.0.0.1', () => {
    address = `http://127.0.0.1:${server.address().port}`;
    console.log(address);
  });
  const end = () => process.exit(0);
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.stdin.on('end', end).on('close', end).on('error', end).resume();
}

export async function readBody(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

export function sendJson(response, status, value, headers = {}, indent = 0) {
  const body = JSON.stringify(value, null, indent);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers });
  response.end(body);
}
