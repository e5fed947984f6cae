// A session check written by hand: one prepared SELECT by token on the tables of better-auth, and no writes.
import fastify from 'fastify';
import pg from 'pg';
import { database, listen } from './listen.mjs';

const text = `SELECT session.id, session."expiresAt", "user".id AS "userId", "user".email, "user".name
  FROM session JOIN "user" ON "user".id = session."userId" WHERE session.token = $1 AND session."expiresAt" > now()`;

await listen(async () => {
  const pool = new pg.Pool(database);
  const app = fastify();
  app.get('/session', async (request, reply) => {
    const token = request.headers.authorization?.replace('Bearer ', '');
    const { rows } = await pool.query({ name: 'check', text, values: [token] });
    return rows[0] ?? reply.code(401).send({ error: 'not signed in' });
  });
  await app.ready();
  return app.routing;
});
