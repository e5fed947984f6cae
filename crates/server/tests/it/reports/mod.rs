//! Revenue reports.

mod api;
mod histories;
mod races;
mod upgrade;
mod worked_examples;
