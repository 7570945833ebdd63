//! Plays every script of a folder and compares the output.

use crate::scenario::{Command, Player, Script, ScriptFault, difference};
use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// The folder of scripts, relative to the root of the repository. `GUIDE` is the document that explains how to write one.
const FOLDER: &str = "testdata/scenarios";
const GUIDE: &str = "docs/testing.md";

/// Scripts about one subject, and the language that they are written in.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The folder in `testdata/scenarios`.
    pub folder: &'static str,
    /// The flags of `cargo test` that select the test.
    pub test: &'static str,
    /// Every form of command with its effect.
    pub language: &'static [(&'static str, &'static str)],
}

/// Plays every script of an area, each with its own player, and compares the output. If `BLESS` is set in the environment,
/// replaces the expected lines by the output, and leaves everything else unchanged.
///
/// # Panics
/// If a script is malformed or its output differs: the message shows the line or the difference. Also if there is no script,
/// or the guide does not explain a command of the language.
pub fn check<P: Player>(area: &Area, player: impl Fn() -> P) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (mut faults, mut count) = (undocumented(area, &root.join(GUIDE)), 0);
    for path in scripts(&root.join(FOLDER).join(area.folder)) {
        count += 1;
        let name = format!("{FOLDER}/{}/{}", area.folder, path.file_name().unwrap_or_default().display());
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_blessed = std::env::var_os("BLESS").is_some();
        match play(&text, &mut player(), is_blessed) {
            Err(malformed) => faults.push(format!("{name}:{malformed}")),
            Ok(page) if page == text => {}
            Ok(page) if is_blessed => {
                std::fs::write(&path, page).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            Ok(page) => {
                let difference = difference(&text, &page);
                faults.push(format!("{name} prints something else (- expected, + printed):\n{difference}"));
            }
        }
    }
    if count == 0 {
        faults.push(format!("{FOLDER}/{} has no script", area.folder));
    }
    assert!(
        faults.is_empty(),
        "\n\n{}\n\n`BLESS=1 cargo test {}` rewrites the expected lines; {GUIDE} explains scripts.\n",
        faults.join("\n\n"),
        area.test
    );
}

/// Returns the script with each command followed by its actual output. This is the script itself if it is correct.
///
/// # Errors
/// If the script is malformed, a command is refused, or no output is expected of any command. If `may_lack_expectations`, a
/// new script without expected output is played too; it must print something.
pub fn play(text: &str, player: &mut dyn Player, may_lack_expectations: bool) -> Result<String, ScriptFault> {
    let script = Script::parse(text)?;
    if !may_lack_expectations {
        script.check_expectations()?;
    }
    let mut printed = Vec::new();
    for step in &script.steps {
        let command = Command::new(step.command);
        let played = catch_unwind(AssertUnwindSafe(|| player.play(&command)));
        let played = played.unwrap_or_else(|_| Err("the decision panicked; its message is above".to_owned()));
        let lines = played.map_err(|what| ScriptFault { line: step.line, what })?;
        printed.push(lines.iter().flat_map(|line| line.lines()).map(str::to_owned).collect());
    }
    let page = script.with_expected(&printed);
    Script::parse(&page)?.check_expectations()?;
    Ok(page)
}

/// Returns the scripts of a folder by name. The folder must not contain other files, because a script with another extension
/// would never be played.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry of a folder that was opened can be read").path())
        .collect();
    paths.sort();
    if let Some(other) = paths.iter().find(|path| path.extension().is_none_or(|ending| ending != "txt")) {
        panic!("{} is no script: scripts end in .txt", other.display());
    }
    paths
}

fn undocumented(area: &Area, guide: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(guide).unwrap_or_else(|error| panic!("{}: {error}", guide.display()));
    let mut missing = String::new();
    for (form, meaning) in area.language {
        let row = format!("| `{form}` | {meaning} |");
        if !text.lines().any(|line| line == row) {
            let _ = writeln!(missing, "{row}");
        }
    }
    let fault = || format!("{GUIDE} lacks rows of commands in {}:\n{missing}", area.folder);
    if missing.is_empty() { Vec::new() } else { vec![fault()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints the words that follow `say`, one per line.
    struct Echo;

    impl Player for Echo {
        fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
            match command.words.as_slice() {
                ["say", words @ ..] => Ok(words.iter().map(|word| (*word).to_owned()).collect()),
                ["fall"] => panic!("as asked"),
                _ => Err(command.unknown(&[("say WORDS", "prints each word")])),
            }
        }
    }

    fn page(script: &str) -> String {
        format!("Title\n\nWhy.\n---\n{script}")
    }

    fn fault(script: &str, is_blessed: bool) -> String {
        play(&page(script), &mut Echo, is_blessed).unwrap_err().to_string()
    }

    #[test]
    fn a_right_script_is_played_as_it_is_written() {
        let right = page("say a b\n> a\n> b\nsay\nsay c\n> c\n");
        assert_eq!(play(&right, &mut Echo, false), Ok(right));
    }

    #[test]
    fn a_wrong_one_is_played_as_it_should_be_with_the_same_commands() {
        let wrong = page("# Two words.\nsay a b\n> a\nsay\n> nothing\n\nsay c\n");
        let right = page("# Two words.\nsay a b\n> a\n> b\nsay\n\nsay c\n> c\n");
        assert_eq!(play(&wrong, &mut Echo, false), Ok(right));
    }

    #[test]
    fn a_malformed_script_fails_with_its_line() {
        assert_eq!(fault("say a\n> a\nshout\n", false), "7: unknown command \"shout\"; there is say WORDS");
        assert_eq!(fault("say a\n", false), "5: nothing is expected of any command");
        assert_eq!(fault("say a\n> a\nfall\n", false), "7: the decision panicked; its message is above");
    }

    #[test]
    fn a_malformed_script_is_not_blessed() {
        assert_eq!(fault("shout\n> a\n", true), "5: unknown command \"shout\"; there is say WORDS");
        assert_eq!(fault("say\n> a\n", true), "5: nothing is expected of any command");
        assert_eq!(play(&page("say a\n"), &mut Echo, true), Ok(page("say a\n> a\n")));
    }
}
