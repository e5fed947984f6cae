"""What schemathesis cannot know of the service: which values exist, and which refusals are right.

The document says which requests are well formed; whether a slug is free or a token is good depends on what
happened before. So most valid cases get values that fit (`before_call`). Every eighth goes out as it was
generated, and what it is then refused for must stand in EXCEPTIONS; any other refusal is a failure.
"""

import atexit
import json
import os
import re
import subprocess
import sys
import time
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import requests
import schemathesis
from schemathesis.core.parameters import ParameterLocation as In
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

PLANS, USERS = "/subscription-plans", "/users"
LIST, CREATE = f"GET {PLANS}", f"POST {PLANS}"
READ, UPDATE, DELETE = (f"{method} {PLANS}/{{slug}}" for method in ("GET", "PUT", "DELETE"))
FIND_USER, CREATE_USER, READ_USER = f"GET {USERS}", f"POST {USERS}", f"GET {USERS}/{{id}}"
SIGN_UP, SIGN_IN, REFRESH, LOGGED_IN = (
    f"POST /authentication/{name}" for name in ("sign-up", "sign-in", "refresh-token", "user-logged-in")
)
SESSIONS, DELETE_ACCOUNT = "GET /authentication/tokens", "DELETE /authentication/delete-my-account/{auth_id}"
ENDING = [f"POST /authentication/tokens/{name}" for name in ("logout", "revoke-all", "revoke-all-except-current")]
WITH_BEARER = [LOGGED_IN, SESSIONS, DELETE_ACCOUNT, *ENDING]

# A valid request may be refused with this status, for this reason (the problem's code, after the field's
# pointer if it is about one), by these operations; and why the document cannot rule it out.
EXCEPTIONS = [
    (404, "plan_not_found", [READ, UPDATE, DELETE], "Which plans there are is state; the slug is well formed."),
    (409, "slug_taken", [CREATE], "Which slugs are taken is state; the slug is well formed."),
    (422, "idempotency_key_reused", [CREATE, CREATE_USER], "Which keys were used with another body is state."),
    (412, "precondition_failed", [UPDATE, DELETE], "The ETag that a plan has now is state; any other is refused."),
    (400, "invalid_cursor", [LIST], "A cursor is signed, for one list with its filters and order."),
    (422, "/currency unknown_value", [CREATE], "Of all three-letter words, only those of ISO 4217 are currencies."),
    (422, "/price amount_scale_invalid", [CREATE, UPDATE], "How many decimals fit depends on the plan's currency."),
    (422, "/price out_of_range", [CREATE, UPDATE], "The largest amount depends on the plan's currency."),
    (404, "user_not_found", [READ_USER], "Which users there are is state; the id is well formed."),
    (409, "email_in_use", [CREATE_USER], "Which e-mail addresses are taken is state; this one is well formed."),
    (401, "invalid_token", [SIGN_UP, SIGN_IN, *WITH_BEARER], "A token is signed, for one user and a while."),
    (403, "not_your_account", [DELETE_ACCOUNT], "Whose account it is, the bearer says."),
    (401, "invalid_grant", [REFRESH], "A refresh token is one that was given out, and the newest of its session."),
]

# Currencies of every number of decimals that there is.
DECIMALS = {"USD": 2, "EUR": 2, "JPY": 0, "KWD": 3, "CLF": 4}

# In what this run makes, so that it is new, and known again.
RUN = f"run{os.environ['CONTRACT_SEED']}"
MARK = f".{RUN}."
WANTED = int(os.environ["CONTRACT_CASES"])
STARTED = float(os.environ["CONTRACT_STARTED"])
TALLY = Path(os.environ["CONTRACT_TALLY"])
URL = os.environ["CONTRACT_URL"]

tally = json.loads(TALLY.read_text())
atexit.register(lambda: TALLY.write_text(json.dumps(tally)))
session = requests.Session()
session.headers["client-id"] = os.environ["CONTRACT_CLIENT"]
session.trust_env = False  # looking for proxies before every request takes longer than the request
numbers = count()
next_progress = time.time() + 5


def ask(method, path, expected=(200,), **arguments):
    """Asks the service for something that a case needs; these requests are not counted as cases."""
    answer = session.request(method, URL + path, timeout=15, **arguments)
    if answer.status_code not in expected:
        raise RuntimeError(f"{method} {answer.url}: {answer.status_code} {answer.text}")
    return answer


def find(kind, name):
    answer = ask("GET", f"{kind}/{quote(name, safe='')}", (200, 404))
    return answer if answer.status_code == 200 else None


def fitting(price, currency):
    """The price in the same JSON type, cut to the currency's decimals and its largest amount."""
    decimals = DECIMALS.get(currency)
    # Of a currency that a case happened to name: so many whole units fit any.
    largest = Decimal(10) ** (8 if decimals is None else 12 - decimals)
    try:
        amount = min(Decimal(str(price)), largest)
    except InvalidOperation:  # an exponent beyond what Decimal takes
        amount = largest
    amount = amount.quantize(Decimal(1).scaleb(-(decimals or 0)), "ROUND_DOWN")
    return str(amount) if isinstance(price, str) else float(amount)


def fresh(text, number):
    """A slug, a key or the like that nobody has used."""
    return f"{text[:40]}{MARK}{number}"


def fit_create(case, number, in_sequence):
    body = case.body
    if body.get("currency"):
        body["currency"] = list(DECIMALS)[number % len(DECIMALS)]
    body["price"] = fitting(body["price"], body.get("currency") or "USD")
    if in_sequence or find(PLANS, body["slug"]):
        body["slug"] = fresh(body["slug"], number)


def plan_for(case, number, in_sequence):
    """The plan that a case is about; made, if there is none."""
    slug = case.path_parameters["slug"]
    if in_sequence:
        if MARK in slug:
            # Made by an earlier call of this sequence. If one of them has deleted it, it must stay so.
            return find(PLANS, slug)
        slug = case.path_parameters["slug"] = fresh(slug, number)
    plan = {"name": "Made for a case", "slug": slug, "price": 1, "billing_cycle": "monthly"}
    return find(PLANS, slug) or ask("POST", PLANS, json=plan, expected=(201,))


def fit_cursor(case):
    query = {name: value for name, value in case.query.items() if name not in ("cursor", "limit")}
    cursor = ask("GET", PLANS, params=query | {"limit": 1}, expected=(200, 400)).json().get("next_cursor")
    if cursor:
        case.query["cursor"] = cursor
    else:
        del case.query["cursor"]


def unused(email, number, in_sequence):
    """This e-mail address, or one like it that nobody has."""
    if in_sequence or ask("GET", USERS, params={"email": email}).json()["data"]:
        name, domain = email.split("@")
        # The document allows two dots, and these two are in what marks it.
        return f"{fresh(name.split('.')[0], number)}@{domain}"
    return email


def credentials(email):
    """What the user with this e-mail address signs up and in with."""
    command = [os.environ["CONTRACT_BINARY"], "sandbox", "token", "--minutes=1440", "--", email]
    token = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return {"access_token": token, "email": email}


@cache
def account():
    """An account that this run has made."""
    own = credentials(f"{RUN}@example.com")
    answer = ask("POST", "/authentication/sign-up", json=own, expected=(201,))
    return {"credentials": own, "tokens": answer.json()}


def newest_tokens():
    """Of the session of that account. If a case has used the ones before, these are what it got."""
    tokens = account()["tokens"]
    used = {"refresh_token": tokens["refresh_token"]}
    tokens |= ask("POST", "/authentication/refresh-token", json=used).json()
    return tokens


def new_account(number):
    """The tokens of an account that a case may do away with."""
    own = credentials(f"{fresh('leaver', number)}@example.com")
    return ask("POST", "/authentication/sign-up", json=own, expected=(201,)).json()


@cache
def leaver():
    """What an account signs in with whose sessions cases may end."""
    own = credentials(f"{RUN}.leaver@example.com")
    ask("POST", "/authentication/sign-up", json=own, expected=(201,))
    return own


def bearer_for(label, number):
    """The tokens of somebody who may do this, and what it does."""
    if label == DELETE_ACCOUNT:
        return new_account(number)
    if label in ENDING:
        return ask("POST", "/authentication/sign-in", json=leaver()).json()
    return newest_tokens()


@schemathesis.hook
def before_call(context, case, kwargs):
    meta, label, number = case.meta, case.operation.label, next(numbers)
    # Sequences are repeated with small changes, so equal beginnings must end equally whatever went before.
    in_sequence = meta.phase.name == TestPhase.STATEFUL
    as_generated = meta.generation.mode.is_positive and number % 8 == 0 and not in_sequence
    another_method = case.method.upper() != case.operation.method.upper()
    if as_generated or another_method:
        return
    places = (In.PATH, In.QUERY, In.HEADER, In.BODY)
    path, query, headers, body = (not meta.is_negative_at(place) for place in places)
    body = body and isinstance(case.body, dict)
    if body:
        case.body = dict(case.body)  # that of an example is shared by all cases that are made from it
    if label == LIST and query and "cursor" in case.query:
        fit_cursor(case)
    if label == CREATE and body:
        fit_create(case, number, in_sequence)
    if label in (CREATE, CREATE_USER) and headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = fresh(case.headers["Idempotency-Key"], number)
    if label in (READ, UPDATE, DELETE) and path:
        plan = plan_for(case, number, in_sequence)
        if plan and headers and "If-Match" in case.headers:
            current = plan.headers["ETag"]
            case.headers["If-Match"] = (current, "*", f'"another", {current}')[number % 3]
        if plan and body and label == UPDATE and "price" in case.body:
            case.body["price"] = fitting(case.body["price"], plan.json()["currency"])
    if label == FIND_USER and query and number % 2:
        case.query["email"] = account()["credentials"]["email"]
    if label == READ_USER and path and not find(USERS, case.path_parameters["id"]):
        case.path_parameters["id"] = account()["tokens"]["auth_id"]
    if label in (CREATE_USER, SIGN_UP) and body:
        email = unused(case.body["email"], number, in_sequence)
        case.body |= credentials(email) if label == SIGN_UP else {"email": email}
    if label == SIGN_IN and body:
        case.body |= account()["credentials"]
    if label == REFRESH and body:
        case.body["refresh_token"] = newest_tokens()["refresh_token"]
    if label in WITH_BEARER and headers:
        tokens = bearer_for(label, number)
        case.headers["Authorization"] = f"Bearer {tokens['access_token']}"
        if label == DELETE_ACCOUNT and path:
            case.path_parameters["auth_id"] = tokens["auth_id"]
        # Otherwise schemathesis takes the token for a generated one, and reports that it is accepted.
        case._has_explicit_auth = True


@schemathesis.hook
def after_call(context, case, response):
    global next_progress
    row = tally["operations"].setdefault(case.operation.label, {"cases": 0, "valid": 0, "accepted": 0})
    row["cases"] += 1
    if case.meta.generation.mode.is_positive:
        row["valid"] += 1
        row["accepted"] += response.status_code < 300
    if time.time() > next_progress:
        next_progress = time.time() + 5
        sent = sum(row["cases"] for row in tally["operations"].values())
        print(f"  {sent:,} of {WANTED:,} cases, {time.time() - STARTED:.0f} s", file=sys.stderr, flush=True)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure is one: not if every reason for the refusal is an exception."""
    if not isinstance(failure, RejectedPositiveData):
        return True
    problem = response.json()
    fields = problem.get("errors") or [{"pointer": "", "code": problem["code"]}]
    reasons = {f"{re.sub(r'/[0-9]+$', '/*', field['pointer'])} {field['code']}".strip() for field in fields}
    allowed = {
        reason
        for status, reason, operations, _ in EXCEPTIONS
        if status == response.status_code and case.operation.label in operations
    }
    for reason in reasons:
        met = tally["exceptions" if reason in allowed else "refusals"]
        name = f"{case.operation.label} {reason}"
        met[name] = met.get(name, 0) + 1
    return not reasons <= allowed
