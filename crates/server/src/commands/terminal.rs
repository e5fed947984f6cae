//! Wrapping text to the width of the terminal.
//!
//! Output to a file or a pipe is not wrapped, so that `grep` sees whole lines.

use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size_of};
use unicode_width::UnicodeWidthStr;

/// Returns the number of columns of a terminal, or `usize::MAX` if the stream is not a terminal.
pub fn width(stream: impl AsFd) -> usize {
    terminal_size_of(stream).map_or(usize::MAX, |(Width(columns), _)| usize::from(columns))
}

/// Prints text to standard output, wrapped.
pub fn print_wrapped(text: &str) {
    println!("{}", wrap(text, width(std::io::stdout())));
}

/// Prints text to standard error, wrapped.
pub fn eprint_wrapped(text: &str) {
    eprintln!("{}", wrap(text, width(std::io::stderr())));
}

/// Breaks each line between words at `width` columns. Continuation lines are indented two columns
/// further than the line's start. A word that is too long for a line is not broken.
pub fn wrap(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| wrap_line(line, width)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let continuation_indent = " ".repeat(indent + 2);
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        let fits = current.width() + word.trim_end().width() <= width;
        if !fits && !current.trim().is_empty() {
            lines.push(current.trim_end().to_owned());
            current.clone_from(&continuation_indent);
        }
        current += word;
    }
    lines.push(current);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrap_breaks_between_words_and_indents_continuation_lines() {
        let text = "  one two three four five\nsix";
        assert_eq!(wrap(text, usize::MAX), text);
        assert_eq!(wrap(text, 15), "  one two three\n    four five\nsix");
        assert_eq!(wrap("a verylongword b", 6), "a\n  verylongword\n  b");
    }
}
