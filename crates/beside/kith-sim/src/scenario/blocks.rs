//! Pages of blocks: lines of input, and the output of all of them. Blocks are separated by empty lines.
//!
//! They suit inputs of several lines and long tables of cases. What is expected begins with `>` and remarks with `#`, as in a
//! script, but a page needs neither title nor explanation.

use super::difference;
use std::{fs, path::Path};

/// Plays the input of every block, in order, and compares the output with the lines that the page expects. With `BLESS` in the
/// environment, rewrites the expected lines and leaves everything else as it is.
///
/// # Panics
/// If the page cannot be read, expects nothing, has input after expected lines, or differs from what was played.
pub fn check_blocks(path: &Path, play: impl FnMut(&[&str]) -> String) {
    check(path, |page| blocks_played(page, play));
}

/// Does the same with these blocks of input in place of those of the page, so that a page has all cases of a list. With
/// `BLESS` in the environment, rewrites the whole page.
///
/// # Panics
/// If the page cannot be read, or differs from what was played.
pub fn check_inputs(path: &Path, inputs: &[&str], play: impl FnMut(&[&str]) -> String) {
    check(path, |_| blocks_played(&inputs.join("\n\n"), play));
}

fn check(path: &Path, played: impl FnOnce(&str) -> Result<String, String>) {
    let name = path.display();
    let page = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let played = played(&page).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, played).unwrap_or_else(|error| panic!("{name}: {error}"));
    } else {
        let difference = difference(&page, &played);
        assert!(page == played, "{name} differs (- expected, + played); BLESS=1 rewrites it:\n{difference}");
    }
}

/// Returns the page with what was played in place of what it expects.
fn blocks_played(page: &str, mut play: impl FnMut(&[&str]) -> String) -> Result<String, String> {
    let mut blocks = Vec::new();
    for block in page.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty()) {
        let lines: Vec<&str> = block.lines().collect();
        let head = lines.iter().take_while(|line| !line.starts_with('>')).count();
        if let Some(line) = lines[head..].iter().find(|line| !line.starts_with('>')) {
            return Err(format!("an empty line ends a block before its next input, {line:?}"));
        }
        let input: Vec<&str> = lines[..head].iter().copied().filter(|line| !line.starts_with('#')).collect();
        let output = if input.is_empty() { String::new() } else { play(&input) };
        let output = output.lines().map(|line| format!("> {line}").trim_end().to_owned());
        blocks.push(
            lines[..head].iter().map(|line| (*line).to_owned()).chain(output).collect::<Vec<_>>().join("\n"),
        );
    }
    match blocks.iter().any(|block| block.contains("\n>")) {
        true => Ok(blocks.join("\n\n") + "\n"),
        false => Err("no block prints anything".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reversed(page: &str) -> Result<String, String> {
        blocks_played(page, |lines| lines.iter().rev().map(|line| format!("{line}\n")).collect())
    }

    #[test]
    fn each_block_is_followed_by_what_its_lines_print() {
        let page = "# A remark.\n\n# Another.\na\nb\n> b\n> a\n\nc\n> wrong\n> and more\n";
        let played = "# A remark.\n\n# Another.\na\nb\n> b\n> a\n\nc\n> c\n";
        assert_eq!(reversed(page).as_deref(), Ok(played));
        assert_eq!(reversed(played).as_deref(), Ok(played));
        assert_eq!(blocks_played("a\n", |_| "x\n\ny".to_owned()).as_deref(), Ok("a\n> x\n>\n> y\n"));
    }

    #[test]
    fn a_page_that_checks_nothing_is_refused() {
        assert!(blocks_played("a\n\nb\n", |_| String::new()).is_err());
        assert!(reversed("a\n> a\nb\n> b\n").unwrap_err().contains("\"b\""));
    }
}
