//! A list of things on a terminal: one line each, in columns.
//!
//! A thing whose line would be longer than the terminal is wide takes two: its name, and below it what there is to say,
//! in words. Elsewhere than on a terminal every line is as long as it needs to be, so that `grep` finds it whole.

use unicode_width::UnicodeWidthStr;

use super::screen;

/// What stands between two columns.
const GAP: &str = "  ";

/// A list with so many columns, the first of which is the thing's name.
pub struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// An empty one.
    pub fn new(header: [&'static str; N]) -> Self {
        let rows = Vec::new();
        Self { header, rows }
    }

    pub fn add_row(&mut self, row: [impl Into<String>; N]) {
        self.rows.push(row.map(Into::into));
    }

    pub fn print(&self) {
        for line in self.lines(screen::columns(std::io::stdout())) {
            println!("{line}");
        }
    }

    fn lines(&self, wide: usize) -> Vec<String> {
        // Whatever is longer than this takes two lines.
        let mut limit = usize::MAX;
        let columns = loop {
            let in_line: Vec<_> = self.rows.iter().filter(|row| fits(row, limit)).collect();
            let columns = self.columns(&in_line);
            let line: usize = columns.iter().sum::<usize>() + GAP.len() * N.saturating_sub(1);
            if line <= wide {
                break Some(columns);
            }
            match in_line.into_iter().map(longest).max() {
                Some(longest) => limit = longest,
                None => break None,
            }
        };
        // What stands below its name says of itself what it is.
        let all_below = !self.rows.is_empty() && !self.rows.iter().any(|row| fits(row, limit));
        let columns = columns.filter(|_| !all_below);
        let Some(columns) = columns else {
            return self
                .rows
                .iter()
                .flat_map(|row| self.below(row, wide))
                .collect();
        };
        let mut lines = vec![aligned(&self.header.map(str::to_owned), &columns)];
        for row in &self.rows {
            if fits(row, limit) {
                lines.push(aligned(row, &columns));
            } else {
                lines.extend(self.below(row, wide));
            }
        }
        lines
    }

    /// How wide each column is with these rows.
    fn columns(&self, rows: &[&[String; N]]) -> [usize; N] {
        let mut columns = self.header.map(UnicodeWidthStr::width);
        for row in rows {
            for (column, cell) in columns.iter_mut().zip(row.iter()) {
                *column = cell.width().max(*column);
            }
        }
        columns
    }

    /// The name, and below it the rest.
    fn below(&self, row: &[String; N], wide: usize) -> Vec<String> {
        let mut lines = Vec::from_iter(row.first().cloned());
        let mut line = String::new();
        for (header, cell) in self.header.iter().zip(row).skip(1) {
            if cell.is_empty() {
                continue;
            }
            let said = format!("{} {cell}", header.to_lowercase());
            if line.is_empty() {
                line = format!("    {said}");
            } else if line.width() + said.width() + 3 <= wide {
                line += &format!(" · {said}");
            } else {
                lines.push(std::mem::replace(&mut line, format!("    {said}")));
            }
        }
        lines.extend(Some(line).filter(|line| !line.is_empty()));
        lines
    }
}

/// How long the longest cell is, but for the name.
fn longest<const N: usize>(row: &[String; N]) -> usize {
    let cells = row.iter().skip(1).map(|cell| cell.width());
    cells.max().unwrap_or(0)
}

fn fits<const N: usize>(row: &[String; N], limit: usize) -> bool {
    longest(row) < limit
}

/// A row with its cells where their columns begin, and without blanks at its end, which a narrow terminal would break.
fn aligned<const N: usize>(row: &[String; N], columns: &[usize; N]) -> String {
    let mut line = String::new();
    for (cell, column) in row.iter().zip(columns) {
        let blanks = " ".repeat(column.saturating_sub(cell.width()));
        line += &format!("{cell}{blanks}{GAP}");
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table = Table::new(["KEY", "VALUE", "FROM"]);
        table.add_row(["MODE", "live", "environment"]);
        table.add_row([
            "DATABASE_URL",
            "postgres://perennial@db/perennial",
            "environment",
        ]);
        table.add_row(["CELLS", "", "default"]);
        table
    }

    #[test]
    fn a_line_each_where_there_is_room() {
        let lines = table().lines(usize::MAX);
        assert_eq!(
            lines,
            [
                "KEY           VALUE                              FROM",
                "MODE          live                               environment",
                "DATABASE_URL  postgres://perennial@db/perennial  environment",
                "CELLS                                            default",
            ]
        );
    }

    #[test]
    fn what_is_too_long_takes_two_and_the_others_stay() {
        let lines = table().lines(58);
        assert_eq!(
            lines,
            [
                "KEY    VALUE  FROM",
                "MODE   live   environment",
                "DATABASE_URL",
                "    value postgres://perennial@db/perennial",
                "    from environment",
                "CELLS         default",
            ]
        );
    }

    #[test]
    fn on_the_narrowest_terminal_everything_is_said_in_words() {
        let lines = table().lines(12);
        assert_eq!(lines.first().map(String::as_str), Some("MODE"));
        assert_eq!(lines.last().map(String::as_str), Some("    from default"));
    }

    #[test]
    fn wide_characters_are_as_wide_as_two() {
        let mut table = Table::new(["NAME", "CELL"]);
        table.add_row(["日本", "home"]);
        table.add_row(["Acme", "home"]);
        assert_eq!(
            table.lines(80).get(1).map(String::as_str),
            Some("日本  home")
        );
    }
}
