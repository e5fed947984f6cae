//! Tests of email addresses and of the email profile.

use proptest::prelude::*;

use super::*;

fn normalized(text: &str) -> String {
    text.parse::<Email>().unwrap().normalized().to_owned()
}

#[test]
fn equivalent_addresses_normalize_to_the_same_form() {
    assert_eq!(normalized("ada@example.com"), "ada@example.com");
    for variant in ["ADA@EXAMPLE.COM", "Ada@Example.com", "ada@eXample.com"] {
        assert_eq!(normalized(variant), normalized("ada@example.com"));
    }
    // Precomposed and combining accents.
    assert_eq!(
        normalized("andr\u{e9}@example.com"),
        normalized("Andre\u{301}@example.com")
    );
    // Unicode and Punycode domains.
    assert_eq!(
        normalized("a@b\u{fc}cher.example"),
        normalized("a@XN--bcher-kva.example")
    );
    // Different mailboxes.
    assert_ne!(
        normalized("a.da@example.com"),
        normalized("ada@example.com")
    );
    assert_ne!(
        normalized("ada+x@example.com"),
        normalized("ada@example.com")
    );
}

#[test]
fn addresses_in_one_script_meet_the_profile() {
    for local in [
        "ada",
        "o'neil+tag_{x}!#$%&*/=?^`|~-",
        "a1",
        "\u{435}\u{43b}\u{435}\u{43d}\u{430}", // Cyrillic
        "\u{435}\u{43b}\u{435}\u{43d}\u{430}.2026+1",
        "\u{3b1}\u{3bd}\u{3bd}\u{3b1}", // Greek
        "andr\u{e9}",
        "andre\u{301}",
        "stra\u{df}e",
        "\u{5d3}\u{5e0}\u{5d4}",                     // Hebrew
        "\u{628}\u{646}\u{661}\u{662}",              // Arabic with its digits
        "\u{5c71}\u{7530}taro",                      // Han with Latin
        "\u{306f}\u{306a}\u{30cf}\u{30ca}\u{82b1}x", // Japanese with Latin
        "\u{d55c}\u{ae00}k",                         // Korean with Latin
    ] {
        let email: Result<Email, _> = format!("{local}@example.com").parse();
        assert!(email.is_ok(), "{local}: {email:?}");
    }
}

#[test]
fn look_alike_characters_do_not_meet_the_profile_and_equal_only_themselves() {
    for (local, imitated) in [
        ("\u{212a}evin", "kevin"),        // Kelvin sign, lower case k
        ("\u{212b}sa", "\u{e5}sa"),       // angstrom sign, lower case å
        ("\u{2126}", "\u{3c9}"),          // ohm sign, lower case ω
        ("\u{430}da", "ada"),             // Cyrillic а in a Latin word
        ("ad\u{3b1}", "ada"),             // Greek α in a Latin word
        ("\u{ff41}da", "ada"),            // fullwidth
        ("\u{1d41a}da", "ada"),           // mathematical bold
        ("\u{17f}ara", "sara"),           // long s
        ("o\u{fb03}ce", "office"),        // ligature
        ("\u{2170}van", "ivan"),          // Roman numeral
        ("ad\u{2c0}a", "ad'a"),           // modifier letter
        ("ada\u{2024}b", "ada.b"),        // one dot leader
        ("ada\u{661}", "ada1"),           // Arabic digit in a Latin word
        ("\u{628}1\u{662}", "\u{628}12"), // two number systems
        ("\u{628}\u{661}\u{6f2}", "\u{628}\u{661}\u{662}"),
        ("ada\u{34f}", "ada"),  // combining grapheme joiner
        ("ada\u{3164}", "ada"), // Hangul filler
        ("ada\u{2800}", "ada"), // blank Braille pattern
    ] {
        let (text, imitated) = (
            format!("{local}@example.com"),
            format!("{imitated}@example.com"),
        );
        let refused = text.parse::<Email>();
        assert_eq!(
            refused.map_err(|error| error.rule),
            Err(Rule::InvalidFormat),
            "{text}"
        );
        let reported: ReportedEmail = text.parse().unwrap();
        let imitated: ReportedEmail = imitated.parse().unwrap();
        assert!(reported.email().is_err() && imitated.email().is_ok());
        assert!(!reported.same_mailbox(&imitated), "{text}");
        assert!(!imitated.same_mailbox(&reported), "{text}");
        assert!(reported.same_mailbox(&reported), "{text}");
    }
}

proptest! {
    /// Otherwise two addresses with different letters could be one account.
    #[test]
    fn normalized_form_differs_from_the_address_in_case_and_composition_only(local in any_local_part()) {
        let text = format!("{local}@example.com");
        if let Ok(email) = text.parse::<Email>() {
            let composed: String = local.nfc().collect();
            let changed = composed.chars().any(|c| {
                let lower: String = c.to_lowercase().collect();
                // `is_ascii` finds what only looks like another letter: no letter outside ASCII
                // has a lower case inside it, except those that the profile refuses.
                !c.is_ascii() && lower.is_ascii()
            });
            prop_assert!(!changed, "{:?}", text);
            let again: Email = email.normalized().parse().unwrap();
            prop_assert_eq!(again.normalized(), email.normalized());
            prop_assert!(again.same_mailbox(&email));
        }
    }

    #[test]
    fn one_substituted_look_alike_does_not_meet_the_profile(
        prefix in "[a-z]{1,5}", suffix in "[a-z]{1,5}",
        look_alike in prop::sample::select(&['\u{430}', '\u{435}', '\u{43e}', '\u{440}', '\u{441}', '\u{456}',
            '\u{3bf}', '\u{3b1}', '\u{212a}', '\u{17f}', '\u{ff4b}', '\u{1d4d0}', '\u{13a0}'][..]),
    ) {
        let text = format!("{prefix}{look_alike}{suffix}@example.com");
        prop_assert!(text.parse::<Email>().is_err(), "{}", text);
    }

    #[test]
    fn ascii_addresses_always_meet_the_profile(local in "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}") {
        let text = format!("{local}@example.com");
        prop_assert!(text.parse::<Email>().is_ok(), "{}", text);
    }
}

/// Letters of several scripts and symbols that look like letters.
fn any_local_part() -> impl Strategy<Value = String> {
    let c = prop_oneof![
        3 => prop::char::range('a', 'z'),
        1 => prop::char::range('A', 'Z'),
        2 => prop::char::range('\u{c0}', '\u{24f}'),
        2 => prop::char::range('\u{300}', '\u{36f}'),
        2 => prop::char::range('\u{370}', '\u{52f}'),
        1 => prop::char::range('\u{1e00}', '\u{1fff}'),
        2 => prop::char::range('\u{2100}', '\u{218f}'),
        1 => any::<char>(),
    ];
    prop::collection::vec(c, 1..8).prop_map(String::from_iter)
}

#[test]
fn as_str_returns_the_input_and_debug_hides_it() {
    let email: Email = "Ada.Lovelace@Example.com".parse().unwrap();
    assert_eq!(email.as_str(), "Ada.Lovelace@Example.com");
    assert!(!format!("{email:?}").contains("Ada"));
}

#[test]
fn malformed_address_is_rejected() {
    let long_local = format!("{}@example.com", "a".repeat(65));
    let long_domain = format!("a@{}.com", "b".repeat(250));
    for text in [
        "",
        "@",
        "a",
        "a@",
        "@b.com",
        "a b@c.com",
        "a@b c.com",
        "\"a b\"@c.com",
        "\"a\"@c.com",
        "a@b@c.com",
        "a@[127.0.0.1]",
        "a@b..com",
        ".a@b.com",
        "a.@b.com",
        "a..b@c.com",
        "a@-b.com",
        "a@b-.com",
        "a@.com",
        "a@b.com.",
        "a\r\nBcc: x@y.com@b.com",
        "a@b.com\r\n",
        "a@b.com\0",
        "a\u{200b}@b.com",
        "a\u{202e}@b.com",
        "<a@b.com>",
        "Ada <a@b.com>",
        "a,b@c.com",
        &long_local,
        &long_domain,
    ] {
        assert!(text.parse::<Email>().is_err(), "{text:?}");
    }
}
