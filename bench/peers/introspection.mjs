// oidc-provider: POST /token/introspection of opaque access tokens. `fill` creates tokens with one grant each and prints them.
//
//     node introspection.mjs [fill COUNT]
import pg from 'pg';
import Provider from 'oidc-provider';
import { database, listen, port } from './listen.mjs';

const pool = new pg.Pool(database);

// The tables that the documentation of oidc-provider proposes, in one.
class PostgresAdapter {
  constructor(model) {
    this.model = model;
  }
  async upsert(id, payload) {
    await pool.query({
      name: 'upsert',
      text: `INSERT INTO oidc (model, id, payload) VALUES ($1, $2, $3)
        ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload`,
      values: [this.model, id, payload],
    });
  }
  async find(id) {
    const text = 'SELECT payload FROM oidc WHERE model = $1 AND id = $2';
    const { rows } = await pool.query({ name: 'find', text, values: [this.model, id] });
    return rows[0]?.payload;
  }
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: PostgresAdapter,
  clients: [{ client_id: 'bench', client_secret: 'bench', grant_types: [], response_types: [], redirect_uris: [] }],
  features: { introspection: { enabled: true, allowedPolicy: () => true }, devInteractions: { enabled: false } },
  cookies: { keys: ['bench'] },
  ttl: { AccessToken: 3600, Grant: 3600 },
});

async function fill(count) {
  await pool.query('CREATE TABLE oidc (model text, id text, payload jsonb NOT NULL, PRIMARY KEY (model, id))');
  const client = await provider.Client.find('bench');
  const create = async accountId => {
    const grant = new provider.Grant({ clientId: client.clientId, accountId });
    grant.addOIDCScope('openid');
    const grantId = await grant.save();
    return new provider.AccessToken({ client, accountId, grantId, scope: 'openid', gty: 'authorization_code' }).save();
  };
  const tokens = [];
  while (tokens.length < count) {
    const batch = Array.from({ length: 50 }, (_, nth) => create(`user${tokens.length + nth}`));
    tokens.push(...(await Promise.all(batch)));
  }
  // Connections stay open otherwise.
  process.stdout.write(tokens.join('\n'), () => process.exit());
}

if (process.argv[2] === 'fill') await fill(Number(process.argv[3]));
else await listen(() => provider.callback());
