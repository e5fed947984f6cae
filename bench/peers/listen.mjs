// Listens with two processes, because Perennial's threads use both cores too.
import cluster from 'node:cluster';
import { createServer } from 'node:http';

export const port = Number(process.env.PORT);
// 32 connections in all, like Perennial's pool.
export const database = { connectionString: process.env.DATABASE_URL, max: 16, idleTimeoutMillis: 60_000 };

// Calls `start` in each process. It returns a listener of `node:http`, or with Bun a function from Request to Response.
export async function listen(start) {
  if (typeof Bun !== 'undefined') {
    // `bench/peers/run` starts two processes, which share the port.
    Bun.serve({ port, hostname: '127.0.0.1', reusePort: true, fetch: await start() });
  } else if (cluster.isPrimary) {
    cluster.fork();
    cluster.fork();
  } else {
    createServer(await start()).listen(port, '127.0.0.1');
  }
}
