//! How often a plan is paid for, and when that is.
//!
//! The instants of payment are an anchor and whole cycles from it, never chained one to the next: begun on 31 January, a
//! monthly one falls on 28 February and on 31 March again. Months are those of UTC.

use std::{fmt, str::FromStr};

use jiff::{Span, Timestamp, tz::TimeZone};

use crate::Invalid;

/// How often a plan is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BillingCycle {
    /// Every day.
    Daily,
    /// Every seven days.
    Weekly,
    /// Every month.
    Monthly,
    /// Every three months.
    Quarterly,
    /// Every six months.
    Semiannual,
    /// Every year.
    Yearly,
    /// Once, for ever.
    Lifetime,
}

impl BillingCycle {
    /// All of them, shortest first.
    pub const ALL: [Self; 7] = [
        Self::Daily,
        Self::Weekly,
        Self::Monthly,
        Self::Quarterly,
        Self::Semiannual,
        Self::Yearly,
        Self::Lifetime,
    ];

    /// Other words for them that callers may use.
    pub const ALIASES: [(&'static str, Self); 9] = [
        ("day", Self::Daily),
        ("week", Self::Weekly),
        ("month", Self::Monthly),
        ("quarter", Self::Quarterly),
        ("half_yearly", Self::Semiannual),
        ("year", Self::Yearly),
        ("annual", Self::Yearly),
        ("annually", Self::Yearly),
        ("one_time", Self::Lifetime),
    ];

    /// The word that we store and return.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Quarterly => "quarterly",
            Self::Semiannual => "semiannual",
            Self::Yearly => "yearly",
            Self::Lifetime => "lifetime",
        }
    }

    /// So many cycles: days and months.
    fn times(self, count: i64) -> Option<Span> {
        let (days, months) = match self {
            Self::Daily => (1, 0),
            Self::Weekly => (7, 0),
            Self::Monthly => (0, 1),
            Self::Quarterly => (0, 3),
            Self::Semiannual => (0, 6),
            Self::Yearly => (0, 12),
            Self::Lifetime => return None,
        };
        let span = Span::new().try_days(count.checked_mul(days)?).ok()?;
        span.try_months(count.checked_mul(months)?).ok()
    }

    /// The instant so many cycles after an anchor, at the end of its month where the month is too short. `None` for what
    /// is paid once, and beyond the year 9999.
    pub fn after(self, anchor: Timestamp, count: i64) -> Option<Timestamp> {
        let date = TimeZone::UTC.to_datetime(anchor);
        let date = date.checked_add(self.times(count)?).ok()?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }

    /// The first instant of payment after `instant`, counted from an anchor, which is the first of all.
    pub fn first_after(self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        let mut count = self.elapsed(anchor, instant)?;
        // The estimate is off by one cycle at most.
        while count > 0 && self.after(anchor, count - 1)? > instant {
            count -= 1;
        }
        while self.after(anchor, count)? <= instant {
            count += 1;
        }
        self.after(anchor, count)
    }

    /// About how many cycles have passed.
    fn elapsed(self, anchor: Timestamp, instant: Timestamp) -> Option<i64> {
        let days = instant.duration_since(anchor).as_hours() / 24;
        let [from, to] = [anchor, instant].map(|instant| {
            let date = TimeZone::UTC.to_datetime(instant);
            i64::from(date.year()) * 12 + i64::from(date.month())
        });
        let count = match self {
            Self::Daily => days,
            Self::Weekly => days / 7,
            Self::Monthly => to - from,
            Self::Quarterly => (to - from) / 3,
            Self::Semiannual => (to - from) / 6,
            Self::Yearly => (to - from) / 12,
            Self::Lifetime => return None,
        };
        Some(count.max(0))
    }
}

impl fmt::Display for BillingCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BillingCycle {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let own = Self::ALL.map(|cycle| (cycle.as_str(), cycle));
        own.into_iter()
            .chain(Self::ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, cycle)| cycle)
            .ok_or_else(|| {
                let allowed = Self::ALL.map(Self::as_str).to_vec();
                Invalid::unknown_word("a billing cycle", text, allowed)
            })
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

    /// Catalogue: 38.
    #[test]
    fn the_end_of_a_month_is_never_chained() {
        let anchor = at("2027-01-31T09:30:00Z");
        let days: Vec<String> = (0..6)
            .map(|count| BillingCycle::Monthly.after(anchor, count).unwrap())
            .map(|instant| instant.strftime("%m-%d").to_string())
            .collect();
        assert_eq!(days, ["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]);
        let leap = at("2028-02-29T00:00:00Z");
        let yearly = |count| BillingCycle::Yearly.after(leap, count).unwrap().to_string();
        assert_eq!(yearly(1), "2029-02-28T00:00:00Z");
        assert_eq!(yearly(4), "2032-02-29T00:00:00Z");
        let last = at("9999-12-15T00:00:00Z");
        assert_eq!(BillingCycle::Monthly.after(last, 1), None);
        assert_eq!(BillingCycle::Lifetime.after(anchor, 1), None);
    }

    #[test]
    fn the_first_after_an_instant_is_after_it() {
        let anchor = at("2027-01-31T09:30:00Z");
        let first = |text| {
            let first = BillingCycle::Monthly.first_after(anchor, at(text));
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

        /// Over a hundred years of any cycle, from any instant of any day: the time of day stays, the day is the
        /// anchor's or the month's last, and nothing is skipped.
        #[test]
        fn renewals_never_drift(
            seconds in 0_i64..=2_524_607_999,
            cycle in prop::sample::select(RECURRING.to_vec()),
            share in 0.0..1.0_f64,
        ) {
            let anchor = Timestamp::from_second(seconds).unwrap();
            let begin = TimeZone::UTC.to_datetime(anchor);
            let (days, months) = match cycle {
                BillingCycle::Daily => (1, 0),
                BillingCycle::Weekly => (7, 0),
                BillingCycle::Monthly => (0, 1),
                BillingCycle::Quarterly => (0, 3),
                BillingCycle::Semiannual => (0, 6),
                BillingCycle::Yearly => (0, 12),
                BillingCycle::Lifetime => unreachable!(),
            };
            let most = if days > 0 { 36_525 / days } else { 1_200 / months };
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::as_conversions, reason = "a share of a small number")]
            let count = (share * most as f64) as i64;
            let found = TimeZone::UTC.to_datetime(cycle.after(anchor, count).unwrap());
            prop_assert_eq!(found.time(), begin.time());
            if days > 0 {
                let passed = cycle.after(anchor, count).unwrap().duration_since(anchor);
                prop_assert_eq!(passed.as_hours(), count * days * 24);
            } else {
                // Counted by hand.
                let month = i64::from(begin.month()) - 1 + count * months;
                let year = i16::try_from(i64::from(begin.year()) + month / 12).unwrap();
                let month = i8::try_from(month % 12 + 1).unwrap();
                prop_assert_eq!((found.year(), found.month()), (year, month));
                let last = date(year, month, 1).days_in_month();
                prop_assert_eq!(found.day(), begin.day().min(last));
            }
            // The next one after it is the next one, and the one after the instant before it is itself.
            let instant = cycle.after(anchor, count).unwrap();
            prop_assert_eq!(cycle.first_after(anchor, instant), cycle.after(anchor, count + 1));
            let before = Timestamp::from_microsecond(instant.as_microsecond() - 1).unwrap();
            prop_assert_eq!(cycle.first_after(anchor, before), Some(instant));
        }
    }

    #[test]
    fn reads_its_own_words_and_explains_the_others() {
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
