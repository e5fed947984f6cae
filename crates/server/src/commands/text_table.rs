//! Lists as text tables or JSON lines.
//!
//! A row that is too wide for the terminal takes several lines: its first cell, and below it the
//! other cells with their headers. Output to a file or a pipe always has one line per row, so that
//! `grep` finds whole rows.

use unicode_width::UnicodeWidthStr;

use super::terminal;

/// Separates two columns.
const GAP: &str = "  ";

/// A list for standard output: a table for people, or one JSON object per line with `--json`.
pub struct Listing<const N: usize> {
    table: TextTable<N>,
    /// JSON text. It is not parsed, so that amounts keep the decimals of their currency.
    objects: Option<Vec<String>>,
}

impl<const N: usize> Listing<N> {
    pub fn new(header: [&'static str; N], json: bool) -> Self {
        let table = TextTable::new(header);
        let objects = json.then(Vec::new);
        Self { table, objects }
    }

    /// Adds a row. `object` is the same as JSON: a `Value`, or text.
    pub fn add(&mut self, row: [impl Into<String>; N], object: &impl ToString) {
        match &mut self.objects {
            Some(objects) => objects.push(object.to_string()),
            None => self.table.add_row(row),
        }
    }

    /// Prints the list, or `empty` instead of a table without rows.
    pub fn print_or(&self, empty: &str) {
        match &self.objects {
            None if self.table.rows.is_empty() => println!("{empty}"),
            _ => self.print(),
        }
    }

    pub fn print(&self) {
        match &self.objects {
            Some(objects) => {
                for object in objects {
                    println!("{object}");
                }
            }
            None => self.table.print(),
        }
    }
}

struct TextTable<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<N> {
    fn new(header: [&'static str; N]) -> Self {
        let rows = Vec::new();
        Self { header, rows }
    }

    fn add_row(&mut self, row: [impl Into<String>; N]) {
        self.rows.push(row.map(Into::into));
    }

    fn print(&self) {
        for line in self.lines(terminal::width(std::io::stdout())) {
            println!("{line}");
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        // Rows with a cell of at least this width are stacked. The loop lowers it until the other
        // rows fit.
        let mut limit = usize::MAX;
        let columns = loop {
            let single_line: Vec<_> = self.rows.iter().filter(|row| fits(row, limit)).collect();
            let columns = self.column_widths(&single_line);
            let line: usize = columns.iter().sum::<usize>() + GAP.len() * N.saturating_sub(1);
            if line <= width {
                break Some(columns);
            }
            match single_line.into_iter().map(widest_cell).max() {
                Some(widest) => limit = widest,
                None => break None,
            }
        };
        // Stacked rows repeat the headers, so the header line is omitted if all rows are stacked.
        let all_stacked = !self.rows.is_empty() && !self.rows.iter().any(|row| fits(row, limit));
        let Some(columns) = columns.filter(|_| !all_stacked) else {
            let rows = self.rows.iter();
            return rows.flat_map(|row| self.stacked(row, width)).collect();
        };
        let mut lines = vec![aligned(&self.header.map(str::to_owned), &columns)];
        for row in &self.rows {
            if fits(row, limit) {
                lines.push(aligned(row, &columns));
            } else {
                lines.extend(self.stacked(row, width));
            }
        }
        lines
    }

    fn column_widths(&self, rows: &[&[String; N]]) -> [usize; N] {
        let mut widths = self.header.map(UnicodeWidthStr::width);
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row.iter()) {
                *width = cell.width().max(*width);
            }
        }
        widths
    }

    /// Formats a row as its first cell and, indented below it, `header value` pairs.
    fn stacked(&self, row: &[String; N], width: usize) -> Vec<String> {
        let mut lines = Vec::from_iter(row.first().cloned());
        let mut line = String::new();
        for (header, cell) in self.header.iter().zip(row).skip(1) {
            if cell.is_empty() {
                continue;
            }
            let pair = format!("{} {cell}", header.to_lowercase());
            if line.is_empty() {
                line = format!("    {pair}");
            } else if line.width() + pair.width() + 3 <= width {
                line += &format!(" · {pair}");
            } else {
                lines.push(std::mem::replace(&mut line, format!("    {pair}")));
            }
        }
        lines.extend(Some(line).filter(|line| !line.is_empty()));
        // A header and a single word stay on one line.
        let wrapped = lines
            .iter()
            .map(|line| match line.split_whitespace().count() {
                ..=2 => line.clone(),
                _ => terminal::wrap(line, width),
            });
        let wrapped: Vec<String> = wrapped.collect();
        wrapped
            .iter()
            .flat_map(|text| text.lines().map(str::to_owned))
            .collect()
    }
}

/// Returns the width of the widest cell after the first.
fn widest_cell<const N: usize>(row: &[String; N]) -> usize {
    let cells = row.iter().skip(1).map(|cell| cell.width());
    cells.max().unwrap_or(0)
}

fn fits<const N: usize>(row: &[String; N], limit: usize) -> bool {
    widest_cell(row) < limit
}

/// Pads the cells to their columns, without trailing blanks, which a narrow terminal would wrap.
fn aligned<const N: usize>(row: &[String; N], columns: &[usize; N]) -> String {
    let mut line = String::new();
    for (cell, column) in row.iter().zip(columns) {
        let padding = " ".repeat(column.saturating_sub(cell.width()));
        line += &format!("{cell}{padding}{GAP}");
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable<3> {
        let mut table = TextTable::new(["KEY", "VALUE", "FROM"]);
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
    fn rows_that_fit_take_one_line_each() {
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
    fn only_rows_that_are_too_wide_are_stacked() {
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
    fn cells_of_stacked_rows_are_wrapped_between_words() {
        let mut table = TextTable::new(["ID", "ORIGINS"]);
        table.add_row(["cli_1", "http://localhost:3000 http://localhost:5173"]);
        assert_eq!(
            table.lines(40),
            [
                "cli_1",
                "    origins http://localhost:3000",
                "      http://localhost:5173",
            ]
        );
    }

    #[test]
    fn all_rows_are_stacked_without_a_header_on_a_very_narrow_terminal() {
        let lines = table().lines(12);
        assert_eq!(lines.first().map(String::as_str), Some("MODE"));
        assert_eq!(lines.last().map(String::as_str), Some("    from default"));
    }

    #[test]
    fn wide_characters_count_as_two_columns() {
        let mut table = TextTable::new(["NAME", "CELL"]);
        table.add_row(["日本", "home"]);
        table.add_row(["Acme", "home"]);
        assert_eq!(
            table.lines(80).get(1).map(String::as_str),
            Some("日本  home")
        );
    }
}
