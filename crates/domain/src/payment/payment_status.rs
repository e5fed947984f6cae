//! The payment status and its allowed transitions.

string_enum! {
    /// The status of a payment.
    pub enum PaymentStatus: "a payment status" {
        /// In progress.
        Pending = "pending",
        /// The money was received.
        Completed = "completed",
        /// The payment failed. It can be retried.
        Failed = "failed",
        /// Part of the amount was refunded.
        PartiallyRefunded = "partially_refunded",
        /// The full amount was refunded.
        Refunded = "refunded",
        /// The payer's bank has opened a dispute (chargeback).
        Disputed = "disputed",
        /// The payment was abandoned before any money was received.
        Void = "void",
    } aliases {
        "paid" => Completed,
        "succeeded" => Completed,
        "success" => Completed,
        "complete" => Completed,
        "partial_refund" => PartiallyRefunded,
        "canceled" => Void,
        "cancelled" => Void,
        "voided" => Void,
        "declined" => Failed,
        "chargeback" => Disputed,
    }
}

impl PaymentStatus {
    /// Returns the statuses that this one can change to.
    pub const fn allowed_transitions(self) -> &'static [Self] {
        use PaymentStatus::{
            Completed, Disputed, Failed, PartiallyRefunded, Pending, Refunded, Void,
        };
        match self {
            Pending => &[Completed, Failed, Void],
            Failed => &[Pending, Completed, Void],
            Completed => &[PartiallyRefunded, Refunded, Disputed],
            // Banks reject refunds.
            PartiallyRefunded => &[Completed, Refunded, Disputed],
            Refunded => &[Completed],
            Disputed => &[Completed, Refunded],
            Void => &[],
        }
    }

    /// Returns whether money was received. The amount, currency and subscription are then immutable.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Completed | Self::PartiallyRefunded | Self::Refunded | Self::Disputed => true,
            Self::Pending | Self::Failed | Self::Void => false,
        }
    }

    /// Returns whether a part of the amount, but not all of it, may have been refunded.
    /// A dispute can return a partially refunded payment to `Completed`.
    pub(super) const fn may_be_partially_refunded(self) -> bool {
        match self {
            Self::PartiallyRefunded | Self::Disputed | Self::Completed => true,
            Self::Pending | Self::Failed | Self::Refunded | Self::Void => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_grid() {
        let mut grid = format!("{:20}", "from \\ to");
        for to in PaymentStatus::ALL {
            grid += &format!("{to:>20}", to = to.as_str());
        }
        for from in PaymentStatus::ALL {
            grid += &format!("\n{:20}", from.as_str());
            for to in PaymentStatus::ALL {
                let mark = match from.allowed_transitions().contains(&to) {
                    _ if from == to => "·",
                    true => "yes",
                    false => "",
                };
                grid += &format!("{mark:>20}");
            }
        }
        let lines: Vec<&str> = grid.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn alias_parses_in_any_case() {
        assert_eq!("Chargeback".parse(), Ok(PaymentStatus::Disputed));
    }
}
