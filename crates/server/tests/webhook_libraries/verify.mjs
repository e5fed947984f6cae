// Reads messages from the standard input and prints, for each, whether the official npm package accepts its signature.
import { text } from "node:stream/consumers";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const results = JSON.parse(await text(process.stdin)).map(({ secret, headers, body }) => {
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
});
console.log(JSON.stringify(results));
