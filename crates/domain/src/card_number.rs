//! Recognizes card numbers. The service must never store one: it would become subject to PCI DSS.
//!
//! A value is a card number if it has the length and the first digits of a card network's numbers and a
//! valid check digit, and nothing else but spaces and hyphens. A value with a letter is none, so the
//! ids of payment providers (`pi_…`, `sub_…`) are not mistaken for one.

use crate::{FieldError, Rule, SingleLine, ValidationError};

/// Lengths of Visa numbers.
const VISA: &[usize] = &[13, 16, 19];
const FROM_13: &[usize] = &[13, 14, 15, 16, 17, 18, 19];
const FROM_14: &[usize] = &[14, 15, 16, 17, 18, 19];
const FROM_16: &[usize] = &[16, 17, 18, 19];

/// The first six digits of each network's numbers, as a range, with the lengths of the numbers. UATP is
/// left out: its only rule, 15 digits that start with 1, also holds for many ids of app stores.
const NETWORKS: &[(u32, u32, &[usize])] = &[
    (400_000, 499_999, VISA),
    // Mastercard
    (222_100, 272_099, &[16]),
    (510_000, 559_999, &[16]),
    // American Express
    (340_000, 349_999, &[15]),
    (370_000, 379_999, &[15]),
    // Diners Club
    (300_000, 305_999, FROM_14),
    (309_500, 309_599, FROM_14),
    (360_000, 369_999, FROM_14),
    (380_000, 399_999, FROM_14),
    // Discover
    (601_100, 601_199, FROM_16),
    (644_000, 659_999, FROM_16),
    // JCB
    (352_800, 358_999, FROM_16),
    // UnionPay
    (620_000, 629_999, FROM_16),
    (810_000, 817_199, FROM_16),
    // Maestro
    (501_800, 501_899, FROM_13),
    (502_000, 502_099, FROM_13),
    (503_800, 503_899, FROM_13),
    (589_300, 589_399, FROM_13),
    (630_400, 630_499, FROM_13),
    (675_900, 675_999, FROM_13),
    (676_100, 676_399, FROM_13),
    // Mir
    (220_000, 220_499, FROM_16),
    // RuPay
    (508_500, 508_999, &[16]),
    (606_985, 608_500, &[16]),
    (817_200, 820_199, &[16]),
    // Verve
    (506_099, 506_198, FROM_16),
    // Elo and Hipercard
    (504_175, 504_175, &[16]),
    (606_282, 606_282, FROM_16),
    (636_297, 636_368, &[16]),
    // Troy
    (979_200, 979_289, &[16]),
];

/// Returns whether the whole text is a card number, with or without spaces and hyphens.
fn is_card_number(text: &str) -> bool {
    let mut digits = Vec::new();
    for c in text.chars() {
        match c.to_digit(10) {
            Some(digit) => digits.push(digit),
            None if c == '-' || c.is_whitespace() => {}
            None => return false,
        }
    }
    let first_six = digits
        .iter()
        .take(6)
        .fold(0, |number, digit| number * 10 + digit);
    let is_issued = NETWORKS.iter().any(|(first, last, lengths)| {
        (*first..=*last).contains(&first_six) && lengths.contains(&digits.len())
    });
    is_issued && has_valid_check_digit(&digits)
}

/// Checks the last digit by the Luhn algorithm: counted from the right, every second digit is doubled,
/// and the sum of all resulting digits must be divisible by 10.
fn has_valid_check_digit(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| match digit * 2 {
            _ if position % 2 == 0 => *digit,
            doubled if doubled > 9 => doubled - 9,
            doubled => doubled,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Checks that a value is not a card number. The error does not quote it.
pub(crate) fn check_not_card_number(value: &str) -> Result<(), ValidationError> {
    if !is_card_number(value) {
        return Ok(());
    }
    let message =
        "cannot be a card number; if it is another id, put a prefix before it, such as order-";
    Err(ValidationError::new(Rule::InvalidFormat, message))
}

/// Returns the error of a field whose new value is a card number.
pub(crate) fn reject_card_number<const MAX: usize>(
    field: &'static str,
    value: Option<&SingleLine<MAX>>,
) -> Option<FieldError> {
    let error = check_not_card_number(value?.as_str()).err()?;
    Some((field, error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Published test numbers, never issued.
    const TEST_NUMBERS: [&str; 14] = [
        "4242424242424242",
        "4222222222222",
        "4000056655665556",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
        "6011111111111117",
        "3056930009020004",
        "36227206271667",
        "3566002020360505",
        "6200000000000005",
        "6205500000000000004",
        "6759649826438453",
        "5019717010103742",
    ];

    #[test]
    fn test_numbers_of_card_networks_are_recognized() {
        // The last one is of Dankort, which has the numbers of no network in the table.
        let (dankort, others) = TEST_NUMBERS.split_last().unwrap();
        for number in others {
            assert!(is_card_number(number), "{number}");
        }
        assert!(!is_card_number(dankort));
    }

    #[test]
    fn spaces_and_hyphens_are_ignored() {
        for text in [
            "4242 4242 4242 4242",
            "4242-4242-4242-4242",
            " 4242\u{a0}4242 42424242 ",
            "3782 822463 10005",
        ] {
            assert!(is_card_number(text), "{text}");
        }
    }

    #[test]
    fn ids_of_payment_providers_are_not_card_numbers() {
        for text in [
            "",
            "0",
            "pi_4242424242424242",
            "4242424242424242x",
            "sub_1MowQVLkdIwHu7ixeRlqHVzs",
            "I-BW452GLLEP1G",
            "8515131751004933",    // Adyen
            "1700000000000",       // milliseconds since 1970
            "1000000123456789",    // App Store
            "100000123456783",     // App Store, 15 digits
            "1234567890123456789", // snowflake
            "4242424242424241",    // wrong check digit
            "42424242424242",      // no Visa number has 14 digits
            "424242424242",
            "42424242424242424242",
            "4242.4242.4242.4242",
            "0000000000000000",
            "order-4242424242424242",
        ] {
            assert!(!is_card_number(text), "{text}");
        }
    }

    /// Returns the digits with their check digit.
    fn with_check_digit(digits: &str) -> String {
        let complete = |check: u32| format!("{digits}{check}");
        let is_valid = |text: &String| {
            let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
            has_valid_check_digit(&digits)
        };
        (0..10).map(complete).find(is_valid).unwrap()
    }

    proptest! {
        #[test]
        fn number_of_a_network_is_recognized_with_the_right_check_digit_only(
            network in prop::sample::select(NETWORKS), start in 0..1_000_000_u32,
            length in any::<prop::sample::Index>(), rest in "[0-9]{13}", wrong in 1..10_u32,
        ) {
            let (first, last, lengths) = network;
            let start = first + start % (last - first + 1);
            let length = *length.get(lengths);
            let number = with_check_digit(&format!("{start}{rest}")[..length - 1]);
            prop_assert_eq!(number.len(), length);
            prop_assert!(is_card_number(&number), "{}", number);
            let check: u32 = number[length - 1..].parse().unwrap();
            let other = format!("{}{}", &number[..length - 1], (check + wrong) % 10);
            prop_assert!(!is_card_number(&other), "{}", other);
        }

        #[test]
        fn text_with_a_letter_is_never_a_card_number(before in "[0-9 -]{0,20}", letter in "[A-Za-z_:]", after in "[0-9 -]{0,20}") {
            let text = format!("{before}{letter}{after}");
            prop_assert!(!is_card_number(&text), "{}", text);
        }
    }
}
