"""Checks the replay with a small history whose figures were computed by hand."""

from decimal import Decimal

from replay import ALL_PLANS, Replay, transfers

USER = "usr_" + "0" * 31 + "1"
PLANS = {name: f"plan_{digit * 32}" for name, digit in (("small", "a"), ("large", "b"), ("yen", "c"))}
SMALL, LARGE, YEN = (f"{d * 8}-{d * 4}-{d * 4}-{d * 4}-{d * 12}" for d in "abc")


def at(day, time="12:00:00"):
    return f"{day}T{time}.000000Z"


def subscription(plan, price, currency, day, **changed):
    """Returns the data of an event of an active monthly subscription that starts on this day."""
    data = {"user_id": USER, "subscription_plan_id": PLANS[plan], "billing_cycle": "monthly", "quantity": 1, "status": "active",
        "suspended": False, "lifecycle": "recorded", "renews_at": None, "starts_at": at(day), "ends_at": None, "price": price,
        "currency": currency, "created_at": at(day)}
    return data | changed


def history():
    small, large = Decimal("10.00"), Decimal("15.00")
    first = subscription("small", small, "USD", "2027-01-10", status="on_trial", renews_at=at("2027-01-24"))
    paid = first | {"status": "active"}
    upgraded = paid | {"subscription_plan_id": PLANS["large"], "price": large}
    # Expires in March, and no worker has stored it.
    cancelled = upgraded | {"status": "cancelled", "ends_at": at("2027-03-10")}
    second = subscription("small", small, "USD", "2027-04-01")
    imported = subscription("yen", 500, "JPY", "2027-01-01", created_at=at("2027-03-02"), quantity=2, billing_cycle="yearly")
    scheduled = subscription("small", small, "USD", "2027-05-20", created_at=at("2027-05-01"))
    payment = {"currency": "USD", "amount": small, "status": "completed", "refunded_amount": Decimal("0.00"),
        "paid_at": at("2027-01-24"), "created_at": at("2027-01-24")}
    refunded = payment | {"status": "partially_refunded", "refunded_amount": Decimal("4.00")}
    return [
        (at("2027-01-10"), "subscription.created", "1", first),
        (at("2027-01-24"), "subscription.updated", "1", paid),
        (at("2027-01-24"), "payment.created", "p", payment),
        (at("2027-02-03"), "subscription.updated", "1", upgraded),
        (at("2027-02-20"), "subscription.updated", "1", cancelled),
        (at("2027-03-02"), "subscription.created", "3", imported),
        (at("2027-03-20"), "payment.updated", "p", refunded),
        (at("2027-04-01"), "subscription.created", "2", second),
        (at("2027-04-05"), "subscription.deleted", "2", second),
        (at("2027-05-01"), "subscription.created", "4", scheduled),
        (at("2027-06-01"), "subscription.updated", "4", scheduled | {"quantity": 3}),
    ]


# users, changes, subscriptions, annual value
MOVEMENTS = {
    ("2027-01-24", "USD", *ALL_PLANS, "new"): [1, 1, 1, 12_000],
    ("2027-01-24", "USD", SMALL, "monthly", "new"): [1, 1, 1, 12_000],
    ("2027-02-03", "USD", *ALL_PLANS, "expansion"): [0, 1, 0, 6_000],
    ("2027-02-03", "USD", SMALL, "monthly", "transferred"): [-1, 1, -1, -12_000],
    ("2027-02-03", "USD", LARGE, "monthly", "transferred"): [1, 1, 1, 12_000],
    ("2027-02-03", "USD", LARGE, "monthly", "expansion"): [0, 1, 0, 6_000],
    ("2027-03-02", "JPY", *ALL_PLANS, "imported"): [1, 1, 1, 1_000],
    ("2027-03-02", "JPY", YEN, "yearly", "imported"): [1, 1, 1, 1_000],
    ("2027-03-10", "USD", *ALL_PLANS, "churned"): [-1, 1, -1, -18_000],
    ("2027-03-10", "USD", LARGE, "monthly", "churned"): [-1, 1, -1, -18_000],
    ("2027-04-01", "USD", *ALL_PLANS, "reactivated"): [1, 1, 1, 12_000],
    ("2027-04-01", "USD", SMALL, "monthly", "reactivated"): [1, 1, 1, 12_000],
    ("2027-04-05", "USD", *ALL_PLANS, "correction"): [-1, 1, -1, -12_000],
    ("2027-04-05", "USD", SMALL, "monthly", "correction"): [-1, 1, -1, -12_000],
    ("2027-05-20", "USD", *ALL_PLANS, "reactivated"): [1, 1, 1, 12_000],
    ("2027-05-20", "USD", SMALL, "monthly", "reactivated"): [1, 1, 1, 12_000],
}
# joined, users, annual value
COHORTS = {
    ("2027-01", "2027-01", "USD"): [1, 1, 12_000],
    ("2027-01", "2027-02", "USD"): [0, 0, 6_000],
    ("2027-01", "2027-03", "USD"): [0, -1, -18_000],
    ("2027-01", "2027-05", "USD"): [0, 1, 12_000],
    ("2027-03", "2027-03", "JPY"): [1, 1, 1_000],
}
OUTCOMES = {
    ("2027-01-10", "2027-01", "USD", *ALL_PLANS, "trial_started"): [1, 12_000],
    ("2027-01-24", "2027-01", "USD", *ALL_PLANS, "trial_converted"): [1, 12_000],
    ("2027-01-10", "2027-01", "USD", SMALL, "monthly", "trial_started"): [1, 12_000],
    ("2027-01-24", "2027-01", "USD", SMALL, "monthly", "trial_converted"): [1, 12_000],
}
PAYMENTS = {("2027-01-24", "USD", "collected"): [1, 1_000], ("2027-01-24", "USD", "refunded"): [1, 400]}


class Recorder:
    """Collects differences."""

    def __init__(self):
        self.found = []

    def expect(self, what, expected, found):
        if expected != found:
            self.found.append(f"{what}: expected {expected}, found {found}")


def run(compare_rows):
    """Returns the exit status."""
    # The last event has not happened yet.
    replay = Replay(history(), at("2027-05-31"))
    recorder = Recorder()
    expected = {"movements": MOVEMENTS, "cohorts": COHORTS, "outcomes": OUTCOMES, "payments": PAYMENTS}
    for name, rows in expected.items():
        compare_rows(recorder, name, rows, getattr(replay, name))
    gains = {(SMALL, "monthly"): 10, (SMALL, "weekly"): 10, (LARGE, "monthly"): -15}
    recorder.expect("transfers", {(LARGE, "monthly"): -15, (SMALL, "weekly"): 10, (SMALL, "monthly"): 5}, transfers(gains))
    for status, expected_count in (("active", 2), ("expired", 1), ("deleted", 1), ("scheduled", 0)):
        rows = [figures for key, figures in replay.stock.items() if key[2:5] == (*ALL_PLANS, status)]
        recorder.expect(f"{status} subscriptions", expected_count, sum(count for count, _ in rows))
    for failure in recorder.found:
        print(failure)
    if recorder.found:
        return 1

    # A figure that is off by one must be found, and so must a missing row.
    for name, rows in expected.items():
        for key, figures in rows.items():
            for changed in ({**rows, key: [*figures[:-1], figures[-1] + 1]}, {other: rows[other] for other in rows if other != key}):
                recorder = Recorder()
                compare_rows(recorder, name, rows, changed)
                if len(recorder.found) != 1:
                    print(f"{name} {key}: the comparison misses a change")
                    return 1
    print("report-replay: self-test passed")
    return 0
