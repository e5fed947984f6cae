// Sends mails about trials that end, late payments, and receipts. README.md explains how to run it.

import { createServer } from 'node:http';
import { Perennial, verifyWebhook, WebhookVerificationError } from '@perennial/client';
import { Notifier } from './notifier.js';
import { SentLog } from './sent_log.js';
import { readSettings } from './settings.js';

/** In bytes. Events are much smaller. */
const MAX_BODY = 1024 * 1024;

const settings = readSettings(process.env);
// Few attempts, because Perennial repeats the webhook.
const retry = { attempts: 2, timeout: 3000 };
const perennial = new Perennial({ url: settings.perennialUrl, clientId: settings.perennialKey, retry });
const log = await SentLog.open(settings.sentFile);
const notifier = new Notifier(perennial, log, settings);

/** Returns the status of the response to a webhook request. @param {import('node:http').IncomingMessage} request */
async function receive(request) {
  if (request.method !== 'POST' || request.url !== '/webhooks') return 404;
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY) return 413;
    chunks.push(chunk);
  }
  try {
    await notifier.handle(await verifyWebhook({ body: Buffer.concat(chunks), headers: request.headers, secrets: settings.secrets }));
    return 204;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return 401;
    // The SMTP server or Perennial cannot be reached: Perennial sends the event again.
    console.error('failed:', error instanceof Error ? error.message : error);
    return 503;
  }
}

async function remindOfTrials() {
  try {
    await notifier.remindOfTrials();
  } catch (error) {
    // The next run tries again.
    console.error('trial reminders failed:', error instanceof Error ? error.message : error);
  }
}

const server = createServer(async (request, response) => {
  response.writeHead(await receive(request).catch(() => 400)).end();
});
server.listen(settings.port, settings.host, () => console.log(`webhooks: http://${settings.host}:${settings.port}/webhooks`));

let reminding = remindOfTrials();
const timer = setInterval(() => {
  reminding = reminding.then(remindOfTrials);
}, settings.trialCheckSeconds * 1000);

process.once('SIGTERM', async () => {
  clearInterval(timer);
  server.close();
  server.closeIdleConnections();
  await reminding;
  await log.close();
});
