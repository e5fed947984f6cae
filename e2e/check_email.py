"""Runs examples/email with a new sandbox and an SMTP server on this machine, and checks the mails that arrive.

A trial that ends soon, a receipt, a payment that is late. Each mail must arrive once, although webhooks are repeated, the service
is restarted and trials are listed each second. Also: an SMTP server that is down, and one that rejects an address; markup in the name
of a plan; requests that are not signed.
"""

import email
import email.policy
import os
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

import sdk_package
from harness import ROOT, USER, USER_OPTIONS, check, free_ports, group, new_folder, run, sandbox

EXAMPLE = ROOT / "examples/email"
PLAN = '<b>Pro</b> & "Co"'
# Seconds. A failed webhook is sent again after 5.
MAIL_TIMEOUT = 20
# Seconds without another mail.
QUIET_TIME = 1.2


class Inbox:
    """An SMTP server that keeps the mails it receives. It rejects addresses that start with `gone`."""

    def __init__(self, port):
        self.port = port
        self.mails = []
        self.has_mail = threading.Condition()
        self.rejected = 0

    def start(self):
        # Of the Python tools in .tools, which nothing else here needs.
        from aiosmtpd.controller import Controller

        self.controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self.controller.start()

    def stop(self):
        self.controller.stop()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone"):
            self.rejected += 1
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        with self.has_mail:
            self.mails.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content, policy=email.policy.default)))
            self.has_mail.notify_all()
        return "250 OK"

    def expect(self, address, subject):
        """Waits for the next mail, and expects it to be the only one. Returns it."""
        with self.has_mail:
            check(self.has_mail.wait_for(lambda: self.mails, MAIL_TIMEOUT), f"no mail for {address}: {subject}")
        time.sleep(QUIET_TIME)
        (recipients, mail), *others = self.mails
        self.mails.clear()
        seen = (recipients, mail["to"], mail["subject"], mail["from"], len(others))
        expected = ([address], address, subject, "Example <billing@example.com>", 0)
        check(seen == expected, f"expected one mail to {address}, {subject!r}: {seen}")
        return mail

    def expect_nothing(self, reason):
        time.sleep(QUIET_TIME)
        check(not self.mails, f"{reason}, but there are mails: {[mail['subject'] for _, mail in self.mails]}")


class Mailer:
    """The running example."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment
        self.log = open(folder / "log.txt", "a+")

    def start(self):
        self.process = subprocess.Popen(
            ["node", "server.js"], cwd=self.folder, env=self.environment, stdout=self.log, stderr=subprocess.STDOUT, **USER_OPTIONS,
        )
        # A request that is not signed is refused.
        wait_until(lambda: self.post({}, b"{}") == 401 or self.process.poll() is not None, "the service does not start")
        check(self.process.poll() is None, f"the service does not start:\n{self.read_log()}")

    def read_log(self):
        return (self.folder / "log.txt").read_text()

    def post(self, headers, body):
        """Returns the status of the response to a request, and 0 without one."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.environment['PORT']}/webhooks", body, headers)
        try:
            return urllib.request.urlopen(request, timeout=MAIL_TIMEOUT).status
        except urllib.error.HTTPError as response:
            return response.code
        except OSError:
            return 0

    def stop(self):
        self.process.terminate()
        check(self.process.wait(MAIL_TIMEOUT) == 0, f"the service ends with {self.process.returncode}")


class Api:
    """Calls of the sandbox, and what its webhook endpoint has received."""

    def __init__(self, service, endpoint):
        self.service, self.endpoint = service, endpoint

    def subscribe(self, address, **fields):
        user = self.service.call("/users", {"email": address})
        return self.service.call("/subscriptions", {"user_id": user["id"], "subscription_plan_slug": "pro", **fields})["id"]

    def pay(self, subscription, **fields):
        body = {"subscription_id": subscription, "amount": 19.99, "currency": "USD", "status": "completed", **fields}
        self.service.call("/subscription-payments", body)

    def advance(self, span):
        self.service.perennial("sandbox", "clock", "advance", span)

    def trial_end(self, subscription):
        """Returns the end of a trial as the mails show it."""
        ends = time.strptime(self.service.call(f"/subscriptions/{subscription}")["renews_at"][:10], "%Y-%m-%d")
        return time.strftime(f"%B {ends.tm_mday}, %Y", ends)

    def attempts(self):
        return self.service.perennial("webhook-endpoint", "attempts", self.endpoint, "--limit", "200").splitlines()

    def replay(self):
        """Sends all events again, and waits until they are delivered."""
        known = len(self.attempts())
        self.service.perennial("webhook-endpoint", "replay", self.endpoint, "--from", "2020-01-01T00:00:00Z")
        wait_until(lambda: len(self.attempts()) != known, "the replay sends nothing")


def wait_until(holds, message):
    """Waits until a condition holds, and checks that it does."""
    deadline = time.monotonic() + MAIL_TIMEOUT
    while not (is_true := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(is_true, message)


def prepare(folder):
    """Copies the example and installs its packages. Checks its types."""
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    run("npm", "ci", "--silent", "--prefer-offline", "--no-audit", "--no-fund", cwd=folder)
    sdk_package.install_sdk(folder)
    run("npm", "run", "--silent", "check", cwd=folder)
    check(True, "the types")


def check_mails(api, inbox, mailer):
    # A trial of 14 days: nothing yet, and one mail when 3 days are left.
    ada = api.subscribe("ada@example.com")
    inbox.expect_nothing("the trial ends in 14 days")
    api.advance("12d")
    mail = inbox.expect("ada@example.com", f"Your trial of {PLAN} ends on {api.trial_end(ada)}")
    html, text = body(mail, "html"), body(mail, "plain")
    check("&#60;b&#62;Pro&#60;/b&#62; &#38; &#34;Co&#34;" in html and "<b>" not in html, html)
    for part in (f"Your trial of {PLAN} ends", "$19.99 (monthly)", "https://app.example.com/account"):
        check(part in text, f"the mail does not contain {part}: {text}")

    # A receipt, once, although its event is sent again.
    api.pay(ada)
    mail = inbox.expect("ada@example.com", f"Receipt for {PLAN}")
    check("$19.99" in body(mail, "plain"), str(mail))
    api.replay()
    inbox.expect_nothing("all events are sent again")

    # The payment covers the first month. The second one is late.
    api.advance("1mo 3d")
    mail = inbox.expect("ada@example.com", f"Your payment for {PLAN} is late")
    check("the payment of $19.99 for" in body(mail, "plain"), str(mail))
    api.replay()
    inbox.expect_nothing("all events are sent again")

    # A payment that fails, and one that becomes completed later.
    grace = api.subscribe("grace@example.com", status="pending")
    api.pay(grace, status="failed")
    inbox.expect_nothing("the payment has failed")

    # The SMTP server is down: the webhook fails and is sent again.
    inbox.stop()
    api.pay(grace)
    wait_until(lambda: any(" 503" in line for line in api.attempts()), "no attempt has the status 503")
    inbox.start()
    inbox.expect("grace@example.com", f"Receipt for {PLAN}")

    # An address that is rejected permanently is not tried again.
    gone = api.subscribe("gone@example.com", status="pending")
    api.pay(gone)
    wait_until(lambda: inbox.rejected, "no address is rejected")
    inbox.expect_nothing("the address is rejected")

    # After a restart, the file of sent mails prevents repetitions.
    mailer.stop()
    mailer.start()
    api.replay()
    inbox.expect_nothing("all events are sent again after a restart")
    check(inbox.rejected == 1, f"the rejected address was tried {inbox.rejected} times")
    check("@example.com" not in mailer.read_log(), f"the log contains an address:\n{mailer.read_log()}")


def body(mail, kind):
    return mail.get_body((kind,)).get_content()


def run_example(service, folder):
    """Starts an SMTP server and the example, and checks the mails."""
    smtp_port, port = free_ports(2)
    service.perennial("tenant", "set", "--lifecycle", "managed")
    plan = {"name": PLAN, "slug": "pro", "price": 19.99, "billing_cycle": "monthly", "trial_days": 14}
    service.call("/subscription-plans", plan)
    scopes = ["subscriptions:read", "payments:read", "users:read", "plans:read", "sandbox:write"]
    key = service.perennial("client", "create", "--name", "mails", "--json", *(part for scope in scopes for part in ("--scope", scope)))
    endpoint = service.perennial(
        "webhook-endpoint", "create", "--json", "--url", f"http://127.0.0.1:{port}/webhooks",
        "--event-types", "payment.created,payment.updated,subscription.past_due,subscription.updated",
    )
    mailer = Mailer(folder, {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PORT": str(port),
        "PERENNIAL_URL": service.url, "PERENNIAL_KEY": key["client_id"],
        # As during a rotation.
        "WEBHOOK_SECRETS": f"whsec_b2xkIHNlY3JldA==,{endpoint['secret']}",
        "SMTP_URL": f"smtp://127.0.0.1:{smtp_port}", "MAIL_FROM": "Example <billing@example.com>", "APP_NAME": "Example",
        "ACCOUNT_URL": "https://app.example.com/account", "TRIAL_CHECK_SECONDS": "1", "SANDBOX_CLOCK": "true",
    })
    inbox = Inbox(smtp_port)
    inbox.start()
    try:
        mailer.start()
        check_mails(Api(service, endpoint["id"]), inbox, mailer)
        mailer.stop()
    finally:
        mailer.process.kill()
        inbox.stop()


def run_email(options):
    with new_folder("email", USER) as folder:
        with group("packages and types"):
            prepare(folder)
        with sandbox(options) as service, group("mails"):
            run_example(service, folder)
