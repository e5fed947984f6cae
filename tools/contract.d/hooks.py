"""What schemathesis cannot know of the service: which values exist, and which refusals are right.

The document says which requests are well formed; whether a slug is free or a token is good depends on what
happened before. So most valid cases get values that fit (`before_call`). Every eighth of an operation goes out as
it was generated, and of some another eighth with a record that does not fit; what they are then refused for must
stand in EXCEPTIONS. Any other refusal is a failure.
"""

import atexit
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from itertools import count
from pathlib import Path
from urllib.parse import quote

import jsonschema_rs
import requests
import schemathesis
from schemathesis.core.parameters import ParameterLocation as In
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

PLANS, USERS, SUBSCRIPTIONS, PAYMENTS = "/subscription-plans", "/users", "/subscriptions", "/subscription-payments"
LIST, CREATE = f"GET {PLANS}", f"POST {PLANS}"
READ, UPDATE, DELETE = (f"{method} {PLANS}/{{slug}}" for method in ("GET", "PUT", "DELETE"))
FIND_USER, CREATE_USER, READ_USER = f"GET {USERS}", f"POST {USERS}", f"GET {USERS}/{{id}}"
LIST_SUBSCRIPTIONS, SUBSCRIBE = f"GET {SUBSCRIPTIONS}", f"POST {SUBSCRIPTIONS}"
READ_SUBSCRIPTION, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION = (
    f"{method} {SUBSCRIPTIONS}/{{id}}" for method in ("GET", "PUT", "DELETE")
)
LIST_PAYMENTS, PAY = f"GET {SUBSCRIPTIONS}/{{id}}/payments", f"POST {PAYMENTS}"
READ_PAYMENT, UPDATE_PAYMENT, DELETE_PAYMENT = (
    f"{method} {PAYMENTS}/{{payment_id}}" for method in ("GET", "PUT", "DELETE")
)
OF_SUBSCRIPTION = [READ_SUBSCRIPTION, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION, LIST_PAYMENTS]
OF_PAYMENT = [READ_PAYMENT, UPDATE_PAYMENT, DELETE_PAYMENT]
SAID_OF_SUBSCRIPTION, SAID_OF_PAYMENT = [SUBSCRIBE, UPDATE_SUBSCRIPTION], [PAY, UPDATE_PAYMENT]
SIGN_UP, SIGN_IN, REFRESH, LOGGED_IN = (
    f"POST /authentication/{name}" for name in ("sign-up", "sign-in", "refresh-token", "user-logged-in")
)
SESSIONS, DELETE_ACCOUNT = "GET /authentication/tokens", "DELETE /authentication/delete-my-account/{auth_id}"
ENDING = [f"POST /authentication/tokens/{name}" for name in ("logout", "revoke-all", "revoke-all-except-current")]
OWN_ENTITLEMENTS, ENTITLEMENTS = "GET /entitlements", "GET /entitlements/{user_id}"
WITH_BEARER = [LOGGED_IN, SESSIONS, DELETE_ACCOUNT, OWN_ENTITLEMENTS, *ENDING]
WITH_KEY = [CREATE, CREATE_USER, SUBSCRIBE, PAY]
WITH_CURSOR = [LIST, LIST_SUBSCRIPTIONS, LIST_PAYMENTS]
CONDITIONAL = [UPDATE, DELETE, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION, UPDATE_PAYMENT, DELETE_PAYMENT]

# A valid request may be refused with this status, for this reason (the problem's code, after the field's
# pointer if it is about one), by these operations; and why the document cannot rule it out.
EXCEPTIONS = [
    (404, "plan_not_found", [READ, UPDATE, DELETE], "Which plans there are is state; the slug is well formed."),
    (409, "slug_taken", [CREATE], "Which slugs are taken is state; the slug is well formed."),
    (409, "plan_in_use", [DELETE], "Which subscriptions point at a plan is state."),
    (422, "idempotency_key_reused", WITH_KEY, "Which keys were used with another body is state."),
    (412, "precondition_failed", CONDITIONAL, "The ETag that a record has now is state; any other is refused."),
    (400, "invalid_cursor", WITH_CURSOR, "A cursor is signed, for one list with its filters and order."),
    (422, "/currency unknown_value", [CREATE, *SAID_OF_PAYMENT], "Only some three-letter words are currencies."),
    (422, "/price amount_scale_invalid", [CREATE, UPDATE], "How many decimals fit depends on the plan's currency."),
    (422, "/price out_of_range", [CREATE, UPDATE], "The largest amount depends on the plan's currency."),
    (404, "user_not_found", [READ_USER, ENTITLEMENTS], "Which users there are is state; the id is well formed."),
    (409, "email_in_use", [CREATE_USER], "Which e-mail addresses are taken is state; this one is well formed."),
    (401, "invalid_token", [SIGN_UP, SIGN_IN, *WITH_BEARER], "A token is signed, for one user and a while."),
    (403, "not_your_account", [DELETE_ACCOUNT], "Whose account it is, the bearer says."),
    (401, "invalid_grant", [REFRESH], "A refresh token is one that was given out, and the newest of its session."),
    (404, "subscription_not_found", OF_SUBSCRIPTION, "Which subscriptions there are is state; the id is well formed."),
    (422, "/user_id unknown_reference", [SUBSCRIBE], "Which users there are is state; the id is well formed."),
    (422, "/subscription_plan_id unknown_reference", SAID_OF_SUBSCRIPTION, "Which plans there are is state."),
    (422, "/subscription_plan_id plan_inactive", SAID_OF_SUBSCRIPTION, "Which plans are offered is state."),
    (409, "duplicate_external_id", [*SAID_OF_SUBSCRIPTION, *SAID_OF_PAYMENT], "Which ids are taken is state."),
    (409, "invalid_transition", [UPDATE_SUBSCRIPTION, UPDATE_PAYMENT], "Where a record stands now is state."),
    (422, "/renews_at inconsistent_dates", SAID_OF_SUBSCRIPTION, "It depends on the begin, and on the billing cycle."),
    (422, "/ends_at inconsistent_dates", SAID_OF_SUBSCRIPTION, "It depends on the begin."),
    (422, "/ends_at inconsistent_status", SAID_OF_SUBSCRIPTION, "It depends on the status, and on the time now."),
    (422, "/is_active inconsistent_status", SAID_OF_SUBSCRIPTION, "It depends on the status, and on the time now."),
    (404, "payment_not_found", OF_PAYMENT, "Which payments there are is state; the id is well formed."),
    (422, "/subscription_id unknown_reference", SAID_OF_PAYMENT, "Which subscriptions there are is state."),
    (409, "payment_settled", [UPDATE_PAYMENT, DELETE_PAYMENT], "Whether money has come is state."),
    (422, "/amount amount_scale_invalid", SAID_OF_PAYMENT, "How many decimals fit depends on the currency."),
    (422, "/amount out_of_range", SAID_OF_PAYMENT, "The largest amount depends on the currency."),
    (422, "/refunded_amount amount_scale_invalid", SAID_OF_PAYMENT, "How many decimals fit depends on the currency."),
    (422, "/refunded_amount out_of_range", SAID_OF_PAYMENT, "It depends on the amount, and on the currency."),
    (422, "/refunded_amount inconsistent_status", SAID_OF_PAYMENT, "It depends on the status."),
]

# Currencies of every number of decimals that there is.
DECIMALS = {"USD": 2, "EUR": 2, "GBP": 2, "CHF": 2, "JPY": 0, "KWD": 3, "CLF": 4}

# What a record is made as, so that a case can give it this status.
BEFORE = {
    SUBSCRIPTIONS: {"pending": "pending", "incomplete": "pending"}
    | dict.fromkeys(["on_trial", "trialing", "trial"], "paused"),
    PAYMENTS: {"pending": "failed"}
    | dict.fromkeys(["partially_refunded", "partial_refund", "refunded", "disputed", "chargeback"], "completed"),
}

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
turns = Counter()  # how many valid cases an operation has had, apart from sequences
named = set()  # ids that an answer has named
external_ids = set()  # those that cases have sent, or something like them
next_progress = time.time() + 5


def ask(method, path, expected=(200,), **arguments):
    """Asks the service for something that a case needs; these requests are not counted as cases."""
    answer = session.request(method, URL + path, timeout=15, **arguments)
    if answer.status_code not in expected:
        raise RuntimeError(f"{method} {answer.url}: {answer.status_code} {answer.text}")
    note_ids(answer)
    return answer


def note_ids(answer):
    if answer.status_code < 300:  # a refusal repeats what was sent
        named.update(re.findall(r"[a-z]+_[0-9a-f]{32}", answer.text))


def make(kind, body):
    return ask("POST", kind, json=body, expected=(201,))


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


def currency_of(number):
    return list(DECIMALS)[number % len(DECIMALS)]


def fit_create(case, number, in_sequence):
    body = case.body
    if body.get("currency"):
        body["currency"] = currency_of(number)
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
    return find(PLANS, slug) or make(PLANS, plan)


def plan_in_use(case, number):
    """A plan for the case that cannot be deleted."""
    case.path_parameters["slug"] = fresh(case.path_parameters["slug"], number)
    plan = plan_for(case, number, False)
    make(SUBSCRIPTIONS, subscription(subscription_plan_id=plan.json()["id"]))
    return plan


def fit_cursor(case):
    query = {name: value for name, value in case.query.items() if name not in ("cursor", "limit")}
    page = ask("GET", case.formatted_path, params=query | {"limit": 1}, expected=(200, 400, 404))
    cursor = page.json().get("next_cursor")
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


def own_user():
    return account()["tokens"]["auth_id"]


@cache
def own_plan():
    plan = {"name": "Of this run", "slug": RUN, "price": 1, "billing_cycle": "monthly"}
    return make(PLANS, plan).json()["id"]


def subscription(**said):
    """One to make. It began long ago and renews far ahead, so that any date that is sent fits between."""
    dates = {"starts_at": "1970-01-01T00:00:00Z", "renews_at": "2100-01-01T00:00:00Z"}
    return {"user_id": own_user(), "subscription_plan_id": own_plan()} | dates | said


def payment(**said):
    """One to make."""
    return {"subscription_id": late(), "amount": 20, "currency": "USD"} | said


def late():
    """A subscription that a payment makes active."""
    return make(SUBSCRIPTIONS, subscription(status="past_due")).json()["id"]


def beginning(kind, body, fits):
    """The record to make that a case can then change as its body says, or that hardly changes any more."""
    if not fits:
        status = "expired" if kind == SUBSCRIPTIONS else "partially_refunded"
    elif kind == PAYMENTS and "refunded_amount" in body and "status" not in body:
        status = "partially_refunded"
    else:
        status = BEFORE[kind].get(body.get("status"))
    said = {"status": status} if status else {}
    return subscription(**said) if kind == SUBSCRIPTIONS else payment(**said)


def fit_references(body):
    for name, existing in (("user_id", own_user), ("subscription_plan_id", own_plan), ("subscription_id", late)):
        if name in body and body[name] not in named:
            body[name] = existing()


def fit_external_id(body, name, number, in_sequence):
    text = body.get(name)
    if text and (in_sequence or text in external_ids):
        body[name] = fresh(text, number)
    external_ids.add(text)


def fit_subscription(body, before, number, in_sequence):
    """Makes what is sent of a subscription agree with itself, and with what it was before."""
    fit_external_id(body, "external_subscription_id", number, in_sequence)
    said, now = before | body, datetime.now(UTC).isoformat()
    status, begin = said.get("status", "active"), said.get("starts_at")
    if said.get("billing_cycle") in ("lifetime", "one_time") and body.get("renews_at"):
        body["renews_at"] = None
    if status in ("expired", "incomplete_expired", "ended") and (body.get("ends_at") or "") > now:
        body["ends_at"] = None
    said = before | body
    # Without the Z, the order of the texts is that of the instants.
    dates = [said[name] for name in ("starts_at", "renews_at", "ends_at") if said.get(name)]
    first = min(dates, key=lambda date: date[:-1], default=now)
    if begin and first != begin:
        body["starts_at"] = first
    begun_not_ended = first <= now < (said.get("ends_at") or "9999")
    gives_access = status in ("active", "past_due", "on_trial", "trialing", "trial") and begun_not_ended
    if body.get("is_active") and not gives_access:
        body["is_active"] = False


def fit_payment(body, before, number, in_sequence):
    """The same for a payment."""
    fit_external_id(body, "external_payment_id", number, in_sequence)
    if "currency" in body and body["currency"].upper() not in DECIMALS:
        body["currency"] = currency_of(number)
    currency = (before | body).get("currency", "USD").upper()
    for name in ("amount", "refunded_amount"):
        if body.get(name) is not None:
            body[name] = fitting(body[name], currency)
    said = before | body
    back, amount = body.get("refunded_amount"), Decimal(str(said.get("amount", 0)))
    if back is not None and said.get("status") not in ("partially_refunded", "partial_refund"):
        body["refunded_amount"] = fitting(type(back)(amount if said.get("status") == "refunded" else 0), currency)
    elif back is not None and not 0 < Decimal(str(back)) < amount:
        body["refunded_amount"] = fitting(type(back)(amount / 2), currency)


def record_for(case, kind, body, fit):
    """The subscription or payment that a case is about; made, if no answer has named it."""
    [(parameter, name)] = case.path_parameters.items()
    record = find(kind, name) if name in named else None
    before = record.json() if record else beginning(kind, body, fit)
    if fit:
        fit(body, before)
    # What an earlier call of a sequence has deleted must stay so; deleting it again would test little.
    if name not in named or (not record and case.method == "DELETE"):
        if fit and before.get("status") in ("completed", "partially_refunded"):
            # Money has come, so these cannot change.
            before |= {field: body[field] for field in ("amount", "currency", "subscription_id") if field in body}
        record = make(kind, before)
        case.path_parameters[parameter] = record.json()["id"]
    return record


def take_out_wrong(operation, body):
    """What the document does not allow in a body. With the rest fitted, it is what the case is refused for."""
    rules = operation.get_body_for_media_type("application/json").validation_schema["properties"] if body else {}
    right = [name for name in body if name in rules and jsonschema_rs.is_valid(rules[name], body[name])]
    return {name: body.pop(name) for name in list(body) if name not in right}


def fit_said(case, label, path, fits, number, in_sequence):
    """Fits what a case says of a subscription or payment; the one that it is about, if it is about one."""
    kind, fit = (PAYMENTS, fit_payment) if label in (*OF_PAYMENT, PAY) else (SUBSCRIPTIONS, fit_subscription)
    fit = partial(fit, number=number, in_sequence=in_sequence) if fits else None
    body, record = case.body if isinstance(case.body, dict) else {}, None
    wrong = take_out_wrong(case.operation, body)
    fit_references(body)
    if label not in (SUBSCRIBE, PAY) and path:
        record = record_for(case, kind, body, fit)
    elif fit:
        fit(body, {})
    body |= wrong
    return record


@schemathesis.hook
def before_call(context, case, kwargs):
    meta, label, number = case.meta, case.operation.label, next(numbers)
    # Sequences are repeated with small changes, so equal beginnings must end equally whatever went before.
    in_sequence = meta.phase.name == TestPhase.STATEFUL
    valid = meta.generation.mode.is_positive and not in_sequence
    turns[label] += valid
    as_generated, fits = valid and turns[label] % 8 == 0, not valid or turns[label] % 8 != 4
    another_method = case.method.upper() != case.operation.method.upper()
    if as_generated or another_method:
        return
    places = (In.PATH, In.QUERY, In.HEADER, In.BODY)
    path, query, headers, body = (not meta.is_negative_at(place) for place in places)
    if isinstance(case.body, dict):
        case.body = dict(case.body)  # that of an example is shared by all cases that are made from it
    body = body and isinstance(case.body, dict)
    if label == CREATE and body:
        fit_create(case, number, in_sequence)
    if label in WITH_KEY and headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = fresh(case.headers["Idempotency-Key"], number)
    record = None
    if label in (READ, UPDATE, DELETE) and path:
        record = plan_for(case, number, in_sequence)
        if record and body and label == UPDATE and "price" in case.body:
            case.body["price"] = fitting(case.body["price"], record.json()["currency"])
    if label == DELETE and path and not fits:
        record = plan_in_use(case, number)
    if label in (*OF_SUBSCRIPTION, *OF_PAYMENT, SUBSCRIBE, PAY):
        record = fit_said(case, label, path, fits, number, in_sequence)
    if record and headers and "If-Match" in case.headers:
        current = record.headers["ETag"]
        case.headers["If-Match"] = (current, "*", f'"another", {current}')[number % 3]
    if label == LIST_SUBSCRIPTIONS and query and "user_id" in case.query and number % 2:
        case.query["user_id"] = own_user()
    if label in WITH_CURSOR and path and query and "cursor" in case.query:
        if label == LIST_PAYMENTS and record:
            for _ in range(2):
                make(PAYMENTS, payment(subscription_id=record.json()["id"]))
        fit_cursor(case)
    if label == FIND_USER and query and number % 2:
        case.query["email"] = account()["credentials"]["email"]
    if label in (READ_USER, ENTITLEMENTS) and path:
        name = "id" if label == READ_USER else "user_id"
        if not find(USERS, case.path_parameters[name]):
            case.path_parameters[name] = own_user()
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
    note_ids(response)
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
