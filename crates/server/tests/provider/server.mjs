// A real OpenID provider for the tests: oidc-provider with keys for three algorithms.
//
//     node server.mjs PORT [REDIRECT_URI]
//
// The client `product`, without a secret, has the redirect URI.
//
// Endpoints for the tests: /test/login sets who signs in at the authorization endpoint, without a page; /test/mint issues an access token without a browser, /test/rotate replaces all keys
// under their old ids, and /test/counts returns how often each endpoint was called. The userinfo endpoint accepts
// JWTs, as those of Auth0 and Keycloak do.

import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const port = Number(process.argv[2]);
const redirectUri = process.argv[3] ?? 'http://product.example/sign-in/callback';
const issuer = `http://127.0.0.1:${port}`;
const counts = { keys: 0, discovery: 0, userinfo: 0 };
const users = new Map();
let extra = {};
let login;

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
    clients: [
      { client_id: 'app', client_secret: 'app-secret', redirect_uris: [`${issuer}/cb`] },
      { client_id: 'console', client_secret: 'console-secret', redirect_uris: ['http://perennial.example/console/callback'] },
      {
        client_id: 'public-console', token_endpoint_auth_method: 'none',
        redirect_uris: ['http://perennial.example/console/callback'],
      },
      { client_id: 'product', token_endpoint_auth_method: 'none', redirect_uris: [redirectUri] },
    ],
    jwks: { keys: keys() },
    cookies: { keys: ['tests only'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'email', 'groups'],
    conformIdTokenClaims: false,
    interactions: { url: (_, interaction) => `/test/interaction/${interaction.uid}` },
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

/** Issues an access token: a JWT for this audience and algorithm, or an opaque token without an algorithm. */
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

/** Signs the person of /test/login in, with all scopes, or refuses if there is none. */
async function interact(request, response) {
  const { params } = await provider.interactionDetails(request, response);
  if (!login) return provider.interactionFinished(request, response, { error: 'access_denied' });
  const grant = new provider.Grant({ accountId: login, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const result = { login: { accountId: login }, consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result);
}

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, issuer);
  const body = [];
  const respond = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (pathname === '/jwks') counts.keys += 1;
  if (pathname === '/.well-known/openid-configuration') counts.discovery += 1;
  if (pathname === '/test/counts') return respond(counts);
  if (pathname === '/test/rotate') { provider = start(); return respond({}); }
  if (pathname.startsWith('/test/interaction/')) return interact(request, response);
  if (pathname === '/test/login') {
    for await (const part of request) body.push(part);
    const { sub, ...claims } = JSON.parse(Buffer.concat(body));
    users.set(sub, claims);
    login = sub;
    return respond({});
  }
  if (pathname === '/test/mint') {
    for await (const part of request) body.push(part);
    return respond({ token: await mint(JSON.parse(Buffer.concat(body))) });
  }
  if (pathname === '/me') {
    counts.userinfo += 1;
    const payload = request.headers.authorization?.split('.')[1];
    if (!payload) return provider.callback()(request, response);
    const { sub } = JSON.parse(Buffer.from(payload, 'base64url'));
    if (!users.has(sub)) { response.statusCode = 401; return respond({ error: 'invalid_token' }); }
    return respond({ sub, ...users.get(sub) });
  }
  return provider.callback()(request, response);
}).listen(port, '127.0.0.1', () => console.log('ready'));
