// Sessions of `stripe listen`: the Stripe CLI receives events through a WebSocket and forwards them. Not part of the public
// API; the shapes are those that the CLI reads and sends.

import { acceptWebSocket } from '../../stand_in/websocket.mjs';
import { newId } from '../ids.mjs';
import { newSecret } from './webhook_endpoints.mjs';

const PATH = '/cli/subscribe';
/** The CLI connects again after this many seconds. */
const RECONNECT_DELAY = 3600;

/** Creates a session. All sessions have the same secret, as those of one device at Stripe. */
function create({ ledger, address }) {
  ledger.cli_secret ??= newSecret();
  const id = newId('cliws');
  ledger.cli_sessions.set(id, undefined);
  return {
    raw: {
      websocket_id: id,
      websocket_url: `${address().replace('http', 'ws')}${PATH}`,
      websocket_authorized_feature: 'webhooks',
      reconnect_delay: RECONNECT_DELAY,
      secret: ledger.cli_secret,
      display_connect_filter_warning: false,
      default_version: ledger.settings.api_version,
      latest_version: ledger.settings.api_version,
    },
  };
}

/** Connects the CLI to its session, which receives all events from now on. */
export function connectCli(request, socket, ledgers) {
  const id = request.headers['websocket-id'];
  const ledger = Object.values(ledgers).find(({ cli_sessions }) => cli_sessions.has(id));
  if (!ledger || !request.url.startsWith(PATH)) return socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  const responses = new Map();
  const send = acceptWebSocket(request, socket, (text) => {
    const message = JSON.parse(text);
    if (message.type === 'webhook_response') responses.get(message.webhook_conversation_id)?.(message.status);
  });
  const forward = (body, headers) =>
    new Promise((resolve) => {
      const conversation = newId('wc');
      responses.set(conversation, resolve);
      send(
        JSON.stringify({
          type: 'webhook_event',
          webhook_id: id,
          webhook_conversation_id: conversation,
          event_payload: body,
          http_headers: headers,
          endpoint: { api_version: null },
        }),
      );
    });
  const secrets = [{ value: ledger.cli_secret, expires_at: null }];
  const target = { id, status: 'enabled', enabled_events: ['*'], api_version: null, is_thin: false, secrets, forward };
  ledger.cli_sessions.set(id, target);
  socket.on('close', () => ledger.cli_sessions.set(id, undefined));
  return undefined;
}

export const cliSessionRoutes = [['POST', '/v1/stripecli/sessions', create]];
