// Sends requests to Perennial.

const settings = await fetch('settings.json').then((response) => response.json());

/** An error response: a problem document of Perennial, or a failed connection (status 0). */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail);
    this.status = status;
    this.code = problem.code;
  }
}

/** Sends one request and returns the JSON and the entity tag of the response. */
export async function send(method, path, { body, accessToken, ifMatch } = {}) {
  const headers = { 'client-id': settings.clientId };
  if (body) headers['content-type'] = 'application/json';
  if (accessToken) headers.authorization = `Bearer ${accessToken}`;
  if (ifMatch) headers['if-match'] = ifMatch;
  let response;
  try {
    const signal = AbortSignal.timeout(15_000);
    response = await fetch(settings.url + path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch {
    throw new ApiError(0, { detail: 'The service cannot be reached. Please try again.' });
  }
  const text = await response.text();
  const json = text ? JSON.parse(text) : {};
  if (!response.ok) throw new ApiError(response.status, json);
  return { json, etag: response.headers.get('etag') };
}
