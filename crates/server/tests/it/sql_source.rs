//! Finds the SQL statements in the source: reads `Sql::new(…)` and expands the macros in it.

use std::path::Path;

use crate::architecture::crate_path;

/// A `macro_rules!` with one arm, as the table modules use for their columns and conditions.
struct Macro {
    name: String,
    /// `$name:fragment` for one argument each, or `$($name:tt)*` for all that are left.
    parameters: Vec<String>,
    body: String,
}

/// Returns the position of the bracket that closes the one at the start of a text.
fn closing_bracket(text: &str) -> usize {
    let (mut depth, mut in_string) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => in_string = !in_string,
            '(' | '{' | '[' if !in_string => depth += 1,
            ')' | '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    panic!("no closing bracket: {text}")
}

/// Returns what is between the first opening bracket and the one that closes it, and what follows.
fn bracketed(text: &str, open: char) -> (&str, &str) {
    let text = &text[text.find(open).unwrap()..];
    let close = closing_bracket(text);
    (&text[1..close], &text[close + 1..])
}

/// Returns the macros of a source that are part of statements.
fn macros(text: &str) -> Vec<Macro> {
    let definitions = text.split("macro_rules! ").skip(1);
    let parse = |definition: &str| {
        let name = definition.split(' ').next().unwrap().to_owned();
        let (arm, _) = bracketed(definition, '{');
        let (parameters, rest) = bracketed(arm, '(');
        let (body, _) = bracketed(rest, '{');
        let body = body.trim();
        let is_sql =
            body.starts_with('"') || body.starts_with("concat!") || body.contains("Sql::new(");
        is_sql.then(|| Macro {
            name,
            parameters: split_arguments(parameters),
            body: body.to_owned(),
        })
    };
    definitions.filter_map(parse).collect()
}

/// Splits arguments at the commas that are not in brackets or strings.
fn split_arguments(text: &str) -> Vec<String> {
    let (mut depth, mut in_string) = (0, false);
    let separator = |character| {
        match character {
            '"' => in_string = !in_string,
            '(' | '{' | '[' if !in_string => depth += 1,
            ')' | '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0 && !in_string
    };
    let parts = text.split(separator).map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Replaces the calls of macros by their bodies until none is left.
fn expand(mut text: String, macros: &[Macro]) -> String {
    while let Some((at, found)) = macros
        .iter()
        .filter_map(|found| Some((text.find(&format!("{}!(", found.name))?, found)))
        .min_by_key(|(at, _)| *at)
    {
        let start = at + found.name.len() + 1;
        let end = start + closing_bracket(&text[start..]);
        let mut arguments = split_arguments(&text[start + 1..end]).into_iter();
        let mut body = found.body.clone();
        for parameter in &found.parameters {
            if let Some(rest) = parameter.strip_prefix("$($") {
                let name = rest.split(':').next().unwrap();
                let all: String = arguments.by_ref().map(|argument| argument + ", ").collect();
                body = body.replace(&format!("$(${name})*"), &all);
            } else {
                let name = parameter.split(':').next().unwrap();
                body = body.replace(name, &arguments.next().unwrap());
            }
        }
        text.replace_range(at..=end, &body);
    }
    text
}

/// Returns the text of a string literal, or of the literals in a `concat!`.
fn literal(expression: &str) -> String {
    if expression.starts_with("concat!") {
        let (parts, _) = bracketed(expression, '(');
        return split_arguments(parts)
            .iter()
            .map(|part| literal(part))
            .collect();
    }
    let text = expression
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let text = text.unwrap_or_else(|| panic!("not a plain string literal: {expression}"));
    assert!(
        !text.contains(['\\', '"']),
        "a statement has no escapes: {text}"
    );
    text.to_owned()
}

/// Returns the texts of all `Sql::new(…)` in a source file. Macros are expanded; they are defined in
/// the file itself, in the `subscription_row.rs` or `table.rs` beside it, in `db/keyset.rs` or in `events/table.rs`.
pub fn statements(path: &Path) -> Vec<String> {
    let source = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        lines.map(|line| line.to_owned() + "\n").collect::<String>()
    };
    let text = source(path);
    let mut shared = Vec::new();
    for name in ["subscription_row.rs", "table.rs"] {
        shared.extend(macros(&source(&path.with_file_name(name))));
    }
    for file in ["src/db/keyset.rs", "src/events/table.rs"] {
        shared.extend(macros(&source(&crate_path(file))));
    }
    let mut known = macros(&text);
    for found in shared {
        if known.iter().all(|other| other.name != found.name) {
            known.push(found);
        }
    }
    let without_definitions: String = text
        .split("macro_rules! ")
        .enumerate()
        .map(|(index, part)| match index {
            0 => part.to_owned(),
            _ => bracketed(part, '{').1.to_owned(),
        })
        .collect();
    let expanded = expand(without_definitions, &known);
    let calls = expanded.match_indices("Sql::new(");
    calls
        .map(|(at, call)| {
            let (argument, _) = bracketed(&expanded[at + call.len() - 1..], '(');
            let argument = argument.trim().trim_end_matches(',');
            literal(argument)
        })
        .collect()
}
