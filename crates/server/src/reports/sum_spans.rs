//! Which sums a report reads by month, and which by day.

use jiff::{ToSpan, civil::Date};

use super::report_query::{ReportInterval, ReportQuery};

/// Sums before `days_from`, and those from `months_from` until before `months_until`, are read by month. All other days are
/// read by day. Each is the first day of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SumSpans {
    pub days_from: Date,
    pub months_from: Date,
    pub months_until: Date,
}

impl SumSpans {
    /// Returns the spans of a report by interval.
    pub fn of(query: &ReportQuery) -> Self {
        let days_from = query.from.first_of_month();
        match query.interval {
            ReportInterval::Day | ReportInterval::Week => Self::days_since(days_from),
            ReportInterval::Month | ReportInterval::Quarter | ReportInterval::Year => {
                let is_whole = days_from == query.from;
                let next_month = days_from.saturating_add(1.month());
                Self {
                    days_from,
                    months_from: if is_whole { days_from } else { next_month },
                    months_until: incomplete_month(query.to),
                }
            }
        }
    }

    /// Returns the spans of what is known at the end of `last`, without regard to intervals.
    pub fn until(last: Date) -> Self {
        Self::days_since(incomplete_month(last))
    }

    fn days_since(days_from: Date) -> Self {
        Self {
            days_from,
            months_from: days_from,
            months_until: days_from,
        }
    }
}

/// Returns the first month that has days after `last`.
fn incomplete_month(last: Date) -> Date {
    last.saturating_add(1.day()).first_of_month()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Every day up to the last is read once, and a month is within one interval or before the first.
    #[test]
    fn spans_contain_each_day_once() {
        let days =
            |from: Date, until: Date| from.series(1.day()).take_while(move |day| *day < until);
        let earliest = date(2025, 11, 1);
        for interval in ReportInterval::ALL {
            for from in days(date(2025, 12, 30), date(2026, 3, 3)) {
                for to in days(from, date(2026, 4, 3)) {
                    let query = ReportQuery {
                        from,
                        to,
                        interval,
                        ..ReportQuery::last_year(to)
                    };
                    let mut read = Vec::new();
                    let spans = SumSpans::of(&query);
                    for month in earliest.series(1.month()).take_while(|month| *month <= to) {
                        let is_before = month < spans.days_from;
                        if is_before || month >= spans.months_from && month < spans.months_until {
                            let next = month.saturating_add(1.month());
                            let start = |day: Date| (day >= from).then(|| interval.start(day));
                            assert!(days(month, next).all(|day| start(day) == start(month)));
                            read.extend(days(month, next));
                        }
                    }
                    let by_day = days(spans.days_from, to.saturating_add(1.day()));
                    read.extend(
                        by_day.filter(|day| *day < spans.months_from || *day >= spans.months_until),
                    );
                    read.sort_unstable();
                    let all: Vec<Date> = days(earliest, to.saturating_add(1.day())).collect();
                    assert_eq!(read, all, "{query:?}");
                }
            }
        }
    }
}
