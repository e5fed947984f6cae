//! Revenue reports.

mod api;
mod histories;
mod races;
mod report_fixture;
mod upgrade;
mod worked_examples;
