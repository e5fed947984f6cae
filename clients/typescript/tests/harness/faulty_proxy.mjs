// A proxy on a real socket that loses responses after the service has processed the requests.
import { createServer, request as sendRequest } from 'node:http';
import { freePort, url } from './sandbox.mjs';

/**
 * Starts a proxy in front of the sandbox. `fault` is called for each request, and returns
 * `cut` (no byte of the response arrives), `cut_body` (half of the body arrives), `hang` (there is no response), a response
 * `{ status, headers, body }` that does not come from the service, or nothing.
 */
export async function startProxy(fault = () => undefined) {
  const target = new URL(url);
  const port = await freePort();
  const sockets = new Set();
  const proxy = { url: `http://127.0.0.1:${port}`, fault, requests: [], cuts: 0, cutConnections, close };

  const listener = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url: path, headers } = request;
    const seen = { method, path, key: headers['idempotency-key'], body: Buffer.concat(chunks).toString() };
    proxy.requests.push(seen);
    const decision = proxy.fault(seen);
    if (decision === 'hang') return;
    if (typeof decision === 'object') {
      response.writeHead(decision.status, decision.headers).end(decision.body);
      return;
    }
    const options = {
      host: target.hostname,
      port: target.port,
      method,
      path,
      headers: { ...headers, host: target.host },
    };
    const upstream = sendRequest(options, (received) => {
      seen.status = received.statusCode;
      if (decision) cutResponse(received, response, decision);
      else {
        response.writeHead(received.statusCode, received.headers);
        received.pipe(response);
      }
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    upstream.end(Buffer.concat(chunks));
  });
  listener.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });

  /** Reads the whole response of the service, so that it has processed the request, and closes the connection. */
  async function cutResponse(received, response, decision) {
    const chunks = [];
    for await (const chunk of received) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    proxy.cuts += 1;
    if (decision === 'cut' || body.length === 0) {
      response.destroy();
      return;
    }
    response.writeHead(received.statusCode, received.headers);
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  }

  function cutConnections() {
    for (const socket of sockets) socket.destroy();
  }

  function close() {
    cutConnections();
    return new Promise((resolve) => listener.close(resolve));
  }

  await new Promise((resolve) => listener.listen(port, '127.0.0.1', resolve));
  return proxy;
}
