//! Declaration and parsing of environment variables.
//!
//! Each variable is declared once, with its documentation. `perennial config show` and
//! `docs/reference/configuration.md` are generated from the declarations.

use std::{collections::BTreeMap, ffi::OsString, fmt, ops::RangeInclusive, str::FromStr};

use perennial_domain::suggest;

/// The prefix of all variables except `DATABASE_URL`.
const PREFIX: &str = "PERENNIAL_";

/// An environment variable.
#[derive(Debug)]
pub struct EnvVar {
    pub name: &'static str,
    /// Markdown for the configuration reference.
    pub doc: &'static str,
    pub default: Option<&'static str>,
    /// Whether to hide the value. A secret can also be passed as `NAME_FILE`, the path of a file that
    /// contains it.
    pub secret: bool,
}

impl EnvVar {
    /// Returns the name of the variable that can contain a file path instead of the value.
    fn file_name(&self) -> Option<String> {
        self.secret.then(|| format!("{}_FILE", self.name))
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    Environment,
    /// The file at this path, from the `_FILE` variable.
    File(String),
    /// Not set, without a default.
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

/// A variable with its value.
#[derive(Debug)]
pub struct Setting {
    pub var: &'static EnvVar,
    pub value: Option<String>,
    pub origin: Origin,
}

/// Reads variables and collects all errors, so that an operator can fix them together.
#[derive(Debug)]
pub struct EnvReader {
    variables: BTreeMap<String, String>,
    /// The variables that were read, in order.
    pub settings: Vec<Setting>,
    pub errors: Vec<String>,
}

impl EnvReader {
    /// Creates a reader of these variables. Empty values count as not set.
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

    /// Creates a reader of the environment of this process. Ignores variables that are not UTF-8.
    pub fn from_env() -> Self {
        let utf8 = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(utf8))
    }

    /// Returns the value of a variable and adds it to `settings`.
    pub fn get(&mut self, var: &'static EnvVar) -> Option<String> {
        let (value, origin) = self.resolve(var);
        self.settings.push(Setting {
            var,
            value: value.clone(),
            origin,
        });
        value
    }

    /// Sets the effective value of a variable that is not set and whose default depends on others.
    pub fn set_default(&mut self, var: &'static EnvVar, value: impl fmt::Display) {
        self.set_effective(var, value, Origin::Default);
    }

    /// Sets the effective value of a variable that is not set, and where it comes from.
    pub fn set_effective(
        &mut self,
        var: &'static EnvVar,
        value: impl fmt::Display,
        origin: Origin,
    ) {
        let is_unset = |setting: &&mut Setting| {
            setting.var.name == var.name && setting.origin == Origin::Unset
        };
        if let Some(setting) = self.settings.iter_mut().find(is_unset) {
            setting.value = Some(value.to_string());
            setting.origin = origin;
        }
    }

    /// Returns a variable that is not one of the service's settings.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Parses a variable.
    pub fn parse<T>(&mut self, var: &'static EnvVar) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        self.get(var)?
            .parse()
            .map_err(|error: T::Err| self.push_error(var, &error.to_string()))
            .ok()
    }

    /// Parses an integer within `range`.
    pub fn integer<T>(&mut self, var: &'static EnvVar, range: RangeInclusive<u32>) -> Option<T>
    where
        T: TryFrom<u32>,
    {
        let (min, max) = (*range.start(), *range.end());
        let expected = format!("must be an integer from {min} to {max}");
        self.parse_if(var, &expected, |number| range.contains(number))
            .and_then(|number| number.try_into().ok())
    }

    /// Parses a variable and checks its value. The error says what is `expected`: "must be …".
    pub fn parse_if<T: FromStr>(
        &mut self,
        var: &'static EnvVar,
        expected: &str,
        is_valid: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let text = self.get(var)?;
        let value = text.parse().ok().filter(is_valid);
        if value.is_none() {
            self.push_error(var, &format!("{expected}; got \"{text}\""));
        }
        value
    }

    /// Parses a comma-separated list.
    pub fn parse_list<T>(
        &mut self,
        var: &'static EnvVar,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let text = self.get(var)?;
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        let parsed: Vec<Option<T>> = items
            .map(|item| {
                parse(item)
                    .map_err(|error| self.push_error(var, &format!("{error}; got \"{item}\"")))
                    .ok()
            })
            .collect();
        parsed.into_iter().collect()
    }

    pub fn push_error(&mut self, var: &EnvVar, message: &str) {
        self.errors.push(format!("{}: {message}", var.name));
    }

    fn resolve(&mut self, var: &'static EnvVar) -> (Option<String>, Origin) {
        if let Some(value) = self.variables.get(var.name) {
            return (Some(value.clone()), Origin::Environment);
        }
        let path = var
            .file_name()
            .and_then(|name| self.variables.get(&name).cloned());
        if let Some(path) = path {
            return match std::fs::read_to_string(&path) {
                Ok(text) => (Some(text.trim().to_owned()), Origin::File(path)),
                Err(error) => {
                    self.errors
                        .push(format!("{}_FILE: {path}: {error}", var.name));
                    (None, Origin::File(path))
                }
            };
        }
        match var.default {
            Some(default) => (Some(default.to_owned()), Origin::Default),
            None => (None, Origin::Unset),
        }
    }

    /// Adds an error for every variable that starts with `PERENNIAL_` and is not in `known`.
    pub fn reject_unknown(&mut self, known: &[&'static EnvVar]) {
        let names: Vec<String> = known
            .iter()
            .flat_map(|var| [Some(var.name.to_owned()), var.file_name()])
            .flatten()
            .collect();
        for name in self.variables.keys() {
            if !name.starts_with(PREFIX) || names.contains(name) {
                continue;
            }
            // The common prefix would make any two names look similar.
            let suffixes = names.iter().map(|name| without_prefix(name));
            let closest = suggest(without_prefix(name), suffixes)
                .and_then(|suffix| names.iter().find(|name| without_prefix(name) == suffix));
            let hint = closest.map_or_else(
                || "`perennial config show` lists all settings".to_owned(),
                |closest| format!("did you mean {closest}?"),
            );
            self.errors.push(format!("{name}: unknown setting; {hint}"));
        }
    }
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}
