"""Hooks of tools/contract, which make the malformed part of a request the reason to reject it.

Random requests name records that do not exist, and have no valid credentials. The service would reject them before it looks at
the rest. So the hooks put records and credentials that exist into all places, except those that schemathesis has made invalid.
"""

import atexit
import hmac
import json
import os
import re
import subprocess
from functools import cache
from itertools import count
from pathlib import Path

import requests
import schemathesis
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation as In

TALLY = Path(os.environ["CONTRACT_TALLY"])
# A port on which nothing listens. Other URLs would make the service look up and call other hosts.
HOOK = "http://127.0.0.1:9/"
# The secret that signs notifications.
SECRET = {"secret": "contract-secret"}

# Patterns of common values, by the name of a schema that accepts more. Texts of its pattern take long to generate. To make a text
# invalid, schemathesis often adds an asterisk, so a pattern must accept it wherever the document does.
NARROW = {"Email": r"^[A-Za-z0-9_+-]{1,20}@[a-z0-9]{1,20}(\.[a-z0-9]{1,20}){1,2}$", "Url": rf"^{re.escape(HOOK)}[a-z0-9*-]*$"}
# A comma-separated list: the white space around its items, and the pattern of an item.
LISTED = re.compile(r"\^\(\?!,\)\(\(\^\|,\)(.*?\*)\((.*)\)\1\)\{1,100\}\$")

# The codes of errors in the form of a request. An update can have only the current value of a field that cannot change.
FORM = {"malformed_json", "invalid_request", "payload_too_large", "unsupported_media_type", "immutable_field", "unknown_field"}
FORM |= {"amount_scale_invalid", "blank", "invalid_format", "invalid_id", "out_of_range", "required", "too_long", "too_many"}
FORM |= {"unknown_value", "wrong_type"}

tally = json.loads(TALLY.read_text())
atexit.register(lambda: TALLY.write_text(json.dumps(tally)))
session = requests.Session()
session.headers["client-id"] = os.environ["CONTRACT_CLIENT"]
names = (f"run{os.environ['CONTRACT_SEED']}-{number}" for number in count())  # unique, also between runs
path_kinds = {}  # the path parameter and the schema of its record, by operation
with_bearer = set()  # operations that need an access token


def send(method, path, **arguments):
    """Sends a request that prepares a case. Not counted as a case."""
    response = session.request(method, os.environ["CONTRACT_URL"] + path, timeout=15, **arguments)
    if not response.ok:
        raise RuntimeError(f"{method} {response.url}: {response.status_code} {response.text}")
    return response.json()


def create(path, **body):
    """Creates and returns a record. Every body has a signature, which only payment notifications need."""
    body = json.dumps(body).encode()
    return send("POST", path, data=body, headers=sign(body) | {"Content-Type": "application/json"})


@cache
def existing(kind):
    """Returns a record that all cases share."""
    return CREATE[kind]()


def id_of(kind):
    return existing(kind)["id"]


def payment_account():
    account = create("/payment-accounts", provider="lemonsqueezy", mode="test")
    create(f"/payment-accounts/{account['id']}/rotate-secret", **SECRET)
    return account


def sign(body):
    return {"X-Signature": hmac.new(SECRET["secret"].encode(), body, "sha256").hexdigest()}


def credentials():
    """Returns the credentials of a user who has not signed up."""
    email = f"{next(names)}@example.com"
    command = [os.environ["CONTRACT_BINARY"], "sandbox", "token", "--minutes=1440", "--", email]
    return {"access_token": subprocess.check_output(command, text=True).strip(), "email": email}


def tokens():
    return create("/authentication/sign-in", **account())


@cache
def account():
    """Returns the credentials of an account whose sessions cases may end."""
    create("/authentication/sign-up", **(own := credentials()))
    return own


# Creates a record, by the name of the schema of its id.
CREATE = {
    "ClientId": lambda: create("/clients", name="contract"),  # not the client of this run
    "EventId": lambda: id_of("UserId") and send("GET", "/events?limit=1&wait=10")["data"][0],
    "IdentityProviderId": lambda: create("/identity-providers", **FIT["POST /identity-providers"]()),
    "PaymentAccountId": payment_account,
    "PaymentId": lambda: create("/subscription-payments", subscription_id=id_of("SubscriptionId"), amount=2, currency="USD"),
    "PaymentNotificationId": lambda: create(f"/payment-notifications/{id_of('PaymentAccountId')}"),
    "PlanId": lambda: existing("Slug"),
    "Slug": lambda: create("/subscription-plans", name="Contract", slug=next(names), price=1, billing_cycle="monthly"),
    "StaffId": lambda: create("/staff", email=f"{next(names)}@example.com", role="viewer"),
    "SubscriptionId": lambda: create("/subscriptions", user_id=id_of("UserId"), subscription_plan_id=id_of("PlanId")),
    "UserId": lambda: create("/users", external_user_id=next(names)),
    "WebhookEndpointId": lambda: create("/webhook-endpoints", url=HOOK),
}
# Fields of a valid body, by operation: what the document cannot state, or what other cases need.
FIT = {
    "POST /authentication/refresh-token": lambda: {"refresh_token": tokens()["refresh_token"]},
    "POST /authentication/sign-in": account,
    "POST /authentication/sign-up": credentials,
    "POST /identity-providers": lambda: dict.fromkeys(["verify", "endpoint", "client_id", "client_secret"])
    | {"issuer": f"{HOOK}{next(names)}", "audiences": ["contract"]},
    "POST /payment-accounts/{id}/rotate-secret": lambda: SECRET,
    "POST /subscription-plans": lambda: {"slug": next(names)},
    "PUT /sandbox/clock": lambda: {"now": "2020-01-01T00:00:00Z", "advance": None},  # the clock only moves forward
    "PUT /subscription-payments/{payment_id}": lambda: {"status": "pending"},
    "PUT /subscription-plans/{slug}": lambda: {"is_active": True},
}


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Narrows the schemas of requests to common values, and to records that exist."""
    text = json.dumps(raw_schema).replace("https://example.com/", HOOK)
    for record in map(id_of, CREATE):
        text = re.sub(rf"\b{record.split('_')[0]}_[0-9a-f]{{32}}\b", record, text)
    raw_schema |= json.loads(text)
    schemas, parameters = raw_schema["components"]["schemas"], raw_schema["components"]["parameters"]
    for name, schema in schemas.items():
        kind = name.removesuffix("List")
        if kind in CREATE and kind != "Slug":
            schema["enum"] = [id_of(kind)]
            del schema["pattern"]
        elif name in NARROW:
            schema["pattern"] = NARROW[name]
        elif listed := LISTED.fullmatch(schema.get("pattern", "")):  # becomes a list of one item, in lower case
            schema["pattern"] = re.sub(r"\[[A-Z]([a-z])\]", r"\1", f"^({listed[2]})$")
        if "pattern" in schema:
            schema.pop("format", None)  # a search for matches of the pattern that violate the format takes long
        for field in schema.get("properties", {}).values():
            if field.get("maxLength", 0) > 1_000:
                field.pop("pattern", None)  # a text of this length would take minutes
    # A report needs a plan that exists, and days in order that are not centuries apart.
    for name, value in {"From": "2026-01-31", "To": "2026-11-15", "Plan": existing("Slug")["slug"]}.items():
        parameters[name]["schema"] = {"type": "string", "enum": [value]}
    for path, item in raw_schema["paths"].items():
        for method, operation in item.items():
            prepare(f"{method.upper()} {path}", operation, schemas, parameters)


def prepare(label, operation, schemas, parameters):
    """Narrows an operation, and finds out what it needs."""
    security = operation.get("security", [{}])
    if all("bearer" in each for each in security) or label == "GET /entitlements":
        with_bearer.add(label)
    if len(security) > 1:
        del operation["security"]  # the access token is optional, and a generated one is invalid
    for parameter in operation.get("parameters", []):
        shared = parameter.get("$ref", "").rpartition("/")[2]
        parameter = parameters[shared] if shared else parameter
        kind = shared or parameter["schema"].get("$ref", "").rpartition("/")[2]
        if parameter["in"] == "path" and kind in CREATE:
            path_kinds[label] = (parameter["name"], kind)
            if kind != "Slug":  # any id, because each DELETE gets a new one
                parameter["schema"] = {"type": "string", "pattern": "^[a-z]+_[0-9a-f]{32}$"}
    if label.startswith("PUT ") and label in path_kinds:
        body, record = operation["requestBody"]["content"]["application/json"]["schema"], existing(path_kinds[label][1])
        fields = schemas[body["$ref"].rpartition("/")[2]]["properties"]
        for name, field in fields.items():
            if "Cannot change." in field.get("description", ""):
                fields[name] = {"enum": [record[name], None] if "null" in json.dumps(field) else [record[name]]}


def valid_places(case):
    return {place for place in In if not case.meta.is_negative_at(place)}


@schemathesis.hook
def before_call(context, case, kwargs):
    label, valid = case.operation.label, valid_places(case)
    if In.PATH in valid and label in path_kinds:
        name, kind = path_kinds[label]
        record = CREATE[kind]() if case.method == "DELETE" else existing(kind)
        case.path_parameters[name] = record["slug" if kind == "Slug" else "id"]
    if In.HEADER in valid and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = next(names)
    if In.HEADER in valid and "If-Match" in case.headers and In.BODY not in valid:
        case.headers["If-Match"] = "*"
    if In.HEADER in valid and label in with_bearer:
        is_deleted = "auth_id" in case.path_parameters
        own = create("/authentication/sign-up", **credentials()) if is_deleted else tokens()
        case.headers["Authorization"] = f"Bearer {own['access_token']}"
        # Otherwise schemathesis treats the token as generated, and reports that it is accepted.
        case._has_explicit_auth = True
        if In.PATH in valid:
            case.path_parameters = {name: own["auth_id" if is_deleted else "session_id"] for name in case.path_parameters}
    if label == "POST /console/session":
        case.headers["Sec-Fetch-Site"] = "same-origin"
    # A cursor is signed, and there is no plan with a random slug. Which orders and statuses are possible depends on the rest.
    separate(case, "query", In.QUERY, {"cursor", "after"}, {"sort"})
    separate(case, "body", In.BODY, {"subscription_plan_slug"}, {"status"})
    if label == "GET /events" and str(case.query.get("wait")) in map(str, range(26)):
        case.query["wait"] = 0  # no event may occur for that long
    if In.BODY in valid and label in FIT:
        case.body = case.body | FIT[label]()
    if label == "POST /payment-notifications/{id}" and not isinstance(case.body, NotSet):
        kwargs["data"] = json.dumps(case.body).encode()
        case.headers.update(sign(kwargs["data"]))


def separate(case, container, place, unknown, dependent):
    """Removes values that could be the reason to reject a case, unless they are the invalid ones."""
    values, is_invalid = getattr(case, container), case.meta.is_negative_at(place)
    for removed in (unknown | dependent, unknown, set()) if is_invalid else (unknown,):
        if isinstance(values, dict):
            setattr(case, container, {name: value for name, value in values.items() if name not in removed})
        # Now compared with the changed values.
        if case.meta.is_negative_at(place):
            break


@schemathesis.hook
def after_call(context, case, response):
    row = tally.setdefault(case.operation.label, {"has_body": bool(case.operation.body), "rejected": 0, "statuses": {}})
    row["statuses"][str(response.status_code)] = row["statuses"].get(str(response.status_code), 0) + 1


@schemathesis.check
def rejected_for_its_form(context, response, case):
    """Checks that an otherwise valid request with an invalid body is rejected for its form, not for the state of records."""
    is_sent = case.method == case.operation.method.upper() and not isinstance(case.body, NotSet)
    if is_sent and set(In) - valid_places(case) == {In.BODY} and response.status_code >= 400:
        problem = response.json()
        codes = {problem["code"], *(error["code"] for error in problem.get("errors", []))}
        assert codes & FORM, f"The body is invalid, but the request is rejected for {codes}"
        tally[case.operation.label]["rejected"] += 1
