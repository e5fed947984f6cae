"""Hooks that make generated requests fit the state of the service, and list the expected rejections.

The document accepts everything that the service accepts, which is more than is worth generating: `before_load_schema` narrows
its patterns to common values. The document describes well-formed requests. Whether a slug is free or a token is valid depends on earlier requests. So most
valid cases get values that fit (`before_call`). Every eighth case of an operation is sent as generated, and for some operations
another eighth with a record that does not fit. The errors of those must be listed in EXCEPTIONS. Any other rejection of a valid
request is a failure.
"""

import atexit
import hashlib
import hmac
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
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation as In
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

PLANS, USERS, SUBSCRIPTIONS, PAYMENTS = "/subscription-plans", "/users", "/subscriptions", "/subscription-payments"
LIST, CREATE = f"GET {PLANS}", f"POST {PLANS}"
READ, UPDATE, DELETE = (f"{method} {PLANS}/{{slug}}" for method in ("GET", "PUT", "DELETE"))
LIST_USERS, CREATE_USER = f"GET {USERS}", f"POST {USERS}"
READ_USER, UPDATE_USER, DELETE_USER = (f"{method} {USERS}/{{id}}" for method in ("GET", "PUT", "DELETE"))
TIMELINE = f"GET {USERS}/{{id}}/timeline"
OF_USER = [READ_USER, UPDATE_USER, DELETE_USER, TIMELINE, f"POST {USERS}/{{id}}/export"]
OF_USER += [f"GET {USERS}/{{id}}/{part}" for part in ("sessions", "identities")]
LIST_SUBSCRIPTIONS, SUBSCRIBE = f"GET {SUBSCRIPTIONS}", f"POST {SUBSCRIPTIONS}"
READ_SUBSCRIPTION, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION = (
    f"{method} {SUBSCRIPTIONS}/{{id}}" for method in ("GET", "PUT", "DELETE")
)
LIST_ALL_PAYMENTS = "GET /payments"
LIST_PAYMENTS, PAY = f"GET {SUBSCRIPTIONS}/{{id}}/payments", f"POST {PAYMENTS}"
LEDGER, PREVIEW = f"GET {SUBSCRIPTIONS}/{{id}}/ledger", f"POST {SUBSCRIPTIONS}/{{id}}/preview"
READ_PAYMENT, UPDATE_PAYMENT, DELETE_PAYMENT = (
    f"{method} {PAYMENTS}/{{payment_id}}" for method in ("GET", "PUT", "DELETE")
)
OF_SUBSCRIPTION = [READ_SUBSCRIPTION, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION, LIST_PAYMENTS, LEDGER, PREVIEW]
OF_PAYMENT = [READ_PAYMENT, UPDATE_PAYMENT, DELETE_PAYMENT]
WITH_SUBSCRIPTION_BODY, WITH_PAYMENT_BODY = [SUBSCRIBE, UPDATE_SUBSCRIPTION, PREVIEW], [PAY, UPDATE_PAYMENT]
SIGN_UP, SIGN_IN, REFRESH, LOGGED_IN = (
    f"POST /authentication/{name}" for name in ("sign-up", "sign-in", "refresh-token", "user-logged-in")
)
SESSIONS, DELETE_ACCOUNT = "GET /authentication/tokens", "DELETE /authentication/delete-my-account/{auth_id}"
END_SESSION = "DELETE /authentication/tokens/{id}"
ENDING = [END_SESSION, *(f"POST /authentication/tokens/{name}" for name in ("logout", "revoke-all", "revoke-all-except-current"))]
OWN_ENTITLEMENTS, ENTITLEMENTS = "GET /entitlements", "GET /entitlements/{user_id}"
ENDPOINTS, EVENTS, READ_EVENT = "/webhook-endpoints", "GET /events", "GET /events/{id}"
LIST_ENDPOINTS, CREATE_ENDPOINT = f"GET {ENDPOINTS}", f"POST {ENDPOINTS}"
READ_ENDPOINT, UPDATE_ENDPOINT, DELETE_ENDPOINT = (f"{method} {ENDPOINTS}/{{id}}" for method in ("GET", "PUT", "DELETE"))
ATTEMPTS, REPLAY = f"GET {ENDPOINTS}/{{id}}/attempts", f"POST {ENDPOINTS}/{{id}}/replays"
OF_ENDPOINT = [READ_ENDPOINT, UPDATE_ENDPOINT, DELETE_ENDPOINT, ATTEMPTS, REPLAY]
OF_ENDPOINT += [f"POST {ENDPOINTS}/{{id}}/{action}" for action in ("enable", "rotate-secret", "test")]
PAYMENT_ACCOUNTS, NOTIFICATIONS = "/payment-accounts", "/payment-notifications"
LIST_PAYMENT_ACCOUNTS, CREATE_PAYMENT_ACCOUNT = f"GET {PAYMENT_ACCOUNTS}", f"POST {PAYMENT_ACCOUNTS}"
READ_PAYMENT_ACCOUNT, UPDATE_PAYMENT_ACCOUNT, DELETE_PAYMENT_ACCOUNT = (
    f"{method} {PAYMENT_ACCOUNTS}/{{id}}" for method in ("GET", "PUT", "DELETE")
)
ROTATE_PAYMENT_SECRET = f"POST {PAYMENT_ACCOUNTS}/{{id}}/rotate-secret"
OF_PAYMENT_ACCOUNT = [READ_PAYMENT_ACCOUNT, UPDATE_PAYMENT_ACCOUNT, DELETE_PAYMENT_ACCOUNT, ROTATE_PAYMENT_SECRET]
LIST_NOTIFICATIONS, RECEIVE = f"GET {NOTIFICATIONS}", f"POST {NOTIFICATIONS}/{{id}}"
OF_NOTIFICATION = [f"GET {NOTIFICATIONS}/{{id}}", f"POST {NOTIFICATIONS}/{{id}}/replay"]
CLIENTS = "/clients"
LIST_CLIENTS, CREATE_CLIENT = f"GET {CLIENTS}", f"POST {CLIENTS}"
READ_CLIENT, UPDATE_CLIENT, DISABLE_CLIENT = (f"{method} {CLIENTS}/{{id}}" for method in ("GET", "PUT", "DELETE"))
OF_CLIENT = [READ_CLIENT, UPDATE_CLIENT, DISABLE_CLIENT, f"POST {CLIENTS}/{{id}}/rotate"]
PROVIDERS = "/identity-providers"
LIST_PROVIDERS, CREATE_PROVIDER = f"GET {PROVIDERS}", f"POST {PROVIDERS}"
READ_PROVIDER, UPDATE_PROVIDER, DELETE_PROVIDER = (f"{method} {PROVIDERS}/{{id}}" for method in ("GET", "PUT", "DELETE"))
OF_PROVIDER, WITH_PROVIDER_BODY = [READ_PROVIDER, UPDATE_PROVIDER, DELETE_PROVIDER], [CREATE_PROVIDER, UPDATE_PROVIDER]
SET_CLOCK, DEMO_DATA = "PUT /sandbox/clock", "POST /sandbox/demo-data"
CHECKOUT, PORTAL = "POST /checkouts", "POST /billing-portal-sessions"
BUYING = [CHECKOUT, PORTAL]
WITH_BEARER = [LOGGED_IN, SESSIONS, DELETE_ACCOUNT, OWN_ENTITLEMENTS, *ENDING]
WITH_KEY = [CREATE, CREATE_USER, SUBSCRIBE, PAY, CREATE_ENDPOINT, REPLAY, CREATE_PAYMENT_ACCOUNT, CREATE_CLIENT, CREATE_PROVIDER]
WITH_CURSOR = [LIST, LIST_SUBSCRIPTIONS, LIST_PAYMENTS, LIST_ALL_PAYMENTS, LIST_USERS, LEDGER, LIST_ENDPOINTS, ATTEMPTS]
WITH_CURSOR += [LIST_PAYMENT_ACCOUNTS, LIST_NOTIFICATIONS, LIST_CLIENTS, LIST_PROVIDERS]
CONDITIONAL = [UPDATE_ENDPOINT, DELETE_ENDPOINT, UPDATE, DELETE, UPDATE_USER, DELETE_USER, UPDATE_SUBSCRIPTION, DELETE_SUBSCRIPTION, UPDATE_PAYMENT, DELETE_PAYMENT]
CONDITIONAL += [UPDATE_PAYMENT_ACCOUNT, DELETE_PAYMENT_ACCOUNT, UPDATE_CLIENT, DISABLE_CLIENT, UPDATE_PROVIDER, DELETE_PROVIDER]
WITH_OWN_ID = [UPDATE, UPDATE_ENDPOINT, UPDATE_USER, UPDATE_SUBSCRIPTION, PREVIEW, UPDATE_PAYMENT, UPDATE_PAYMENT_ACCOUNT, UPDATE_CLIENT, UPDATE_PROVIDER]
STAFF, SESSION = "/staff", "/console/session"
INVITE_STAFF, UPDATE_STAFF, REMOVE_STAFF = f"POST {STAFF}", f"PUT {STAFF}/{{id}}", f"DELETE {STAFF}/{{id}}"
OF_STAFF = [UPDATE_STAFF, REMOVE_STAFF]
CHANGE_SESSION = [f"{method} {SESSION}" for method in ("POST", "PUT", "DELETE")]
WITH_KEY += [INVITE_STAFF]
WITH_OWN_ID += [UPDATE_STAFF]

# Expected rejections of valid requests: the status, the reason (the problem code, after the field's pointer if there is one),
# the operations, and why the document cannot rule it out.
REPORTS = [f"GET /reports/{name}" for name in ("revenue", "churn", "trials", "cohorts", "payments", "changes")]
WITH_CURSOR += ["GET /reports/changes"]
EXCEPTIONS = [
    (400, "?plan invalid_parameter", REPORTS, "Which plans exist is state; the slug is well formed."),
    (400, "?from invalid_parameter", REPORTS, "The first day cannot be after the last, and a report has at most 1,100 intervals."),
    (404, "plan_not_found", [READ, UPDATE, DELETE], "Which plans exist is state; the slug is well formed."),
    (409, "slug_taken", [CREATE], "Which slugs are taken is state; the slug is well formed."),
    (409, "plan_in_use", [DELETE], "Which subscriptions point at a plan is state."),
    (422, "idempotency_key_reused", WITH_KEY, "Which keys were used with another body is state."),
    (412, "precondition_failed", CONDITIONAL, "The current ETag of a record is state; any other is rejected."),
    (400, "invalid_cursor", WITH_CURSOR, "A cursor is signed for one list with its filters and order."),
    (422, "/slug immutable_field", [UPDATE], "The current slug of a plan is state."),
    (422, "/currency immutable_field", [UPDATE, UPDATE_SUBSCRIPTION, PREVIEW], "The currency of a record is state."),
    (422, "/id immutable_field", WITH_OWN_ID, "The id must be that of the path."),
    (422, "/user_id immutable_field", [UPDATE_SUBSCRIPTION, PREVIEW], "The user of a subscription is state."),
    (422, "/external_user_id immutable_field", [UPDATE_SUBSCRIPTION, PREVIEW], "The user of a subscription is state."),
    (422, "/created_at immutable_field", WITH_OWN_ID, "When a record was created is state."),
    (422, "/price amount_scale_invalid", [CREATE, UPDATE, *WITH_SUBSCRIPTION_BODY], "The number of decimals depends on the plan's currency."),
    (422, "/price out_of_range", [CREATE, UPDATE, *WITH_SUBSCRIPTION_BODY], "The largest amount depends on the plan's currency."),
    (422, "/quantity out_of_range", WITH_SUBSCRIPTION_BODY, "The largest amount limits price × quantity."),
    (404, "user_not_found", [*OF_USER, ENTITLEMENTS, OWN_ENTITLEMENTS], "Which users exist is state; the id is well formed."),
    (422, "/email required", [CREATE_USER, UPDATE_USER], "A user needs an email address or an external id."),
    (409, "email_in_use", [CREATE_USER, UPDATE_USER], "Which email addresses are taken is state; this one is well formed."),
    (401, "invalid_token", [SIGN_UP, SIGN_IN, *WITH_BEARER], "A token is signed for one user and expires."),
    (403, "not_your_account", [DELETE_ACCOUNT], "The account must belong to the bearer token."),
    (404, "session_not_found", [END_SESSION], "Which sessions a user has is state; the id is well formed."),
    (401, "invalid_grant", [REFRESH], "A refresh token must be the newest one of its session."),
    (404, "subscription_not_found", OF_SUBSCRIPTION, "Which subscriptions exist is state; the id is well formed."),
    (422, "/user_id unknown_reference", [SUBSCRIBE, *BUYING], "Which users exist is state; the id is well formed."),
    (422, "/external_user_id unknown_reference", [SUBSCRIBE, *BUYING], "Which users exist is state."),
    (422, "/user_id required", [SUBSCRIBE, *BUYING], "It needs user_id or external_user_id."),
    (422, "/subscription_plan_id required", [SUBSCRIBE, CHECKOUT], "It needs subscription_plan_id or subscription_plan_slug."),
    (422, "/subscription_plan_slug unknown_reference", [*WITH_SUBSCRIPTION_BODY, CHECKOUT], "Which plans exist is state."),
    (422, "/metadata too_many", [UPDATE, UPDATE_USER, UPDATE_SUBSCRIPTION, UPDATE_PAYMENT, PREVIEW], "The existing keys are state."),
    (400, "?external_user_id invalid_parameter", [OWN_ENTITLEMENTS], "Required without an access token."),
    (400, "?email_prefix invalid_parameter", [LIST_USERS], "Not every engine of patterns can exclude the invisible characters above U+FFFF."),
    (400, "?sort invalid_parameter", [LIST_USERS, LIST_ALL_PAYMENTS, LIST_SUBSCRIPTIONS], "A prefix or a range of paid_at or updated_at determines the field to sort by."),
    (422, "/subscription_plan_id unknown_reference", [*WITH_SUBSCRIPTION_BODY, CHECKOUT], "Which plans exist is state."),
    (422, "/subscription_plan_id plan_inactive", [*WITH_SUBSCRIPTION_BODY, CHECKOUT], "Which plans are active is state."),
    (409, "duplicate_external_id", [CREATE_USER, UPDATE_USER, *WITH_SUBSCRIPTION_BODY, *WITH_PAYMENT_BODY], "Which ids are taken is state."),
    (409, "invalid_transition", [UPDATE_SUBSCRIPTION, PREVIEW, UPDATE_PAYMENT], "The current status of a record is state."),
    (422, "/renews_at inconsistent_dates", WITH_SUBSCRIPTION_BODY, "It depends on the start and the billing cycle."),
    (422, "/ends_at inconsistent_dates", WITH_SUBSCRIPTION_BODY, "It depends on the start."),
    (422, "/ends_at inconsistent_status", WITH_SUBSCRIPTION_BODY, "It depends on the status and the current time."),
    (422, "/is_active inconsistent_status", WITH_SUBSCRIPTION_BODY, "It depends on the status and the current time."),
    (422, "/event_id unknown_reference", [REPLAY], "Which events exist is state; the id is well formed."),
    (422, "/from required", [REPLAY], "It needs from or event_id."),
    (404, "webhook_endpoint_not_found", OF_ENDPOINT, "Which webhook endpoints exist is state; the id is well formed."),
    (404, "payment_account_not_found", [*OF_PAYMENT_ACCOUNT, RECEIVE], "Which payment accounts exist is state; the id is well formed."),
    (404, "client_not_found", OF_CLIENT, "Which clients exist is state; the id is well formed."),
    (409, "client_disabled", OF_CLIENT, "Whether a client is disabled is state."),
    (422, "/kind immutable_field", [UPDATE_CLIENT], "The kind of a client is state."),
    (422, "/scopes unknown_value", [CREATE_CLIENT, UPDATE_CLIENT], "The possible scopes depend on the kind."),
    (422, "/allowed_origins invalid_format", [CREATE_CLIENT, UPDATE_CLIENT], "Only publishable clients have origins."),
    (404, "identity_provider_not_found", OF_PROVIDER, "Which providers exist is state; the id is well formed."),
    (409, "duplicate_provider", WITH_PROVIDER_BODY, "Which providers exist is state."),
    (422, "/issuer immutable_field", [UPDATE_PROVIDER], "The issuer of a provider is state."),
    (422, "/issuer invalid_format", [CREATE_PROVIDER], "A URL with a query or fragment is no issuer."),
    (422, "/accept_any_audience invalid_format", WITH_PROVIDER_BODY, "It depends on the verification."),
    (422, "/accept_azp invalid_format", WITH_PROVIDER_BODY, "It depends on the verification."),
    (422, "/now out_of_range", [SET_CLOCK], "The current time is state."),
    (409, "sandbox_not_empty", [DEMO_DATA], "What the tenant has is state."),
    *((422, f"/{field} {code}", WITH_PROVIDER_BODY, "It depends on the verification.")
      for field in ("audiences", "endpoint", "client_id", "client_secret") for code in ("required", "invalid_format")),
    (404, "staff_member_not_found", OF_STAFF, "Which staff members exist is state; the id is well formed."),
    (409, "email_in_use", [INVITE_STAFF], "Which staff members have signed in is state."),
    (422, "/email immutable_field", [UPDATE_STAFF], "The email address of a staff member is state."),
    (403, "cross_site_request", CHANGE_SESSION, "Only browsers send Sec-Fetch-Site."),
    (401, "invalid_staff_session", [f"GET {SESSION}"], "A cookie is issued to a browser."),
    (404, "not_found", ["GET /console/sign-in/{provider}"], "Which identity providers exist is a setting."),
    (404, "payment_notification_not_found", OF_NOTIFICATION, "Which notifications exist is state; the id is well formed."),
    (401, "invalid_signature", [RECEIVE], "A signature is made with a secret of the account."),
    (422, "/mode unknown_value", [CREATE_PAYMENT_ACCOUNT], "A sandbox takes only test accounts."),
    (422, "/api_key required", [CREATE_PAYMENT_ACCOUNT, UPDATE_PAYMENT_ACCOUNT], "It depends on the payment provider."),
    (422, "/api_key invalid_format", [CREATE_PAYMENT_ACCOUNT, UPDATE_PAYMENT_ACCOUNT], "It depends on the provider and the mode."),
    (422, "/provider immutable_field", [UPDATE_PAYMENT_ACCOUNT], "The provider of a payment account is state."),
    (422, "/mode immutable_field", [UPDATE_PAYMENT_ACCOUNT], "The mode of a payment account is state."),
    (422, "/payment_account_id required", BUYING, "Required if there are several accounts, which is state."),
    (422, "/payment_account_id unknown_reference", BUYING, "Which payment accounts exist is state."),
    (422, "/secret invalid_format", [ROTATE_PAYMENT_SECRET], "The form of a secret depends on the payment provider."),
    (404, "event_not_found", [READ_EVENT], "Which events exist is state; the id is well formed."),
    (400, "?sort invalid_parameter", [EVENTS], "The newest first is not for wait."),
    (400, "invalid_cursor", [EVENTS], "A cursor is signed for the events of a tenant."),
    (404, "payment_not_found", OF_PAYMENT, "Which payments exist is state; the id is well formed."),
    (422, "/subscription_id unknown_reference", WITH_PAYMENT_BODY, "Which subscriptions exist is state."),
    (409, "payment_settled", [UPDATE_PAYMENT, DELETE_PAYMENT], "Whether the payment is settled is state."),
    (422, "/amount amount_scale_invalid", WITH_PAYMENT_BODY, "The number of decimals depends on the currency."),
    (422, "/amount out_of_range", WITH_PAYMENT_BODY, "The largest amount depends on the currency."),
    (422, "/refunded_amount amount_scale_invalid", WITH_PAYMENT_BODY, "The number of decimals depends on the currency."),
    (422, "/refunded_amount out_of_range", WITH_PAYMENT_BODY, "It depends on the amount and the currency."),
    (422, "/paid_at inconsistent_dates", WITH_PAYMENT_BODY, "It must not be in the future."),
    (422, "/refunded_amount inconsistent_status", WITH_PAYMENT_BODY, "It depends on the status."),
]

# A port on which nothing listens. Generated URLs would make the service look up and call other hosts.
HOOK = "http://127.0.0.1:9/"

# The secret of the payment account that receives notifications.
PAYMENT_SECRET = "contract-secret"

# Currencies with each possible number of decimals.
DECIMALS = {"USD": 2, "EUR": 2, "GBP": 2, "CHF": 2, "JPY": 0, "KWD": 3, "CLF": 4}

# Fields of updates that must have their current value. Payments and users have only those that the service sets.
GENERATED = ["id", "created_at"]
IMMUTABLE = [*GENERATED, "user_id", "slug", "currency"]

# Patterns of common values, by the name of the schema that accepts more. Those of ids follow from their prefix.
ATOM, LABEL = "[A-Za-z0-9_+-]{1,20}", "[A-Za-z0-9]{1,20}"
URL_PART = "([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
NARROW = {
    "IpNetwork": r"^10\.[0-9]\.[0-9]\.0/24$",
    "Origin": r"^https://[a-z]{1,20}\.example(:[1-9][0-9]{3})?$",
    "Email": rf"^{ATOM}(\.{ATOM}){{0,2}}@{LABEL}(\.{LABEL}){{1,2}}$",
    "Timestamp": r"^(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$",
    "Url": rf"^[Hh][Tt][Tt][Pp][Ss]?://([A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{{2}})+(:[0-9]{{1,4}})?([/?]{URL_PART})?(#{URL_PART})?$",
}

# A comma-separated list: the white space around its items, and the pattern of an item.
LISTED = re.compile(r"\^\(\?!,\)\(\(\^\|,\)(.*?\*)\((.*)\)\1\)\{1,100\}\$")

# The status with which a record is created, so that a case can change it to the given status.
STATUS_BEFORE = {
    SUBSCRIPTIONS: {"pending": "pending", "incomplete": "pending"}
    | dict.fromkeys(["on_trial", "trialing", "trial"], "paused"),
    PAYMENTS: {"pending": "failed"}
    | dict.fromkeys(["partially_refunded", "partial_refund", "refunded", "disputed", "chargeback"], "completed"),
}

# A part of the names that this run creates, so that they are unique and can be recognized.
RUN = f"run{os.environ['CONTRACT_SEED']}"
MARK = f".{RUN}."
TOTAL_CASES = int(os.environ["CONTRACT_CASES"])
STARTED = float(os.environ["CONTRACT_STARTED"])
TALLY = Path(os.environ["CONTRACT_TALLY"])
URL = os.environ["CONTRACT_URL"]

tally = json.loads(TALLY.read_text())
atexit.register(lambda: TALLY.write_text(json.dumps(tally)))
session = requests.Session()
session.headers["client-id"] = os.environ["CONTRACT_CLIENT"]
session.trust_env = False  # looking up proxies takes longer than a request
numbers = count()
document = {}  # the OpenAPI document, narrowed
turns = Counter()  # valid cases by operation, without sequences
known_ids = set()  # ids that occurred in responses
external_ids = set()  # external ids sent by cases
next_progress = time.time() + 5


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Narrows the patterns of requests, so that the generator does not spend its time on rare but valid texts."""
    document.update(raw_schema)
    schemas = raw_schema["components"]["schemas"]
    for name, schema in schemas.items():
        if name in NARROW:
            schema["pattern"] = NARROW[name]
        elif prefix := re.match(r"\^\(([a-z]+_)\)\?", schema.get("pattern", "")):
            schema["pattern"] = f"^{narrow_id(prefix[1])}$"
        elif name.endswith("Input"):
            # A value or an alias in lower case, instead of any case.
            values, any_case = schema.pop("oneOf")
            aliases = any_case["description"].rstrip(".").split(": ")[1].split(", ")
            schema |= {"type": "string", "enum": schemas[values["$ref"].rsplit("/", 1)[1]]["enum"] + aliases}
        elif listed := LISTED.fullmatch(schema.get("pattern", "")):
            # Without white space around the items.
            item = listed[2]
            if prefix := re.match(r"\(([a-z]+_)\)\?", item):
                item = narrow_id(prefix[1])
            elif name == "TierList":
                item = "[0-9]{1,4}"
            elif name == "ExternalIdList":
                schema["maxLength"] = 255  # the limit of a single id
            schema["pattern"] = f"^({lower_case(item)})(,({lower_case(item)})){{0,99}}$"
    for operation in (operation for item in raw_schema["paths"].values() for operation in item.values()):
        if len(operation.get("security", [])) > 1:
            # The access token is optional, and a generated one is invalid.
            del operation["security"]


def narrow_id(prefix):
    return f"{prefix}[0-9a-f]{{12}}7[0-9a-f]{{19}}"


def lower_case(pattern):
    return re.sub(r"\[[A-Z]([a-z])\]", r"\1", pattern)


def send(method, path, expected=(200,), **arguments):
    """Sends a request that prepares a case. Not counted as a case."""
    response = session.request(method, URL + path, timeout=15, **arguments)
    if response.status_code not in expected:
        raise RuntimeError(f"{method} {response.url}: {response.status_code} {response.text}")
    collect_ids(response)
    return response


def collect_ids(response):
    if response.status_code < 300:  # an error may contain ids of the request
        known_ids.update(re.findall(r"[a-z]+_[0-9a-f]{32}", response.text))


def create(kind, body):
    return send("POST", kind, json=body, expected=(201,))


def find(kind, name):
    response = send("GET", f"{kind}/{quote(name, safe='')}", (200, 404))
    return response if response.status_code == 200 else None


def fitting(price, currency):
    """Returns the price in the same JSON type, limited to the currency's decimals and largest amount."""
    decimals = DECIMALS.get(currency)
    # For a currency generated by a case: this limit fits every currency.
    largest = Decimal(10) ** (8 if decimals is None else 12 - decimals)
    try:
        amount = min(Decimal(str(price)), largest)
    except InvalidOperation:  # an exponent that Decimal does not support
        amount = largest
    amount = amount.quantize(Decimal(1).scaleb(-(decimals or 0)), "ROUND_DOWN")
    return str(amount) if isinstance(price, str) else float(amount)


def fresh(text, number):
    """Returns a slug or key that was not used before."""
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
    """Returns the plan of a case, and creates it if needed."""
    slug = case.path_parameters["slug"]
    if in_sequence:
        if MARK in slug:
            # Created by an earlier call of this sequence. If one has deleted it, it must stay deleted.
            return find(PLANS, slug)
        slug = case.path_parameters["slug"] = fresh(slug, number)
    plan = {"name": "Created for a case", "slug": slug, "price": 1, "billing_cycle": "monthly"}
    return find(PLANS, slug) or create(PLANS, plan)


def plan_in_use(case, number):
    """Returns a plan with a subscription, which cannot be deleted."""
    case.path_parameters["slug"] = fresh(case.path_parameters["slug"], number)
    plan = plan_for(case, number, False)
    create(SUBSCRIPTIONS, subscription(subscription_plan_id=plan.json()["id"]))
    return plan


def fit_cursor(case):
    query = {name: value for name, value in case.query.items() if name not in ("cursor", "limit")}
    page = send("GET", case.formatted_path, params=query | {"limit": 1}, expected=(200, 400, 404))
    cursor = page.json().get("next_cursor")
    if cursor:
        case.query["cursor"] = cursor
    else:
        del case.query["cursor"]


def unused(email, number, in_sequence):
    """Returns this email address, or a similar one if it is taken."""
    if in_sequence or send("GET", USERS, params={"email": email}).json()["data"]:
        name, domain = email.split("@")
        # The document allows two dots, and MARK contains both.
        return f"{fresh(name.split('.')[0], number)}@{domain}"
    return email


def credentials(email):
    """Returns the credentials of the user with this email address."""
    command = [os.environ["CONTRACT_BINARY"], "sandbox", "token", "--minutes=1440", "--", email]
    token = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return {"access_token": token, "email": email}


@cache
def account():
    """Returns the account of this run."""
    own = credentials(f"{RUN}@example.com")
    response = send("POST", "/authentication/sign-up", json=own, expected=(201,))
    return {"credentials": own, "tokens": response.json()}


def newest_tokens():
    """Refreshes and returns the tokens of the account. Works even if a case has already used the refresh token."""
    tokens = account()["tokens"]
    used = {"refresh_token": tokens["refresh_token"]}
    tokens |= send("POST", "/authentication/refresh-token", json=used).json()
    return tokens


def new_account(number):
    """Returns the tokens of an account that a case may delete."""
    own = credentials(f"{fresh('leaver', number)}@example.com")
    return send("POST", "/authentication/sign-up", json=own, expected=(201,)).json()


@cache
def leaver():
    """Returns the credentials of an account whose sessions cases may revoke."""
    own = credentials(f"{RUN}.leaver@example.com")
    send("POST", "/authentication/sign-up", json=own, expected=(201,))
    return own


def bearer_for(label, number):
    """Returns the tokens of an account that the operation may change."""
    if label == DELETE_ACCOUNT:
        return new_account(number)
    if label in ENDING:
        return send("POST", "/authentication/sign-in", json=leaver()).json()
    return newest_tokens()


def own_user():
    return account()["tokens"]["auth_id"]


@cache
def own_plan():
    plan = {"name": "Plan of this run", "slug": RUN, "price": 1, "billing_cycle": "monthly"}
    return create(PLANS, plan).json()["id"]


def subscription(**fields):
    """Returns a new subscription's fields. It starts in 1970 and renews in 2100, so that dates sent by cases fit between."""
    dates = {"starts_at": "1970-01-01T00:00:00Z", "renews_at": "2100-01-01T00:00:00Z"}
    return {"user_id": own_user(), "subscription_plan_id": own_plan()} | dates | fields


def payment(**fields):
    """Returns a new payment's fields."""
    return {"subscription_id": past_due_subscription(), "amount": 20, "currency": "USD"} | fields


def past_due_subscription():
    """Creates a subscription that a payment activates."""
    return create(SUBSCRIPTIONS, subscription(status="past_due")).json()["id"]


def initial_record(kind, body, fits):
    """Returns a new record's fields: one that the case can change as its body says, or one in a final status."""
    if not fits:
        status = "expired" if kind == SUBSCRIPTIONS else "partially_refunded"
    elif kind == PAYMENTS and "refunded_amount" in body and "status" not in body:
        status = "partially_refunded"
    else:
        status = STATUS_BEFORE[kind].get(body.get("status"))
    fields = {"status": status} if status else {}
    return subscription(**fields) if kind == SUBSCRIPTIONS else payment(**fields)


def fit_references(body):
    # Cases refer to records by id; by the other names, only if a case is sent as generated.
    for name in ("external_user_id", "subscription_plan_slug"):
        body.pop(name, None)
    for name, existing in (("user_id", own_user), ("subscription_plan_id", own_plan), ("subscription_id", past_due_subscription)):
        if name in body and body[name] not in known_ids:
            body[name] = existing()


def fit_external_id(body, name, number, in_sequence):
    text = body.get(name)
    if text and (in_sequence or text in external_ids):
        body[name] = fresh(text, number)
    external_ids.add(text)


def fit_subscription(body, before, number, in_sequence):
    """Makes the fields of a subscription consistent with each other and with the record before the change."""
    fit_external_id(body, "external_subscription_id", number, in_sequence)
    if body.get("price") is not None:
        body["price"] = fitting(body["price"], before.get("currency") or "USD")
    if {"price", "quantity"} & body.keys():
        # The largest amount of a currency limits price × quantity.
        price, quantity = (Decimal(str((before | body).get(name) or 1)) for name in ("price", "quantity"))
        if price * quantity > Decimal(10) ** 8:
            body["quantity"] = 1
    fields, now = before | body, datetime.now(UTC).isoformat()
    status, start = fields.get("status", "active"), fields.get("starts_at")
    if fields.get("billing_cycle") in ("lifetime", "one_time") and body.get("renews_at"):
        body["renews_at"] = None
    if status in ("expired", "incomplete_expired", "ended") and (body.get("ends_at") or "") > now:
        body["ends_at"] = None
    fields = before | body
    # Without the Z, the texts sort like the times.
    dates = [fields[name] for name in ("starts_at", "renews_at", "ends_at") if fields.get(name)]
    first = min(dates, key=lambda date: date[:-1], default=now)
    if start and first != start:
        body["starts_at"] = first
    is_running = first <= now < (fields.get("ends_at") or "9999")
    gives_access = status in ("active", "past_due", "on_trial", "trialing", "trial") and is_running
    if body.get("is_active") and not gives_access:
        body["is_active"] = False


def fit_payment(body, before, number, in_sequence):
    """Makes the fields of a payment consistent with each other and with the record before the change."""
    fit_external_id(body, "external_payment_id", number, in_sequence)
    if (body.get("paid_at") or "") > datetime.now(UTC).isoformat():
        body["paid_at"] = None
    if "currency" in body and body["currency"].upper() not in DECIMALS:
        body["currency"] = currency_of(number)
    currency = (before | body).get("currency", "USD").upper()
    for name in ("amount", "refunded_amount"):
        if body.get(name) is not None:
            body[name] = fitting(body[name], currency)
    fields = before | body
    back, amount = body.get("refunded_amount"), Decimal(str(fields.get("amount", 0)))
    if fields.get("status") not in ("partially_refunded", "partial_refund") and back is None:
        body.pop("refunded_amount", None)  # null is an unknown part of the amount
    elif back is not None and fields.get("status") not in ("partially_refunded", "partial_refund"):
        body["refunded_amount"] = fitting(type(back)(amount if fields.get("status") == "refunded" else 0), currency)
    elif back is not None and not 0 < Decimal(str(back)) < amount:
        body["refunded_amount"] = fitting(type(back)(amount / 2), currency)


def payment_account():
    return create(PAYMENT_ACCOUNTS, {"provider": "lemonsqueezy", "mode": "test"})


@cache
def receiving_account():
    """Returns the id of a payment account that receives notifications."""
    account = payment_account().json()["id"]
    send("POST", f"{PAYMENT_ACCOUNTS}/{account}/rotate-secret", json={"secret": PAYMENT_SECRET})
    return account


def sign(body):
    return hmac.new(PAYMENT_SECRET.encode(), body, hashlib.sha256).hexdigest()


@cache
def notification():
    """Returns the id of a received notification."""
    body = b"{}"
    path = f"{NOTIFICATIONS}/{receiving_account()}"
    return send("POST", path, data=body, headers={"X-Signature": sign(body)}).json()["id"]


def fit_payment_account(case, label, number, is_valid=True):
    """Makes a valid body fit the account, and returns the account unless the case creates one."""
    body = case.body if is_valid else {}
    if label == CREATE_PAYMENT_ACCOUNT:
        body |= {"mode": "test"} if "mode" in body else {}
        if body.get("provider") == "stripe" or "api_key" in body:
            body["api_key"] = f"rk_test_{number}"
        return None
    record = payment_account()
    case.path_parameters["id"] = record.json()["id"]
    body = body if isinstance(body, dict) else {}
    keep_immutable(body, record, [*GENERATED, "provider", "mode"])
    if isinstance(body.get("secret"), str):
        body["secret"] = PAYMENT_SECRET
    return record


def fit_client(body):
    """Makes the settings of a client fit its kind."""
    if body.get("kind") == "publishable":
        body["scopes"] = ["auth", "plans:read"]
    else:
        body.pop("allowed_origins", None)


def fit_provider(body, number):
    """Makes the settings of an identity provider fit each other."""
    for name in ("verify", "endpoint", "client_id", "client_secret", "accept_any_audience"):
        body.pop(name, None)
    if "issuer" in body:
        body["issuer"] = f"{HOOK}{number}"
    if not body.get("audiences"):
        body["audiences"] = ["contract"]


def record_for(case, kind, body, fit):
    """Returns the subscription or payment of a case, and creates it if no response has named it."""
    [(parameter, name)] = case.path_parameters.items()
    record = find(kind, name) if name in known_ids else None
    before = record.json() if record else initial_record(kind, body, fit)
    if fit:
        fit(body, before)
    # A record that an earlier call of a sequence has deleted must stay deleted, except for another DELETE.
    if name not in known_ids or (not record and case.method == "DELETE"):
        if fit and before.get("status") in ("completed", "partially_refunded"):
            # The payment is settled, so these fields cannot change.
            before |= {field: body[field] for field in ("amount", "currency", "subscription_id") if field in body}
        record = create(kind, before)
        case.path_parameters[parameter] = record.json()["id"]
    return record


@cache
def field_validators(label):
    """Returns a validator for each field of the operation's body."""
    method, path = label.split()
    body = document["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    fields = document["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]["properties"]
    components = {"components": document["components"]}
    return {name: jsonschema_rs.validator_for(components | schema) for name, schema in fields.items()}


def pop_invalid(operation, body):
    """Removes and returns the invalid fields of a body. The other fields are made to fit, so that only these cause the rejection."""
    rules = field_validators(operation.label) if body else {}
    valid = [name for name in body if name in rules and rules[name].is_valid(body[name])]
    return {name: body.pop(name) for name in list(body) if name not in valid}


def event_id():
    """Returns the id of the newest event."""
    return send("GET", "/events?sort=-position&limit=1", (200,)).json()["data"][0]["id"]


def fit_record(case, label, path, fits, number, in_sequence):
    """Makes the body of a case fit. Returns the subscription or payment of the case, if there is one."""
    kind, fit = (PAYMENTS, fit_payment) if label in (*OF_PAYMENT, PAY) else (SUBSCRIPTIONS, fit_subscription)
    fit = partial(fit, number=number, in_sequence=in_sequence) if fits else None
    body, record = case.body if isinstance(case.body, dict) else {}, None
    invalid = pop_invalid(case.operation, body)
    fit_references(body)
    if label not in (SUBSCRIBE, PAY) and path:
        record = record_for(case, kind, body, fit)
    elif fit:
        fit(body, {})
    if record and label in (UPDATE_SUBSCRIPTION, PREVIEW):
        keep_immutable(body, record)
    if record and label == UPDATE_PAYMENT:
        keep_immutable(body, record, GENERATED)
    body |= invalid
    return record


def keep_immutable(body, record, names=IMMUTABLE):
    for name in names:
        if name in body:
            body[name] = record.json()[name]


@schemathesis.hook
def before_call(context, case, kwargs):
    meta, label, number = case.meta, case.operation.label, next(numbers)
    # schemathesis repeats sequences with small changes, so equal requests must have equal results.
    in_sequence = meta.phase.name == TestPhase.STATEFUL
    valid = meta.generation.mode.is_positive and not in_sequence
    turns[label] += valid
    as_generated, fits = valid and turns[label] % 8 == 0, not valid or turns[label] % 8 != 4
    another_method = case.method.upper() != case.operation.method.upper()
    if valid and label in (CREATE_ENDPOINT, UPDATE_ENDPOINT) and "url" in case.body:
        case.body = case.body | {"url": HOOK}
    if valid and label in WITH_PROVIDER_BODY:
        case.body = case.body | {name: f"{HOOK}{number}" for name in ("issuer", "endpoint") if case.body.get(name)}
    if label == SET_CLOCK and isinstance(case.body, dict) and meta.generation.mode.is_positive:
        case.body = {"now": "2020-01-01T00:00:00Z"}  # the clock only moves forward
    if label == EVENTS and str(case.query.get("wait")) in map(str, range(26)):
        case.query["wait"] = 0  # no event may occur for that long
    if as_generated or another_method:
        return
    places = (In.PATH, In.QUERY, In.HEADER, In.BODY)
    path, query, headers, body = (not meta.is_negative_at(place) for place in places)
    if isinstance(case.body, dict):
        case.body = dict(case.body)  # the body of an example is shared by all its cases
    body = body and isinstance(case.body, dict)
    if label == CREATE and body:
        fit_create(case, number, in_sequence)
    if label in WITH_KEY and headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = fresh(case.headers["Idempotency-Key"], number)
    record = None
    if label in (READ, UPDATE, DELETE) and path:
        record = plan_for(case, number, in_sequence)
        if record and body and label == UPDATE:
            keep_immutable(case.body, record)
            if "price" in case.body:
                case.body["price"] = fitting(case.body["price"], record.json()["currency"])
    if label == DELETE and path and not fits:
        record = plan_in_use(case, number)
    if label in OF_ENDPOINT and path:
        record = create(ENDPOINTS, {"url": HOOK})
        case.path_parameters["id"] = record.json()["id"]
        if body and label == UPDATE_ENDPOINT:
            keep_immutable(case.body, record, GENERATED)
        if body and label == REPLAY and not case.body.get("from"):
            case.body = {"event_id": event_id()}
    if label == READ_EVENT and path:
        case.path_parameters["id"] = event_id()
    if label == CREATE_PAYMENT_ACCOUNT and body:
        fit_payment_account(case, label, number)
    if label in OF_PAYMENT_ACCOUNT and path:
        record = fit_payment_account(case, label, number, body)
    if label == CREATE_CLIENT and body:
        fit_client(case.body)
    if label in OF_CLIENT and path:
        # Not the client of this run.
        record = create(CLIENTS, {"name": "contract"})
        case.path_parameters["id"] = record.json()["id"]
        if body and label == UPDATE_CLIENT:
            keep_immutable(case.body, record, [*GENERATED, "kind"])
            fit_client(case.body)
    if label == CREATE_PROVIDER and body:
        fit_provider(case.body, number)
    if label in OF_PROVIDER and path:
        record = create(PROVIDERS, {"issuer": f"{HOOK}of/{number}", "audiences": ["contract"]})
        case.path_parameters["id"] = record.json()["id"]
        if body and label == UPDATE_PROVIDER:
            fit_provider(case.body, number)
            keep_immutable(case.body, record, [*GENERATED, "issuer"])
    if label in OF_STAFF and path:
        record = create(STAFF, {"email": f"{fresh('staff', number)}@example.com", "role": "viewer"})
        case.path_parameters["id"] = record.json()["id"]
        if body and label == UPDATE_STAFF:
            keep_immutable(case.body, record, [*GENERATED, "email"])
    if label in OF_NOTIFICATION and path:
        case.path_parameters["id"] = notification()
    if label == RECEIVE and path and not isinstance(case.body, NotSet):
        case.path_parameters["id"] = receiving_account()
        kwargs["data"] = json.dumps(case.body).encode()
        case.headers["X-Signature"] = sign(kwargs["data"])
    if label == EVENTS and query and "after" in case.query:
        case.query["after"] = "now"
    if label in REPORTS and query:
        days = {"from": "2026-01-31", "to": "2026-11-15"}  # random days are seldom in order, and often centuries apart
        case.query |= {name: day for name, day in days.items() if name in case.query}
        if "plan" in case.query:
            own_plan()
            case.query["plan"] = RUN
    if label in (*OF_SUBSCRIPTION, *OF_PAYMENT, SUBSCRIBE, PAY):
        record = fit_record(case, label, path, fits, number, in_sequence)
    if record and headers and "If-Match" in case.headers:
        current = record.headers["ETag"]
        case.headers["If-Match"] = (current, "*", f'"another", {current}')[number % 3]
    if label == LIST_SUBSCRIPTIONS and query and "user_id" in case.query and number % 2:
        case.query["user_id"] = own_user()
    if label in WITH_CURSOR and path and query and "cursor" in case.query:
        if label == LIST_PAYMENTS and record:
            for _ in range(2):
                create(PAYMENTS, payment(subscription_id=record.json()["id"]))
        fit_cursor(case)
    if label == LIST_USERS and query and "email_prefix" in case.query:
        case.query.pop("sort", None)  # the prefix determines it
    if label == LIST_USERS and query and number % 2 and "email_prefix" not in case.query:
        case.query["email"] = account()["credentials"]["email"]
    if label in (*OF_USER, ENTITLEMENTS) and path:
        name = "user_id" if label == ENTITLEMENTS else "id"
        if label in (UPDATE_USER, DELETE_USER):
            # Not the account of this run, which other cases need.
            record = create(USERS, {"external_user_id": fresh("user", number)})
            case.path_parameters[name] = record.json()["id"]
            if headers and "If-Match" in case.headers:
                case.headers["If-Match"] = record.headers["ETag"]
            if label == UPDATE_USER and body:
                keep_immutable(case.body, record, GENERATED)
                fit_external_id(case.body, "external_user_id", number, in_sequence)
                if case.body.get("email"):
                    case.body["email"] = unused(case.body["email"], number, in_sequence)
        elif not find(USERS, case.path_parameters[name]):
            case.path_parameters[name] = own_user()
    if label in (CREATE_USER, SIGN_UP) and body:
        email = unused(case.body.get("email") or f"{RUN}@example.com", number, in_sequence)
        case.body |= credentials(email) if label == SIGN_UP else {"email": email}
        fit_external_id(case.body, "external_user_id", number, in_sequence)
    if label == SIGN_IN and body:
        # Not the account of this run: a user has at most 100 sessions, and more sign-ins end the oldest.
        case.body |= leaver()
    if label == REFRESH and body:
        case.body["refresh_token"] = newest_tokens()["refresh_token"]
    by_external_id = label == OWN_ENTITLEMENTS and query and number % 2
    if by_external_id:
        # Without an access token.
        case.query = {"external_user_id": fresh("user", number)}
        create(USERS, case.query)
    elif label == OWN_ENTITLEMENTS and query:
        case.query.pop("external_user_id", None)
    if label in WITH_BEARER and headers and not by_external_id:
        tokens = bearer_for(label, number)
        case.headers["Authorization"] = f"Bearer {tokens['access_token']}"
        if label == DELETE_ACCOUNT and path:
            case.path_parameters["auth_id"] = tokens["auth_id"]
        if label == END_SESSION and path:
            case.path_parameters["id"] = tokens["session_id"]
        # Otherwise schemathesis treats the token as generated, and reports that it is accepted.
        case._has_explicit_auth = True


@schemathesis.hook
def after_call(context, case, response):
    global next_progress
    collect_ids(response)
    row = tally["operations"].setdefault(case.operation.label, {"cases": 0, "valid": 0, "accepted": 0})
    row["cases"] += 1
    if case.meta.generation.mode.is_positive:
        row["valid"] += 1
        row["accepted"] += response.status_code < 400  # 304 is the response to a current If-None-Match
    if time.time() > next_progress:
        next_progress = time.time() + 5
        sent = sum(row["cases"] for row in tally["operations"].values())
        print(f"  {sent:,} of {TOTAL_CASES:,} cases, {time.time() - STARTED:.0f} s", file=sys.stderr, flush=True)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Returns whether a failure is real: not if all reasons for the rejection are listed in EXCEPTIONS."""
    if not isinstance(failure, RejectedPositiveData):
        return True
    if response.status_code == 304:  # the documented response to a current If-None-Match
        return False
    if case.operation.label == "GET /console/callback":  # a page for people; the sign-in was not started in a browser
        return False
    problem = response.json()
    fields = problem.get("errors") or [{"pointer": "", "code": problem["code"]}]
    reasons = {f"{re.sub(r'/[0-9]+$', '/*', field['pointer'])} {field['code']}".strip() for field in fields}
    allowed = {
        reason
        for status, reason, operations, _ in EXCEPTIONS
        if status == response.status_code and case.operation.label in operations
    }
    for reason in reasons:
        counts = tally["exceptions" if reason in allowed else "rejections"]
        name = f"{case.operation.label} {reason}"
        counts[name] = counts.get(name, 0) + 1
    return not reasons <= allowed
