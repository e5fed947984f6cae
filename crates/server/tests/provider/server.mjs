// A real OpenID provider on loopback, for the tests: oidc-provider, with keys of three kinds.
//
//     node server.mjs PORT
//
// Under /test/ the tests steer it: /test/mint makes a user's token through the provider's own models, without a
// browser; /test/rotate gives it new keys under the old names; /test/counts says how often it was asked for them.
// It takes its own JWTs at the userinfo endpoint, as Auth0 and Keycloak do and oidc-provider by itself does not.

import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const counts = { keys: 0, discovery: 0, userinfo: 0 };
const users = new Map();
let extra = {};

function keys() {
  const key = (kid, alg, kind, options) => ({
    ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig',
  });
  return [
    key('ed', 'EdDSA', 'ed25519'),
    key('ec', 'ES256', 'ec', { namedCurve: 'P-256' }),
    key('rsa', 'RS256', 'rsa', { modulusLength: 2048 }),
  ];
}

function start() {
  return new Provider(issuer, {
    clients: [{ client_id: 'app', client_secret: 'app-secret', redirect_uris: [`${issuer}/cb`] }],
    jwks: { keys: keys() },
    cookies: { keys: ['tests only'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA', 'ES256', 'RS256'] },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, ...users.get(sub) }) }),
    extraTokenClaims: () => extra,
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: true },
      introspection: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: () => ({ scope: 'api' }) },
    },
  });
}

let provider = start();

/** A user's access token: a JWT for this audience, signed with this algorithm; or opaque, if no algorithm is named. */
async function mint({ sub, email, email_verified, audience, alg, in_token, seconds, claims }) {
  users.set(sub, { email, email_verified });
  const client = await provider.Client.find('app');
  const grant = new provider.Grant({ accountId: sub, clientId: 'app' });
  grant.addOIDCScope('openid email');
  grant.addResourceScope('urn:api', 'api');
  const token = new provider.AccessToken({
    accountId: sub, client, grantId: await grant.save(), gty: 'authorization_code',
    scope: alg ? 'api' : 'openid email', expiresIn: seconds ?? 300,
  });
  extra = {};
  if (!alg) return token.save();
  token.resourceServer = new provider.ResourceServer('urn:api', {
    audience, scope: 'api', accessTokenFormat: 'jwt', jwt: { sign: { alg } },
  });
  extra = { ...(in_token ? { email, email_verified } : {}), ...claims };
  return token.save();
}

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, issuer);
  const body = [];
  const answer = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (pathname === '/jwks') counts.keys += 1;
  if (pathname === '/.well-known/openid-configuration') counts.discovery += 1;
  if (pathname === '/test/counts') return answer(counts);
  if (pathname === '/test/rotate') { provider = start(); return answer({}); }
  if (pathname === '/test/mint') {
    for await (const part of request) body.push(part);
    return answer({ token: await mint(JSON.parse(Buffer.concat(body))) });
  }
  if (pathname === '/me') {
    counts.userinfo += 1;
    const payload = request.headers.authorization?.split('.')[1];
    if (!payload) return provider.callback()(request, response);
    const { sub } = JSON.parse(Buffer.from(payload, 'base64url'));
    if (!users.has(sub)) { response.statusCode = 401; return answer({ error: 'invalid_token' }); }
    return answer({ sub, ...users.get(sub) });
  }
  return provider.callback()(request, response);
}).listen(port, '127.0.0.1', () => console.log('ready'));
