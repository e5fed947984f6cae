// The user's session.
//
// The access token is in memory. The refresh token is in localStorage, where all tabs share it and a reload finds it. It works
// once: each refresh replaces it. So one tab refreshes at a time, under a lock, and tells the others the new access token.

import { ApiError, send } from './api.js';

const REFRESH_TOKEN = 'perennial.refresh_token';
const LOCK = 'perennial.session';

const tabs = new BroadcastChannel('perennial.session');
const listeners = new Set();

let accessToken;
// Not read from localStorage again, because changes of that reach other tabs later than a message does.
let signedIn = localStorage.getItem(REFRESH_TOKEN) !== null;

/** Calls `listener` when the user has signed in or out, in this tab or another one. */
export function onChange(listener) {
  listeners.add(listener);
}

export const isSignedIn = () => signedIn;

/** Takes a new access token, or undefined after the end of the session. Tells listeners if the user signed in or out. */
function update(newToken) {
  const wasSignedIn = signedIn;
  accessToken = newToken;
  signedIn = newToken !== undefined;
  if (wasSignedIn !== signedIn) for (const listener of listeners) listener();
}

tabs.addEventListener('message', ({ data }) => update(data.accessToken));

/** Stores the refresh token before the new access token is used, so that it is not lost with this tab. */
function start(tokens) {
  localStorage.setItem(REFRESH_TOKEN, tokens.refresh_token);
  tabs.postMessage({ accessToken: tokens.access_token });
  update(tokens.access_token);
}

function end() {
  localStorage.removeItem(REFRESH_TOKEN);
  tabs.postMessage({ accessToken: undefined });
  update(undefined);
}

/** Signs in with a token of the identity provider, or signs up if there is no account yet. */
export async function signIn(token, email) {
  const body = { access_token: token, email };
  const { json } = await send('POST', '/authentication/sign-in', { body }).catch((error) => {
    if (error.code !== 'account_not_found') throw error;
    return send('POST', '/authentication/sign-up', { body });
  });
  start(json);
}

/** Ends the session at Perennial, then in all tabs. If that fails, the user stays signed in and can try again. */
export async function signOut() {
  await call('POST', '/authentication/tokens/logout').catch((error) => {
    if (error.status !== 401) throw error;
  });
  if (isSignedIn()) end();
}

/**
 * Gets a new access token, unless another tab has one. `expired` is the token that was refused; undefined after a reload.
 * Returns false if the session has ended.
 */
export async function refresh(expired) {
  const exchange = async () => {
    if (accessToken !== expired) return accessToken !== undefined;
    // Read under the lock: another tab may have replaced it.
    const refreshToken = localStorage.getItem(REFRESH_TOKEN);
    if (!refreshToken) {
      update(undefined);
      return false;
    }
    try {
      const { json } = await send('POST', '/authentication/refresh-token', { body: { refresh_token: refreshToken } });
      start(json);
      return true;
    } catch (error) {
      // Only this code ends the session. After any other error the token is still good.
      if (error.code !== 'invalid_grant') throw error;
      end();
      return false;
    }
  };
  // Without locks (in old browsers), tabs that refresh within 30 seconds of each other get the same tokens.
  return navigator.locks ? navigator.locks.request(LOCK, exchange) : exchange();
}

/** Sends a request as the user. Refreshes the access token if it is missing or has expired. */
export async function call(method, path, options) {
  for (let attempt = 0; ; attempt += 1) {
    const used = accessToken;
    if (used) {
      try {
        return await send(method, path, { ...options, accessToken: used });
      } catch (error) {
        if (error.code !== 'invalid_token' || attempt > 1) throw error;
      }
    }
    if (!(await refresh(used))) throw new ApiError(401, { code: 'signed_out', detail: 'You have been signed out.' });
  }
}
