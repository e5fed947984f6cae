//! Revenue reports.

mod histories;
mod report_fixture;
mod worked_examples;
