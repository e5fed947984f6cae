#!/usr/bin/env python3
"""Copies the subscriptions that have changed since the last run into a local SQLite database.

    URL=http://127.0.0.1:8080 CLIENT_ID=prn_sk_… python3 nightly-sync.py copy.sqlite [--overlap 3600] [--full]

Needs Python 3.11 and no packages. CLIENT_ID is a secret client with the scope subscriptions:read.

It can be killed at any time and run again. No change is missed, and none is applied twice:

- `updated_at` grows with every change of a subscription, so (id, updated_at) identifies a version. A version that is not
  newer than the copy is skipped.
- The newest `updated_at` at the start of a run is its upper bound. When the run is complete, it is stored as the high-water
  mark. A subscription that changes while the script reads moves beyond the bound, and the next run reads it.
- Both bounds are inclusive (gte, lte), because several subscriptions can have the same microsecond.
- The next run starts OVERLAP seconds before the mark, because a change can become visible after later ones: a request
  reads the clock before it commits (up to 10 s), the clocks of two instances differ, and the background worker stores a
  renewal or an expiry with the time at which it was due. So OVERLAP must be longer than the worker is ever late: alert
  on `perennial_subscriptions_late_seconds`. After a longer outage, run once with a larger --overlap.

Deleted subscriptions are not listed. --full reads all and removes those that no longer exist: run it weekly, for example.
"""

import argparse, json, os, random, sqlite3, sys, time, urllib.error, urllib.parse, urllib.request
from datetime import datetime, timedelta

PAGE = 200
MAX_ATTEMPTS = 8


def get(path, **query):
    """Reads from Perennial. Retries while the service is unavailable or limits the rate."""
    url = f"{os.environ.get('URL', 'http://127.0.0.1:8080')}{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"client-id": os.environ["CLIENT_ID"]})
    for attempt in range(MAX_ATTEMPTS):
        retry_after = 0
        try:
            with urllib.request.urlopen(request, timeout=15) as response:
                # Amounts stay exact: their text is stored as it was sent.
                return json.load(response, parse_float=str)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                sys.exit(f"GET {url}: {error.read().decode()}")
            retry_after = int(error.headers.get("retry-after", 0))
        except OSError as error:
            print(f"GET {path}: {error}", file=sys.stderr)
        time.sleep(max(retry_after, 0.5 * 2**attempt) * random.uniform(1, 1.5))
    sys.exit(f"GET {url}: no response after {MAX_ATTEMPTS} attempts")


def pages(**query):
    """Yields the pages of subscriptions, in order."""
    cursor = None
    while True:
        page = get("/subscriptions", limit=PAGE, **query, **({"cursor": cursor} if cursor else {}))
        yield page["data"]
        if not (cursor := page["next_cursor"]):
            return


def open_copy(path):
    copy = sqlite3.connect(path)
    copy.execute("CREATE TABLE IF NOT EXISTS subscriptions (id TEXT PRIMARY KEY, updated_at TEXT NOT NULL, record TEXT NOT NULL)")
    copy.execute("CREATE TABLE IF NOT EXISTS high_water_mark (updated_at TEXT NOT NULL)")
    return copy


def apply(copy, subscription):
    """Stores a version unless the copy has it or a newer one. Returns whether it was stored."""
    # Timestamps are UTC with six digits, so they sort as text. This is the place to do more with each change, in the
    # same transaction.
    stored = copy.execute(
        """INSERT INTO subscriptions VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE
           SET updated_at = excluded.updated_at, record = excluded.record WHERE excluded.updated_at > subscriptions.updated_at""",
        (subscription["id"], subscription["updated_at"], json.dumps(subscription)),
    )
    return stored.rowcount == 1


def sync(copy, mark, bound, overlap):
    """Applies what changed from `overlap` before the mark to the bound. Returns how many were read and how many were new."""
    since = (datetime.fromisoformat(mark) - overlap).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    read = applied = 0
    for page in pages(**{"sort": "updated_at", "updated_at[gte]": since, "updated_at[lte]": bound}):
        read += len(page)
        with copy:
            applied += sum(apply(copy, subscription) for subscription in page)
    return read, applied


def sync_all(copy):
    """Applies all, and removes what is no longer listed."""
    listed, applied = set(), 0
    # In the order of creation, no subscription moves while the pages are read.
    for page in pages(sort="created_at"):
        listed.update(subscription["id"] for subscription in page)
        with copy:
            applied += sum(apply(copy, subscription) for subscription in page)
    gone = [row for row in copy.execute("SELECT id FROM subscriptions") if row[0] not in listed]
    with copy:
        copy.executemany("DELETE FROM subscriptions WHERE id = ?", gone)
    return len(listed), applied, len(gone)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("copy", help="the SQLite database")
    parser.add_argument("--overlap", type=int, default=3600, metavar="SECONDS", help="how long before the mark to start")
    parser.add_argument("--full", action="store_true", help="read all, and remove what was deleted")
    args = parser.parse_args()
    copy = open_copy(args.copy)
    newest = get("/subscriptions", sort="-updated_at", limit=1)["data"]
    mark, = copy.execute("SELECT max(updated_at) FROM high_water_mark").fetchone()
    bound = newest[0]["updated_at"] if newest else mark
    removed = 0
    if args.full or not mark:
        read, applied, removed = sync_all(copy)
    else:
        read, applied = sync(copy, mark, bound, timedelta(seconds=args.overlap))
    with copy:
        copy.execute("DELETE FROM high_water_mark")
        copy.executemany("INSERT INTO high_water_mark VALUES (?)", [(bound,)] if bound else [])
    print(f"{read} read, {applied} changed, {removed} removed, up to {bound}")


if __name__ == "__main__":
    main()
