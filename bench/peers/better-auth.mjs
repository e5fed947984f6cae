// better-auth: GET /api/auth/get-session. `fill` creates users with one session each and prints their cookies.
//
//     node better-auth.mjs [fill COUNT]
//
// COOKIE_CACHE turns the cookie cache on; REDIS_PORT stores sessions in Redis instead of PostgreSQL.
import { createHmac } from 'node:crypto';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import Redis from 'ioredis';
import pg from 'pg';
import { database, listen, port } from './listen.mjs';

const secret = 'a secret of the benchmark, 32 bytes or more';
const redis = process.env.REDIS_PORT && new Redis(Number(process.env.REDIS_PORT));
const options = {
  secret,
  baseURL: `http://127.0.0.1:${port}`,
  database: new pg.Pool(database),
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  session: { cookieCache: { enabled: Boolean(process.env.COOKIE_CACHE), maxAge: 300 } },
  secondaryStorage: redis && {
    get: key => redis.get(key),
    set: (key, value, ttl) => (ttl ? redis.set(key, value, 'EX', ttl) : redis.set(key, value)),
    delete: key => redis.del(key),
  },
};
const auth = betterAuth(options);

async function fill(count) {
  await (await getMigrations(options)).runMigrations();
  const { internalAdapter } = await auth.$context;
  const create = async number => {
    const email = `${process.env.REDIS_PORT ? 'redis' : 'user'}${number}@example.com`;
    const user = await internalAdapter.createUser({ email, name: 'User', emailVerified: true });
    const { token } = await internalAdapter.createSession(user.id);
    const signature = createHmac('sha256', secret).update(token).digest('base64');
    return `better-auth.session_token=${encodeURIComponent(`${token}.${signature}`)}`;
  };
  const cookies = [];
  while (cookies.length < count) {
    const batch = Array.from({ length: 50 }, (_, nth) => create(cookies.length + nth));
    cookies.push(...(await Promise.all(batch)));
  }
  // Connections stay open otherwise.
  process.stdout.write(cookies.join('\n'), () => process.exit());
}

if (process.argv[2] === 'fill') await fill(Number(process.argv[3]));
else await listen(() => (typeof Bun === 'undefined' ? toNodeHandler(auth) : auth.handler));
