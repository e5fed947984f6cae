"""Checks the example product with its one command, a new sandbox, the stand-in of Stripe, and Chromium.

The types and the unit tests of the example are checked first. Then a browser signs up, pays on the stand-in's page, and sees a failed
renewal, the recovery, a cancellation, its undoing and the end; each step checks what the account and the paid feature show. Markup in
names is shown as text, and ended devices are signed out. Another run of the product signs a user in with an OpenID provider.
"""

import json
import os
import shutil
from contextlib import contextmanager
from urllib.request import HTTPCookieProcessor, build_opener

import sdk_package
from harness import AS_USER, ROOT, USER, browse, check, child, free_ports, fresh_database, group, new_folder, run, run_tests

PRODUCT = ROOT / "examples/product"
PROVIDER = ROOT / "crates/server/tests/provider/server.mjs"
# What the product needs, with the places in the repository.
COPIED = ["examples/product", "clients/typescript/src", "clients/typescript/scripts", "clients/typescript/package.json",
          "crates/server/tests/payment_providers/stand_in", "crates/server/tests/payment_providers/stripe"]


def check_sources():
    """Installs the SDK, checks the types and runs the unit tests."""
    sdk_package.install_sdk(PRODUCT)
    run(sdk_package.BIN / "tsc", "-p", PRODUCT, "--typeRoots", sdk_package.SDK / "node_modules/@types")
    check(True, "the types")
    run_tests(PRODUCT / "tests/")


def copy_tree(options, folder):
    """Copies the parts, because the user who runs them may not be able to read this folder."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)
    (folder / "target/debug").mkdir(parents=True)
    shutil.copy(options.binary, folder / "target/debug/perennial")


@contextmanager
def running_product(folder):
    """Starts the product as `npm start` does, and yields what it prints."""
    with new_folder("home", USER) as home, fresh_database("product") as database:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
        arguments = ["--port", str(free_ports(1)[0]), "--database", database, "--json"]
        command = ["node", folder / "examples/product/sandbox/start.js", *arguments]
        with child(command, "{", env=environment, user=USER) as printed:
            yield json.loads(printed)


def check_production(folder, running):
    """Signs a user in at an OpenID provider, with the server of production."""
    port, provider_port = free_ports(2)
    origin, issuer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{provider_port}"
    variables = {"PATH": os.environ["PATH"], **running["variables"]}
    perennial = [*AS_USER, folder / "target/debug/perennial"]
    add = [*perennial, "provider", "add", "--issuer", issuer, "--audience", "product", "--accept-id-tokens"]
    environment = {
        "PATH": os.environ["PATH"], "PORT": str(port), "PERENNIAL_URL": running["perennial"],
        "PERENNIAL_API_KEY": running["variables"]["CLIENT_ID"], "WEBHOOK_SECRETS": "whsec_c2VjcmV0", "OIDC_ISSUER": issuer,
        "OIDC_CLIENT_ID": "product", "OIDC_TOKEN": "id_token",
    }
    opener = build_opener(HTTPCookieProcessor())
    with child(["node", PROVIDER, str(provider_port), f"{origin}/sign-in/callback"], "ready"):
        run(*add, env=variables)
        login = {"sub": "1048-77", "email": "lin@example.com", "email_verified": True}
        opener.open(f"{issuer}/test/login", json.dumps(login).encode()).close()
        with child(["node", folder / "examples/product/server.js"], "product: ", env=environment, user=USER):
            # Follows the redirects to the provider and back.
            with opener.open(f"{origin}/sign-in?next=/account") as response:
                page, url = response.read().decode(), response.url
    check(url == f"{origin}/account", f"the sign-in with an OpenID provider leads to {url}")
    check("lin@example.com" in page, "the account page does not show the user")
    check("Sandbox" not in page, "the server of production has the sandbox")


def run_product(options, **settings):
    with group("types and unit tests"):
        check_sources()
    with new_folder("product") as folder:
        copy_tree(options, folder)
        with running_product(folder) as running:
            settings |= {"url": running["perennial"], "clientId": running["variables"]["CLIENT_ID"]}
            browse("product.mjs", options, product=running["product"], stripe=running["stripe"], **settings)
            with group("sign-in with an OpenID provider"):
                check_production(folder, running)
