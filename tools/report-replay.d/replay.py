"""Computes the figures of the reports from the events of one tenant, with plain dictionaries and integers.

Shares no code and no table with the service. Instants are the text of the events, `2027-01-31T09:30:00.000000Z`: all have the
same length, so they compare as text, the first 10 characters are the UTC day, and the first 7 the month. Amounts are minor
units.
"""

import datetime
import typing
import uuid
from collections import defaultdict

# Stands for all plans and billing cycles.
ALL_PLANS = (str(uuid.UUID(int=0)), "")
CYCLES_PER_YEAR = {"daily": 365, "weekly": 52, "monthly": 12, "quarterly": 4, "semiannual": 2, "yearly": 1}
# A subscription that started longer before its creation was moved here from another system.
IMPORTED_AFTER = datetime.timedelta(days=7)
SETTLED = {"completed", "partially_refunded", "refunded", "disputed"}


class State(typing.NamedTuple):
    """What the reports know about a subscription at an instant."""

    user: str
    plan: str
    cycle: str
    currency: str
    status: str
    suspended: bool
    basis: str
    arr: int

    @property
    def segment(self):
        return self.plan, self.cycle

    @property
    def is_counted(self):
        """Whether the annual value is revenue. Suspended subscriptions count."""
        return self.status in ("active", "past_due", "cancelled") and self.basis == "recurring"


class Timeline(typing.NamedTuple):
    """The states of a subscription: pairs of the instant from which on it applies, and the state."""

    states: list
    is_imported: bool


def minor_units(amount):
    """Returns an amount in minor units. Events have all decimals of the currency: 19.90 is 1990 cents, 1990 is 1990 yen."""
    return amount if isinstance(amount, int) else int(amount.scaleb(-amount.as_tuple().exponent))


def record_uuid(identifier):
    """Returns the UUID of `plan_0192…` as PostgreSQL shows it."""
    return str(uuid.UUID(identifier.rsplit("_", 1)[-1]))


def later(instant, **duration):
    moved = datetime.datetime.strptime(instant, "%Y-%m-%dT%H:%M:%S.%fZ") + datetime.timedelta(**duration)
    return moved.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def next_trial_end(end, before, after, at, plan):
    """Returns the end of the trial after an event, or None. Events do not contain it."""
    status, renewal = after["status"], after["renews_at"]
    if after.get("follows_provider"):
        return renewal if status == "on_trial" else end
    if after["lifecycle"] != "managed":
        # Only a trial that starts with the subscription is stored, and it keeps its end.
        if before is None and status == "on_trial":
            days = plan.get("trial_days") or 0
            return renewal or (later(after["starts_at"], days=days) if days else None)
        return end
    if status == "on_trial" and renewal and renewal > at:
        return renewal
    if before is None or end is None or end <= at:
        return end
    is_moved = renewal != before["renews_at"]
    if status == "active" and before["status"] != "active":
        # Starting the first period ends the trial. A late payment and a lifted pause do not.
        starts = before["status"] in ("pending", "on_trial", "expired")
        return at if starts or is_moved else end
    return renewal if is_moved and renewal else end


def state_at(instant, data, is_deleted, currency, trial_end):
    """Returns the state at an instant not before the event with this data, and before the next one."""
    own = data["status"]
    if data["ends_at"] and data["ends_at"] <= instant:
        own = "expired"
    status = own
    if is_deleted:
        status = "deleted"
    elif data["starts_at"] > instant and own not in ("pending", "expired"):
        status = "scheduled"

    cycle, price = data["billing_cycle"], data["price"]
    ends_in_trial = own == "cancelled" and trial_end is not None and data["ends_at"] <= trial_end
    if cycle == "lifetime":
        basis = "lifetime"
    elif price is None:
        basis = "unknown_price"
    elif price == 0:
        basis = "free"
    elif own == "on_trial" or ends_in_trial:
        basis = "trial"
    else:
        basis = "recurring"
    arr = 0
    if basis in ("recurring", "trial"):
        arr = minor_units(price) * data["quantity"] * CYCLES_PER_YEAR[cycle]
    plan = record_uuid(data["subscription_plan_id"])
    return State(data["user_id"], plan, cycle, currency, status, data["suspended"], basis, arr)


def timeline(events, plans, now):
    """Returns the states of a subscription up to `now`. `events` are its (instant, kind, data), oldest first."""
    events = [event for event in events if event[0] <= now]
    # Payments for a deleted subscription still change its credit.
    deletion = next((index for index, event in enumerate(events) if event[1] == "subscription.deleted"), len(events))
    events = events[:deletion + 1]
    states, before, currency, trial_end = [], None, None, None
    for index, (at, kind, data) in enumerate(events):
        plan = plans.get(data["subscription_plan_id"], {})
        # Without a price, the event has no currency. The one of a plan never changes.
        has_same_plan = before and before["subscription_plan_id"] == data["subscription_plan_id"]
        currency = data["currency"] or (currency if has_same_plan else plan["currency"])
        trial_end = next_trial_end(trial_end, before, data, at, plan)
        # The start and the end take effect at their instants, whether or not a worker has run.
        until = events[index + 1][0] if index + 1 < len(events) else "9"
        dates = sorted({date for date in (data["starts_at"], data["ends_at"]) if date and at < date < until and date <= now})
        is_deleted = kind == "subscription.deleted"
        for instant in [at] if is_deleted else [at, *dates]:
            state = state_at(instant, data, is_deleted, currency, trial_end)
            if not states or states[-1][1] != state:
                states.append((instant, state))
        before = data
    created = events[0][2] if events else None
    is_imported = bool(created) and later(created["starts_at"], seconds=IMPORTED_AFTER.total_seconds()) < created["created_at"]
    return Timeline(states, is_imported)


def day_ends(states):
    """Returns the last state of each day that has one."""
    return {instant[:10]: state for instant, state in states}


def transfers(changes):
    """Returns by segment what only moved between a user's segments, out of {segment: change of the annual value}.

    It moves to the first segments in the order of the plans' ids and, within a plan, the shortest billing cycle first.
    """
    sign = 1 if sum(changes.values()) >= 0 else -1
    moved = {segment: change for segment, change in changes.items() if change * sign < 0}
    left = abs(sum(moved.values()))
    for segment in sorted(changes, key=lambda segment: (segment[0], -CYCLES_PER_YEAR[segment[1]])):
        if changes[segment] * sign > 0:
            part = min(abs(changes[segment]), left)
            moved[segment] = part * sign
            left -= part
    return moved


class Replay:
    """All figures. Each is a change on a day, so a level is a running sum. Keys and values have the order of the columns."""

    def __init__(self, events, now):
        """Takes (instant, kind, subject, data) of events in their order, and ignores what has not happened by `now`."""
        self.now = now
        self.movements = defaultdict(lambda: [0, 0, 0, 0])
        self.stock = defaultdict(lambda: [0, 0])
        self.cohorts = defaultdict(lambda: [0, 0, 0])
        self.outcomes = defaultdict(lambda: [0, 0])
        self.payments = defaultdict(lambda: [0, 0])
        # Closing minus opening by (day, currency, plan, billing cycle): users, subscriptions, annual value.
        self.net = defaultdict(lambda: [0, 0, 0])
        plans, histories, last_payments = {}, defaultdict(list), {}
        for at, kind, subject, data in events:
            if kind.startswith("plan."):
                plans[data["id"]] = data
            elif kind.startswith("subscription."):
                histories[subject].append((at, kind, data))
            elif kind.startswith("payment."):
                last_payments[subject] = (kind, data)
        users = defaultdict(list)
        self.timelines = {subject: timeline(history, plans, now) for subject, history in histories.items()}
        for line in self.timelines.values():
            if line.states:
                users[line.states[0][1].user].append(line)
                self.add_stock(line)
                self.add_trials(line)
                self.add_recoveries(line)
        for lines in users.values():
            UserReplay(self).run(lines)
        for kind, data in last_payments.values():
            if kind != "payment.deleted":
                self.add_payment(data)

    def add(self, table, key, *values):
        row = table[key]
        for index, value in enumerate(values):
            row[index] += value

    def add_stock(self, line):
        """Counts a subscription by its state at the end of each day. Deleted ones have a stock of their own."""
        before = None
        for day, state in day_ends(line.states).items():
            for sign, one in ((-1, before), (1, state)):
                for segment in (one.segment, ALL_PLANS) if one else ():
                    key = (day, one.currency, *segment, one.status, one.suspended, one.basis)
                    self.add(self.stock, key, sign, sign * one.arr)
            before = state

    def add_outcome(self, instant, start, kind):
        """Counts the start or the outcome of an episode, with the terms at its start."""
        since, state = start
        for segment in (state.segment, ALL_PLANS):
            key = (instant[:10], since[:7], state.currency, *segment, kind)
            self.add(self.outcomes, key, 1, state.arr)

    def add_trials(self, line):
        start = None
        for instant, state in line.states:
            if start is None and state.status == "on_trial":
                start = (instant, state)
                self.add_outcome(instant, start, "trial_started")
            elif start and state.status in ("active", "unpaid", "expired", "deleted"):
                self.add_outcome(instant, start, "trial_converted" if state.status == "active" else "trial_lost")
                start = None

    def add_recoveries(self, line):
        start = None
        for instant, state in line.states:
            if start is None and state.status in ("past_due", "unpaid"):
                start = (instant, state)
                self.add_outcome(instant, start, "late_started")
            elif start and state.status in ("active", "expired", "deleted"):
                self.add_outcome(instant, start, "late_recovered" if state.status == "active" else "late_lost")
                start = None

    def add_payment(self, data):
        """Counts a payment as it is now."""
        status, currency, amount = data["status"], data["currency"], minor_units(data["amount"])
        if status in SETTLED:
            day = data["paid_at"][:10]
            self.add(self.payments, (day, currency, "collected"), 1, amount)
            refunded = minor_units(data["refunded_amount"] or 0)
            if data["refunded_amount"] is None:
                # A part of unknown size.
                self.add(self.payments, (day, currency, "unknown_refund"), 1, 0)
            elif refunded > 0:
                self.add(self.payments, (day, currency, "refunded"), 1, refunded)
            if status == "disputed":
                # The bank cannot demand back what was refunded before.
                self.add(self.payments, (day, currency, "disputed"), 1, amount - refunded)
        elif status in ("failed", "pending"):
            self.add(self.payments, (data["created_at"][:10], currency, status), 1, amount)


class UserReplay:
    """The movements and the cohort of one user."""

    def __init__(self, replay):
        self.replay = replay
        # Annual value by currency and segment, at the end of the last day or stage.
        self.held = defaultdict(lambda: defaultdict(int))
        # Totals by currency at the end of each day with a change.
        self.totals = defaultdict(dict)

    def run(self, lines):
        ends = [day_ends(line.states) for line in lines]
        last = [None] * len(lines)
        for day in sorted({day for end in ends for day in end}):
            stages = {"correction": [], "imported": [], None: []}
            for index, line in enumerate(lines):
                if day not in ends[index]:
                    continue
                before, after = last[index], ends[index][day]
                if after.status == "deleted":
                    stage = "correction"
                elif line.is_imported and line.states[0][0][:10] == day:
                    stage = "imported"
                else:
                    stage = None
                stages[stage].append((before, after))
                last[index] = after
            for kind, pairs in stages.items():
                self.apply(day, kind, pairs)
            for currency, held in self.held.items():
                self.totals[currency][day] = sum(held.values())
        for currency, totals in self.totals.items():
            self.add_cohort(currency, totals)

    def apply(self, day, kind, pairs):
        """Applies what changed for one reason. `pairs` are the states of subscriptions before and after the day."""
        changes = defaultdict(lambda: defaultdict(lambda: [0, 0]))
        for before, after in pairs:
            for sign, state in ((-1, before), (1, after)):
                if state and state.is_counted:
                    row = changes[state.currency][state.segment]
                    row[0] += sign
                    row[1] += sign * state.arr
        for currency, by_segment in changes.items():
            self.add_stage(day, currency, kind, by_segment)

    def classify(self, currency, before, after):
        if before == 0 and after > 0:
            had_before = any(total > 0 for total in self.totals[currency].values())
            return "reactivated" if had_before else "new"
        if before > 0 and after == 0:
            return "churned"
        return "expansion" if after > before else "contraction"

    def add_stage(self, day, currency, kind, by_segment):
        held = self.held[currency]
        opening = sum(held.values())
        net = sum(arr for _, arr in by_segment.values())
        count = sum(count for count, _ in by_segment.values())
        kind = kind or self.classify(currency, opening, opening + net)

        def add(segment, kind, users, subscriptions, arr):
            key = (day, currency, *segment)
            self.replay.add(self.replay.movements, (*key, kind), users, 1, subscriptions, arr)

        users = (opening + net > 0) - (opening > 0)
        self.replay.add(self.replay.net, (day, currency, *ALL_PLANS), users, count, net)
        if net:
            add(ALL_PLANS, kind, users, count, net)
        elif count:
            # As much value as before in another number of subscriptions.
            add(ALL_PLANS, "transferred", 0, count, 0)

        moved = transfers({segment: arr for segment, (_, arr) in by_segment.items()})
        for segment, (count, arr) in by_segment.items():
            users = (held[segment] + arr > 0) - (held[segment] > 0)
            self.replay.add(self.replay.net, (day, currency, *segment), users, count, arr)
            held[segment] += arr
            transferred = moved.get(segment, 0)
            rest = arr - transferred
            # Users and subscriptions move with the transferred part.
            if transferred or (count and not rest):
                add(segment, "transferred", users, count, transferred)
                if rest:
                    add(segment, kind, 0, 0, rest)
            elif rest:
                add(segment, kind, users, count, rest)

    def add_cohort(self, currency, totals):
        """Counts a user from the first day on that ends with revenue, with the last total of each month."""
        joined = next((day for day, total in totals.items() if total > 0), None)
        if joined is None:
            return
        cohort = joined[:7]
        self.replay.add(self.replay.cohorts, (cohort, cohort, currency), 1, 0, 0)
        last = 0
        for month, total in {day[:7]: total for day, total in totals.items() if day >= joined}.items():
            users = (total > 0) - (last > 0)
            self.replay.add(self.replay.cohorts, (cohort, month, currency), 0, users, total - last)
            last = total
