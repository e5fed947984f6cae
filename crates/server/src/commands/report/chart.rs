//! Bar charts for the terminal: one line per interval.

use unicode_width::UnicodeWidthStr;

use crate::commands::terminal;

/// The eighths of a block, from none to seven.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// The widest a bar becomes.
const MAX_BAR: usize = 40;
/// The width of output to a file or a pipe.
const PIPE_WIDTH: usize = 80;
const GAP: usize = 2;

/// A line of a chart.
pub struct Bar {
    pub label: String,
    /// The length of the bar. A negative one has none.
    pub size: i128,
    /// What is printed behind the bar.
    pub figures: Vec<String>,
}

/// Prints bars below a header, scaled to the largest one and to the terminal's width.
pub fn print(header: &[&str], bars: &[Bar]) {
    let width = terminal::width(std::io::stdout()).min(PIPE_WIDTH);
    for line in render(header, bars, width) {
        println!("{line}");
    }
}

fn render(header: &[&str], bars: &[Bar], width: usize) -> Vec<String> {
    let label_width = bars.iter().map(|bar| bar.label.width()).max().unwrap_or(0);
    let columns: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(index, title)| {
            let cells = bars.iter().filter_map(|bar| bar.figures.get(index));
            cells
                .map(|cell| cell.width())
                .max()
                .unwrap_or(0)
                .max(title.width())
        })
        .collect();
    let figures_width: usize = columns.iter().map(|column| column + GAP).sum();
    let bar_width = width
        .saturating_sub(label_width + GAP + figures_width)
        .min(MAX_BAR);
    let largest = bars.iter().map(|bar| bar.size).max().unwrap_or(0);
    let line = |label: &str, bar: String, figures: &[&str]| {
        let padding = bar_width.saturating_sub(bar.width());
        let mut line = format!("{label:label_width$}  {bar}{}", " ".repeat(padding));
        for (figure, column) in figures.iter().zip(&columns) {
            line += &format!("  {figure:>column$}");
        }
        line.trim_end().to_owned()
    };
    let titles = line("", String::new(), header);
    let rows = bars.iter().map(|bar| {
        let figures: Vec<&str> = bar.figures.iter().map(String::as_str).collect();
        line(&bar.label, blocks(bar.size, largest, bar_width), &figures)
    });
    std::iter::once(titles).chain(rows).collect()
}

/// Returns a bar in eighths of a block. Anything above zero is visible.
fn blocks(size: i128, largest: i128, width: usize) -> String {
    let Ok(width) = i128::try_from(width * 8) else {
        return String::new();
    };
    if size <= 0 || largest <= 0 {
        return String::new();
    }
    let eighths = (size.saturating_mul(width) / largest).max(1);
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled_and_figures_aligned() {
        let bar = |label: &str, size, figure: &str| Bar {
            label: label.to_owned(),
            size,
            figures: vec![figure.to_owned()],
        };
        let bars = [
            bar("2026-09", 800, "8.00"),
            bar("2026-10", 1, "0.01"),
            bar("2026-11", 1_600, "16.00"),
            bar("2026-12", -5, "-0.05"),
        ];
        assert_eq!(
            render(&["MRR"], &bars, 26),
            [
                "                       MRR",
                "2026-09  █████        8.00",
                "2026-10  ▏            0.01",
                "2026-11  ██████████  16.00",
                "2026-12              -0.05",
            ]
        );
    }
}
