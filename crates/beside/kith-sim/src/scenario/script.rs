//! A parsed script: title, explanation, commands, and the expected output of each.

use std::fmt;

/// The first character of a line of expected output.
const EXPECTED: char = '>';
/// The line that ends the explanation.
const RULE: &str = "---";

/// The reason why a script cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// A description of its fault.
    pub what: String,
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// A command and its expected output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The number of the command's line, counted from 1.
    pub line: usize,
    /// The command.
    pub command: &'a str,
    /// The lines that it should print.
    pub expected: Vec<&'a str>,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    text: &'a str,
    /// The title, one line that says what it shows.
    pub title: &'a str,
    /// The commands, in order; at least one.
    pub steps: Vec<Step<'a>>,
}

impl<'a> Script<'a> {
    /// Parses a script.
    ///
    /// # Errors
    /// If the title, the explanation or the commands are missing, or a line is out of place.
    pub fn parse(text: &'a str) -> Result<Self, ScriptFault> {
        let malformed = |line: usize, what: &str| Err(ScriptFault { line, what: what.to_owned() });
        let mut lines = (1..).zip(text.lines());
        let title = match lines.next() {
            Some((_, title)) if !title.trim().is_empty() && title != RULE => title.trim(),
            _ => return malformed(1, "a script begins with a title"),
        };
        let mut is_explained = false;
        loop {
            match lines.next() {
                Some((line, RULE)) if !is_explained => {
                    return malformed(line, "the title is not followed by an explanation");
                }
                Some((_, RULE)) => break,
                Some((_, prose)) => is_explained |= !prose.trim().is_empty(),
                None => return malformed(text.lines().count(), "no line --- ends the explanation"),
            }
        }
        let mut steps: Vec<Step<'_>> = Vec::new();
        let mut last = 0;
        for (line, content) in lines {
            if let Some(expected) = content.strip_prefix(EXPECTED) {
                let step = steps.last_mut().filter(|step| step.line + step.expected.len() + 1 == line);
                let Some(step) = step else {
                    return malformed(line, "an expected line follows its command, or another such line");
                };
                step.expected.push(expected.strip_prefix(' ').unwrap_or(expected));
            } else if is_command(content) {
                steps.push(Step { line, command: content.trim(), expected: Vec::new() });
            }
            last = line;
        }
        if steps.is_empty() {
            return malformed(last.max(text.lines().count()), "there is no command");
        }
        Ok(Self { text, title, steps })
    }

    /// Refuses a script without expected output, because it could not fail.
    ///
    /// # Errors
    /// If no command has expected output.
    pub fn check_expectations(&self) -> Result<(), ScriptFault> {
        match self.steps.last() {
            Some(step) if self.steps.iter().all(|step| step.expected.is_empty()) => {
                Err(ScriptFault { line: step.line, what: "nothing is expected of any command".to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the same page with the output of each command as its expected lines. Everything else stays as it is.
    ///
    /// # Panics
    /// If the number of outputs differs from the number of commands.
    pub fn with_expected(&self, printed: &[Vec<String>]) -> String {
        assert_eq!(printed.len(), self.steps.len(), "one output per command");
        let mut steps = self.steps.iter().zip(printed).peekable();
        let mut page = String::new();
        for (line, content) in (1..).zip(self.text.lines()) {
            let is_expected = content.starts_with(EXPECTED) && self.steps[0].line < line;
            if is_expected {
                continue;
            }
            page += content;
            page.push('\n');
            if let Some((_, printed)) = steps.next_if(|(step, _)| step.line == line) {
                for printed in printed {
                    page += format!("{EXPECTED} {printed}").trim_end();
                    page.push('\n');
                }
            }
        }
        page
    }
}

fn is_command(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Title\n\nWhy.\n---\n# A remark.\none\n> 1\n>\ntwo\n\nthree\n> 3\n";

    fn fault(text: &str) -> String {
        Script::parse(text).and_then(|script| script.check_expectations()).unwrap_err().to_string()
    }

    #[test]
    fn a_page_is_taken_apart() {
        let script = Script::parse(PAGE).unwrap();
        assert_eq!(script.title, "Title");
        let steps: Vec<_> = script.steps.iter().map(|step| (step.line, step.command)).collect();
        assert_eq!(steps, [(6, "one"), (9, "two"), (11, "three")]);
        assert_eq!(script.steps[0].expected, ["1", ""]);
        assert_eq!(script.check_expectations(), Ok(()));
    }

    #[test]
    fn what_is_missing_or_out_of_place_is_named_with_its_line() {
        assert_eq!(fault(""), "1: a script begins with a title");
        assert_eq!(fault("---\n"), "1: a script begins with a title");
        assert_eq!(fault("Title\n\n---\none\n> 1\n"), "3: the title is not followed by an explanation");
        assert_eq!(fault("Title\n\nWhy.\none\n"), "4: no line --- ends the explanation");
        assert_eq!(fault("Title\n\nWhy.\n---\n# nothing\n"), "5: there is no command");
        assert_eq!(fault("Title\n\nWhy.\n---\none\n"), "5: nothing is expected of any command");
        let stray = "an expected line follows its command, or another such line";
        assert_eq!(fault("Title\n\nWhy.\n---\n> 1\none\n"), format!("5: {stray}"));
        assert_eq!(fault("Title\n\nWhy.\n---\none\n\n> 1\n"), format!("7: {stray}"));
    }

    #[test]
    fn only_expected_lines_are_rewritten() {
        let script = Script::parse(PAGE).unwrap();
        let printed = vec![vec![], vec!["2".to_owned(), String::new()], vec!["three".to_owned()]];
        let page = script.with_expected(&printed);
        assert_eq!(page, "Title\n\nWhy.\n---\n# A remark.\none\ntwo\n> 2\n>\n\nthree\n> three\n");
        let same: Vec<Vec<String>> = script
            .steps
            .iter()
            .map(|step| step.expected.iter().map(|line| (*line).to_owned()).collect())
            .collect();
        assert_eq!(script.with_expected(&same), PAGE);
    }
}
