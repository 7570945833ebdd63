//! The terminal's alternate screen, redrawn in place.

use anyhow::Context;
use console::{Term, truncate_str};
use std::fmt::Write;

const OPEN: &str = "\x1b[?1049h\x1b[?25l";
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The alternate screen without a cursor. Dropping it restores the previous screen.
pub struct Screen {
    terminal: Term,
}

impl Screen {
    /// Switches to the alternate screen.
    ///
    /// # Errors
    /// If writing to the terminal fails.
    pub fn open() -> anyhow::Result<Self> {
        let screen = Self { terminal: Term::stdout() };
        screen.terminal.write_str(OPEN).context("write the terminal")?;
        Ok(screen)
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.terminal.size().1.into()
    }

    /// Replaces the text on the screen; what does not fit is cut off.
    ///
    /// # Errors
    /// If writing to the terminal fails.
    pub fn show(&mut self, text: &str) -> anyhow::Result<()> {
        let (rows, columns) = self.terminal.size();
        self.terminal.write_str(&frame(text, rows.into(), columns.into())).context("write the terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nowhere to report the error.
        let _ = self.terminal.write_str(CLOSE);
    }
}

/// Returns the text that redraws a screen of this size. The last row has no line end, because that would scroll the screen.
fn frame(text: &str, rows: usize, columns: usize) -> String {
    let mut frame = HOME.to_owned();
    for (index, line) in text.lines().take(rows).enumerate() {
        let end = if index == 0 { "" } else { "\r\n" };
        let _ = write!(frame, "{end}{}{CLEAR_LINE}", truncate_str(line, columns, "…"));
    }
    frame.push_str(CLEAR_BELOW);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_its_screen() {
        let shown = frame("abcdef\nx\ny\nz\n", 3, 4);
        assert_eq!(shown, "\x1b[Habc…\x1b[K\r\nx\x1b[K\r\ny\x1b[K\x1b[J");
    }
}
