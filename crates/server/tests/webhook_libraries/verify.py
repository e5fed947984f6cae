"""Reads messages from the standard input and prints, for each, whether the official PyPI package accepts its signature."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def is_accepted(message):
    try:
        Webhook(message["secret"]).verify(message["body"], message["headers"], json_parse=False)
        return True
    except WebhookVerificationError:
        return False


print(json.dumps([is_accepted(message) for message in json.loads(sys.stdin.buffer.read())]))
