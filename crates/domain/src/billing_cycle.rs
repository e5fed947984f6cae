//! Billing cycles and renewal dates.
//!
//! A renewal date is the anchor plus a number of cycles. It is never computed from the previous
//! renewal date: a monthly cycle anchored on January 31 renews on February 28 and again on March 31.
//! Calendar months are those of UTC.

use jiff::{Span, Timestamp, tz::TimeZone};

string_enum! {
    /// How often a plan is billed, shortest first.
    pub enum BillingCycle: "a billing cycle" {
        /// Every day.
        Daily = "daily",
        /// Every seven days.
        Weekly = "weekly",
        /// Every month.
        Monthly = "monthly",
        /// Every three months.
        Quarterly = "quarterly",
        /// Every six months.
        Semiannual = "semiannual",
        /// Every year.
        Yearly = "yearly",
        /// Once; it never renews.
        Lifetime = "lifetime",
    } aliases {
        "day" => Daily,
        "week" => Weekly,
        "month" => Monthly,
        "quarter" => Quarterly,
        "half_yearly" => Semiannual,
        "year" => Yearly,
        "annual" => Yearly,
        "annually" => Yearly,
        "one_time" => Lifetime,
    }
}

/// The length of one cycle.
enum CycleLength {
    Days(i64),
    Months(i64),
}

impl BillingCycle {
    fn length(self) -> Option<CycleLength> {
        Some(match self {
            Self::Daily => CycleLength::Days(1),
            Self::Weekly => CycleLength::Days(7),
            Self::Monthly => CycleLength::Months(1),
            Self::Quarterly => CycleLength::Months(3),
            Self::Semiannual => CycleLength::Months(6),
            Self::Yearly => CycleLength::Months(12),
            Self::Lifetime => return None,
        })
    }

    /// Returns the instant `count` cycles after `anchor`. If the month is too short for the anchor's
    /// day, the renewal is on the month's last day. Returns `None` for [`Self::Lifetime`] and beyond
    /// the year 9999.
    pub fn nth_renewal(self, anchor: Timestamp, count: i64) -> Option<Timestamp> {
        let span = match self.length()? {
            CycleLength::Days(days) => Span::new().try_days(count.checked_mul(days)?),
            CycleLength::Months(months) => Span::new().try_months(count.checked_mul(months)?),
        };
        let date = TimeZone::UTC.to_datetime(anchor);
        let date = date.checked_add(span.ok()?).ok()?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }

    /// Returns the first renewal after `instant`. The anchor itself is renewal 0.
    pub fn next_renewal(self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        // The estimate is off by one cycle at most.
        let mut count = self.estimate_elapsed_cycles(anchor, instant)?;
        while count > 0 && self.nth_renewal(anchor, count - 1)? > instant {
            count -= 1;
        }
        while self.nth_renewal(anchor, count)? <= instant {
            count += 1;
        }
        self.nth_renewal(anchor, count)
    }

    /// Returns how many cycles after `anchor` the renewal date `renewal` is. The inverse of
    /// [`Self::nth_renewal`].
    pub fn index_of(self, anchor: Timestamp, renewal: Timestamp) -> Option<i64> {
        let estimate = self.estimate_elapsed_cycles(anchor, renewal)?;
        let mut candidates = estimate.saturating_sub(1)..=estimate.saturating_add(1);
        candidates.find(|count| self.nth_renewal(anchor, *count) == Some(renewal))
    }

    fn estimate_elapsed_cycles(self, anchor: Timestamp, instant: Timestamp) -> Option<i64> {
        let elapsed = match self.length()? {
            CycleLength::Days(days) => instant.duration_since(anchor).as_hours() / 24 / days,
            CycleLength::Months(months) => {
                let [from, to] = [anchor, instant].map(|instant| {
                    let date = TimeZone::UTC.to_datetime(instant);
                    i64::from(date.year()) * 12 + i64::from(date.month())
                });
                (to - from) / months
            }
        };
        Some(elapsed.max(0))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Malformed input: 38.
    /// The number is from `docs/reference/malformed-input.md`.
    #[test]
    fn month_end_renewals_do_not_drift() {
        let anchor = at("2027-01-31T09:30:00Z");
        let days: Vec<String> = (0..6)
            .map(|count| BillingCycle::Monthly.nth_renewal(anchor, count).unwrap())
            .map(|instant| instant.strftime("%m-%d").to_string())
            .collect();
        assert_eq!(days, ["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]);
        let leap = at("2028-02-29T00:00:00Z");
        let yearly = |count| {
            BillingCycle::Yearly
                .nth_renewal(leap, count)
                .unwrap()
                .to_string()
        };
        assert_eq!(yearly(1), "2029-02-28T00:00:00Z");
        assert_eq!(yearly(4), "2032-02-29T00:00:00Z");
        let last = at("9999-12-15T00:00:00Z");
        assert_eq!(BillingCycle::Monthly.nth_renewal(last, 1), None);
        assert_eq!(BillingCycle::Lifetime.nth_renewal(anchor, 1), None);
    }

    #[test]
    fn next_renewal_is_strictly_after_the_instant() {
        let anchor = at("2027-01-31T09:30:00Z");
        let first = |text| {
            let first = BillingCycle::Monthly.next_renewal(anchor, at(text));
            first.unwrap().to_string()
        };
        assert_eq!(first("2020-01-01T00:00:00Z"), "2027-01-31T09:30:00Z");
        assert_eq!(first("2027-01-31T09:29:59Z"), "2027-01-31T09:30:00Z");
        assert_eq!(first("2027-01-31T09:30:00Z"), "2027-02-28T09:30:00Z");
        assert_eq!(first("2027-02-28T09:30:00Z"), "2027-03-31T09:30:00Z");
    }

    const RECURRING: [BillingCycle; 6] = [
        BillingCycle::Daily,
        BillingCycle::Weekly,
        BillingCycle::Monthly,
        BillingCycle::Quarterly,
        BillingCycle::Semiannual,
        BillingCycle::Yearly,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Over 100 years of any cycle and anchor: the time of day is constant, the day is the anchor's
        /// or the last of the month, and no renewal is skipped.
        #[test]
        fn renewals_never_drift(
            seconds in 0_i64..=2_524_607_999,
            cycle in prop::sample::select(RECURRING.to_vec()),
            share in 0.0..1.0_f64,
        ) {
            let anchor = Timestamp::from_second(seconds).unwrap();
            let start = TimeZone::UTC.to_datetime(anchor);
            let (days, months) = match cycle {
                BillingCycle::Daily => (1, 0),
                BillingCycle::Weekly => (7, 0),
                BillingCycle::Monthly => (0, 1),
                BillingCycle::Quarterly => (0, 3),
                BillingCycle::Semiannual => (0, 6),
                BillingCycle::Yearly => (0, 12),
                BillingCycle::Lifetime => unreachable!(),
            };
            let max_count = if days > 0 { 36_525 / days } else { 1_200 / months };
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::as_conversions, reason = "a fraction of a small number")]
            let count = (share * max_count as f64) as i64;
            let renewal = TimeZone::UTC.to_datetime(cycle.nth_renewal(anchor, count).unwrap());
            prop_assert_eq!(renewal.time(), start.time());
            if days > 0 {
                let passed = cycle.nth_renewal(anchor, count).unwrap().duration_since(anchor);
                prop_assert_eq!(passed.as_hours(), count * days * 24);
            } else {
                // Computed independently of jiff's calendar arithmetic.
                let month = i64::from(start.month()) - 1 + count * months;
                let year = i16::try_from(i64::from(start.year()) + month / 12).unwrap();
                let month = i8::try_from(month % 12 + 1).unwrap();
                prop_assert_eq!((renewal.year(), renewal.month()), (year, month));
                let last = date(year, month, 1).days_in_month();
                prop_assert_eq!(renewal.day(), start.day().min(last));
            }
            // `next_renewal` agrees with `nth_renewal` at the renewal and just before it.
            let instant = cycle.nth_renewal(anchor, count).unwrap();
            prop_assert_eq!(cycle.next_renewal(anchor, instant), cycle.nth_renewal(anchor, count + 1));
            let before = Timestamp::from_microsecond(instant.as_microsecond() - 1).unwrap();
            prop_assert_eq!(cycle.next_renewal(anchor, before), Some(instant));
        }
    }

    #[test]
    fn billing_cycle_parses_in_any_case_and_typo_gets_a_suggestion() {
        for cycle in BillingCycle::ALL {
            assert_eq!(cycle.as_str().to_uppercase().parse(), Ok(cycle));
        }
        assert_eq!("Annually".parse(), Ok(BillingCycle::Yearly));
        let error = "montly".parse::<BillingCycle>().unwrap_err();
        assert_eq!(
            error.message,
            r#""montly" is not a billing cycle; did you mean "monthly"?"#
        );
        assert_eq!(error.allowed.len(), 7);
    }
}
