#!/usr/bin/env python3
"""Imports subscribers from another system, with their own IDs, old prices and payment dates.

    URL=http://127.0.0.1:8080 CLIENT_ID=prn_sk_… python3 import-subscribers.py subscribers.jsonl [--concurrency 8]

Needs Python 3.11 and no packages. CLIENT_ID is a secret client with the default scopes. The plans must exist. The file has
one subscriber per line:

    {"id": "17", "email": "ada@example.com", "subscriptions": [{"id": "s-1", "plan": "pro", "status": "active",
     "price": "9.99", "starts_at": "2019-03-04T10:00:00Z", "renews_at": "2026-12-04T10:00:00Z", "payments": [
     {"id": "p-1", "amount": "9.99", "currency": "USD", "status": "completed", "paid_at": "2026-11-04T10:00:00Z"}]}]}

Other fields of POST /subscriptions and POST /subscription-payments are sent as they are.

Every record carries its old ID (external_user_id, external_subscription_id, external_payment_id), which is unique. So the
script can be killed at any time and run again: it updates what exists and creates the rest. It honors Retry-After when
the service limits the rate (429) or is unavailable (503). At the end it counts the records, and exits with 1 if one is
missing.
"""

import argparse, concurrent.futures, decimal, http.client, json, os, random, sys, threading, time, urllib.parse
from collections import Counter

SERVICE = urllib.parse.urlsplit(os.environ.get("URL", "http://127.0.0.1:8080"))
MAX_ATTEMPTS = 10
own = threading.local()  # each thread keeps one connection open


def call(method, path, body=None):
    """Sends a request until it has a definite response, and returns the status and the JSON."""
    headers = {"client-id": os.environ["CLIENT_ID"], "content-type": "application/json"}
    for attempt in range(MAX_ATTEMPTS):
        retry_after = 0
        try:
            if not getattr(own, "connection", None):
                kind = http.client.HTTPSConnection if SERVICE.scheme == "https" else http.client.HTTPConnection
                own.connection = kind(SERVICE.netloc, timeout=15)
            own.connection.request(method, path, body and json.dumps(body), headers)
            response = own.connection.getresponse()
            text = response.read()
            if response.status < 500 and response.status not in (408, 429):
                return response.status, json.loads(text, parse_float=decimal.Decimal)
            retry_after = int(response.headers.get("retry-after", 0))
        except (OSError, http.client.HTTPException, ValueError):
            # The request may have taken effect. Its old ID prevents a second record.
            own.connection = None
        time.sleep(max(retry_after, min(0.2 * 2**attempt, 10)) * random.uniform(1, 1.5))
    raise RuntimeError(f"{method} {path}: no response after {MAX_ATTEMPTS} attempts")


def upsert(path, body):
    """Creates a record, or updates the one that has its old ID. Returns the record's ID."""
    status, record = call("POST", path, body)
    if status == 201:
        return record["id"]
    existing = record.get("existing_id")
    if record.get("code") == "email_in_use":  # a user who signed up before gets the old ID
        user = call("GET", f"{path}?{urllib.parse.urlencode({'email': body['email']})}")[1]["data"][0]
        existing = user["id"] if user["external_user_id"] in (None, body["external_user_id"]) else None
    if not existing:
        raise RuntimeError(f"POST {path} {body}: {record['detail']} {record.get('errors', '')}")
    status, updated = call("PUT", f"{path}/{existing}", body)
    if status != 200:  # for example a status change that is not allowed
        print(f"\nnot updated: {path}/{existing}: {updated['detail']}", file=sys.stderr)
    return existing


def import_subscriber(subscriber):
    """Imports a user, then its subscriptions, then their payments, oldest first."""
    email = {"email": subscriber["email"]} if "email" in subscriber else {}
    upsert("/users", {"external_user_id": subscriber["id"], **email})
    for subscription in subscriber.get("subscriptions", []):
        fields = {k: v for k, v in subscription.items() if k not in ("id", "plan", "payments")}
        created = upsert("/subscriptions", {
            "external_user_id": subscriber["id"], "external_subscription_id": subscription["id"],
            "subscription_plan_slug": subscription["plan"], **fields})
        for payment in sorted(subscription.get("payments", []), key=lambda payment: payment.get("paid_at", "")):
            fields = {k: v for k, v in payment.items() if k != "id"}
            upsert("/subscription-payments", {"subscription_id": created, "external_payment_id": payment["id"], **fields})


def import_all(subscribers, concurrency):
    """Imports the subscribers with this many requests at a time, and prints the progress once a second."""
    started = shown = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        futures = [pool.submit(import_subscriber, subscriber) for subscriber in subscribers]
        try:
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                future.result()
                if (now := time.monotonic()) - shown >= 1 or done == len(futures):
                    shown, end = now, "\n" if done == len(futures) else ""
                    progress = f"\r{done:,} of {len(futures):,} subscribers, {done / (now - started):.0f} per second"
                    print(progress, end=end, file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def count(path, field, expected):
    """Counts the records by status, and adds up payments. Returns whether each expected old ID is there once."""
    found, totals, cursor = Counter(), Counter(), ""
    while cursor is not None:
        _, page = call("GET", f"{path}?limit=200" + (cursor and f"&cursor={cursor}"))
        for record in (record for record in page["data"] if record[field] in expected):
            found[record[field]] += 1
            if "status" in record:
                totals[f"{record['currency']} {record['status']}"] += record.get("amount", 1)
        cursor = page["next_cursor"]
    summary = [f"{path}: {found.total():,} of {len(expected):,}", *(f"{kind} {total:,}" for kind, total in sorted(totals.items()))]
    print(" · ".join(summary))
    return found == Counter(expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=argparse.FileType(encoding="utf-8"))
    parser.add_argument("--concurrency", type=int, default=8)
    args = parser.parse_args()
    subscribers = [json.loads(line) for line in args.file]
    import_all(subscribers, args.concurrency)
    subscriptions = [one for subscriber in subscribers for one in subscriber.get("subscriptions", [])]
    payments = [payment for subscription in subscriptions for payment in subscription.get("payments", [])]
    complete = [
        count("/users", "external_user_id", {user["id"] for user in subscribers}),
        count("/subscriptions", "external_subscription_id", {subscription["id"] for subscription in subscriptions}),
        count("/payments", "external_payment_id", {payment["id"] for payment in payments}),
    ]
    sys.exit(0 if all(complete) else "the counts do not match the file")


if __name__ == "__main__":
    main()
