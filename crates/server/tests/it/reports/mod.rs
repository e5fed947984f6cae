//! Revenue reports.

mod api;
mod changes;
mod histories;
mod journal;
mod races;
mod report_fixture;
mod worked_examples;
