//! Enums that are stored and sent as strings.

/// Declares an enum whose variants are strings. Aliases are accepted as input only.
///
/// Generates `ALL`, `ALIASES`, `as_str`, [`Display`](std::fmt::Display), and a
/// [`FromStr`](std::str::FromStr) that ignores ASCII case. A parse error suggests the closest string.
///
/// ```
/// perennial_domain::string_enum! {
///     /// A color.
///     pub enum Color: "a color" {
///         /// Red.
///         Red = "red",
///         /// Blue.
///         Blue = "blue",
///     } aliases {
///         "crimson" => Red,
///     }
/// }
///
/// assert_eq!("Crimson".parse(), Ok(Color::Red));
/// let error = "bleu".parse::<Color>().unwrap_err();
/// assert_eq!(error.message, r#""bleu" is not a color; did you mean "blue"?"#);
/// ```
#[macro_export]
macro_rules! string_enum {
    (
        $(#[$enum_meta:meta])*
        $visibility:vis enum $name:ident: $description:literal {
            $($(#[doc = $documentation:literal])* $variant:ident = $text:literal,)+
        } $(aliases {
            $($alias:literal => $target:ident,)+
        })?
    ) => {
        $(#[$enum_meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[doc = $documentation])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Additional strings that are accepted as input.
            pub const ALIASES: [(&'static str, Self); {
                const ALIASES: &[&str] = &[$($($alias,)+)?];
                ALIASES.len()
            }] = [$($(($alias, Self::$target),)+)?];

            /// Returns the string that is stored and sent.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the documentation of the variant in one line.
            pub const fn documentation(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($documentation),*).trim_ascii_start(),)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::ValidationError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                // An exact match is the common case: values read from the database.
                match text {
                    $($text => return Ok(Self::$variant),)+
                    _ => {}
                }
                Self::ALL
                    .map(|value| (value.as_str(), value))
                    .into_iter()
                    .chain(Self::ALIASES)
                    .find(|(known, _)| known.eq_ignore_ascii_case(text))
                    .map(|(_, value)| value)
                    .ok_or_else(|| {
                        let allowed = Self::ALL.map(Self::as_str).to_vec();
                        let aliases = Self::ALIASES.map(|(alias, value)| (alias, value.as_str()));
                        $crate::ValidationError::unknown_value($description, text, allowed, &aliases)
                    })
            }
        }
    };
}
