//! Revenue reports.

mod histories;
