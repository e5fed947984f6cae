//! A configuration key, and where its value came from.
//!
//! Each key is declared once, with its documentation; `perennial config show` and
//! `docs/configuration.md` are made from these declarations.

use std::{collections::BTreeMap, ffi::OsString, fmt, ops::RangeInclusive, str::FromStr};

/// One thing that an operator can set, by an environment variable of this name.
#[derive(Debug)]
pub struct Key {
    /// The environment variable.
    pub name: &'static str,
    /// What it does, in Markdown, for the reference.
    pub doc: &'static str,
    /// What holds if it is not set, if anything does.
    pub default: Option<&'static str>,
    /// Whether the value is never shown. Such a key can also be given as `NAME_FILE`: the path of
    /// a file that holds the value.
    pub secret: bool,
}

/// What our own keys begin with.
const PREFIX: &str = "PERENNIAL_";

fn bare(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The environment variable of the key's name.
    Environment,
    /// The file that the `_FILE` variable names.
    File(String),
    /// Not set, and there is no default.
    Unset,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Unset => f.write_str("not set"),
        }
    }
}

/// A key with the value it has.
#[derive(Debug)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Where that came from.
    pub origin: Origin,
}

/// Reads keys and collects everything that is wrong, so that an operator mends it in one go.
#[derive(Debug)]
pub struct Reader {
    variables: BTreeMap<String, String>,
    /// What was read, in order.
    pub settings: Vec<Setting>,
    /// What is wrong.
    pub errors: Vec<String>,
}

impl Reader {
    /// Reads from these variables; an empty value counts as not set, as in most shells' habits.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            settings: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Reads the process's environment. What is not text is not ours.
    pub fn of_environment() -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text))
    }

    /// The value of `key` as text.
    pub fn text(&mut self, key: &'static Key) -> Option<String> {
        let (value, origin) = self.find(key);
        self.settings.push(Setting {
            key,
            value: value.clone(),
            origin,
        });
        value
    }

    /// The value of `key`, parsed.
    pub fn value<T>(&mut self, key: &'static Key) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(key)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let shown = if key.secret {
                    "its value"
                } else {
                    text.as_str()
                };
                self.wrong(key, &format!("{shown}: {error}"));
                None
            }
        }
    }

    /// The value of `key`, a whole number within `allowed`.
    pub fn whole<T>(&mut self, key: &'static Key, allowed: RangeInclusive<u32>) -> Option<T>
    where
        T: TryFrom<u32>,
    {
        let (least, most) = (*allowed.start(), *allowed.end());
        let expected = format!("expected a whole number from {least} to {most}");
        self.checked(key, &expected, |number| allowed.contains(number))
            .and_then(|number| number.try_into().ok())
    }

    /// The value of `key`, if it can be read and is `allowed`; of any other, what is `expected` is said.
    pub fn checked<T: FromStr>(
        &mut self,
        key: &'static Key,
        expected: &str,
        allowed: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let text = self.text(key)?;
        let value = text.parse().ok().filter(allowed);
        if value.is_none() {
            self.wrong(key, &format!("{text}: {expected}"));
        }
        value
    }

    /// The values of `key`, separated by commas.
    pub fn list<T>(&mut self, key: &'static Key) -> Option<Vec<T>>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(key)?;
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        let read = items.map(|item| {
            let parsed = item.parse();
            parsed.map_err(|error: T::Err| self.wrong(key, &format!("{item}: {error}")))
        });
        let read: Vec<Result<T, ()>> = read.collect();
        read.into_iter().collect::<Result<_, _>>().ok()
    }

    /// Says that something is wrong with `key`.
    pub fn wrong(&mut self, key: &Key, what: &str) {
        self.errors.push(format!("{}: {what}", key.name));
    }

    fn find(&mut self, key: &'static Key) -> (Option<String>, Origin) {
        if let Some(value) = self.variables.get(key.name) {
            return (Some(value.clone()), Origin::Environment);
        }
        let file = key
            .secret
            .then(|| self.variables.get(&format!("{}_FILE", key.name)).cloned())
            .flatten();
        if let Some(path) = file {
            return match std::fs::read_to_string(&path) {
                Ok(text) => (Some(text.trim().to_owned()), Origin::File(path)),
                Err(error) => {
                    self.errors
                        .push(format!("{}_FILE: {path}: {error}", key.name));
                    (None, Origin::File(path))
                }
            };
        }
        match key.default {
            Some(default) => (Some(default.to_owned()), Origin::Default),
            None => (None, Origin::Unset),
        }
    }

    /// Refuses variables that look like ours but are not: a misspelt key must not pass in silence.
    pub fn refuse_unknown(&mut self, known: &[&'static Key]) {
        let names: Vec<String> = known
            .iter()
            .flat_map(|key| {
                let file = key.secret.then(|| format!("{}_FILE", key.name));
                [Some(key.name.to_owned()), file]
            })
            .flatten()
            .collect();
        for name in self.variables.keys() {
            if !name.starts_with(PREFIX) || names.contains(name) {
                continue;
            }
            // What nearly all keys begin with says nothing of how near two of them are.
            let near = perennial_domain::closest(bare(name), names.iter().map(|name| bare(name)));
            let near = near.and_then(|near| names.iter().find(|name| bare(name) == near));
            let hint = near.map_or_else(
                || "`perennial config show` lists all keys".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            self.errors.push(format!("{name}: no such key; {hint}"));
        }
    }
}
