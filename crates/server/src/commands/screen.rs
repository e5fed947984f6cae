//! How wide the screen is, and prose that is broken between words to fit on it.
//!
//! What goes to a file or another program is not broken: there a line is a line.

use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size_of};
use unicode_width::UnicodeWidthStr;

/// How many columns this has; more than any line, if it is no terminal.
pub fn columns(of: impl AsFd) -> usize {
    terminal_size_of(of).map_or(usize::MAX, |(Width(columns), _)| usize::from(columns))
}

/// Prints a line for people. What does not fit goes on below it, a little further in than it began.
pub fn say(line: &str) {
    println!("{}", wrapped(line, columns(std::io::stdout())));
}

/// The same beside the answer, for people alone.
pub fn note(line: &str) {
    eprintln!("{}", wrapped(line, columns(std::io::stderr())));
}

/// The same text with no line wider than this, unless a word is.
pub fn wrapped(text: &str, wide: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| wrapped_line(line, wide)).collect();
    lines.join("\n")
}

fn wrapped_line(line: &str, wide: usize) -> String {
    if line.width() <= wide {
        return line.to_owned();
    }
    let margin = line.len() - line.trim_start().len();
    let margin = " ".repeat(margin + 2);
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        let fits = current.width() + word.trim_end().width() <= wide;
        if !fits && !current.trim().is_empty() {
            lines.push(current.trim_end().to_owned());
            current.clone_from(&margin);
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
    fn lines_are_broken_between_words_and_go_on_further_in() {
        let text = "  one two three four five\nsix";
        assert_eq!(wrapped(text, usize::MAX), text);
        assert_eq!(wrapped(text, 15), "  one two three\n    four five\nsix");
        assert_eq!(wrapped("a verylongword b", 6), "a\n  verylongword\n  b");
    }
}
