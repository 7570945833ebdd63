//! The prompt of `kith gremlin` on a terminal: lines with a history, completion, and commands that begin with a colon.

use super::{
    TraversalRunner,
    caret::pointed,
    words::{COMMANDS, Words, goes_on},
};
use crate::{failure::ErrorReport, output, signals::Signals};
use anyhow::Context as _;
use rustyline::{
    CompletionType, Config, Context, Editor, Helper,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

const PROMPT: &str = "gremlin> ";
/// The number of lines that the history keeps.
const HISTORY_MAX: usize = 1_000;

const HELP: &str = "\
A traversal, such as g.V(42).out().count(), may take several lines: it goes on until its brackets close.
  :profile TRAVERSAL  show what each step took
  :explain TRAVERSAL  show what it would do, without running it
  :help               show this
  :quit               end; so does Ctrl-D
Tab completes steps, and labels and keys between quotes. Ctrl-C gives up a line, or a traversal that runs.
";

/// Reads traversals and prints their results until the input ends.
///
/// # Errors
/// If the terminal cannot be read or written.
pub async fn run(asking: &TraversalRunner, words: Words) -> anyhow::Result<()> {
    let config = Config::builder().completion_type(CompletionType::List).max_history_size(HISTORY_MAX)?;
    let mut editor: Editor<Prompt, FileHistory> =
        Editor::with_config(config.build()).context("open the terminal")?;
    editor.set_helper(Some(Prompt { words }));
    let history = history_file();
    if let Some(path) = &history {
        // A history that is missing or damaged is no reason not to begin.
        let _ = editor.load_history(path);
    }
    let mut signals = Signals::new()?;
    loop {
        let read = tokio::task::block_in_place(|| editor.readline(PROMPT));
        let text = match read {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("read the terminal"),
        };
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(text);
        if let Some(path) = &history {
            save(&mut editor, path);
        }
        if text == ":quit" {
            return Ok(());
        }
        tokio::select! {
            answered = answer(asking, text) => output::print_bytes(answered.as_bytes())?,
            () = signals.next() => output::print_bytes(b"given up\n")?,
        }
    }
}

/// The answer to a line, or why there is none.
async fn answer(asking: &TraversalRunner, text: &str) -> String {
    let (command, rest) = match text.strip_prefix(':') {
        Some(_) => text.split_once(char::is_whitespace).unwrap_or((text, "")),
        None => ("", text),
    };
    let rest = rest.trim();
    let answered = match command {
        ":help" => return HELP.to_owned(),
        "" | ":profile" | ":explain" => {
            if let Some(wrong) = pointed(rest) {
                return wrong;
            }
            match command {
                ":explain" => asking.explain(rest).await,
                command => asking.answer(rest, command == ":profile").await,
            }
        }
        other => return format!("there is no command {other}; there are {}\n", COMMANDS.join(", ")),
    };
    answered.unwrap_or_else(|error| format!("{}\n", ErrorReport::of(&error).text(false)))
}

/// `$XDG_STATE_HOME/kith/gremlin-history`. `None` if there is no home.
fn history_file() -> Option<PathBuf> {
    let state = match env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()) {
        Some(state) => PathBuf::from(state),
        None => PathBuf::from(env::var_os("HOME").filter(|path| !path.is_empty())?).join(".local/state"),
    };
    Some(state.join("kith").join("gremlin-history"))
}

/// Keeps the history for the next time. Without a place for it, the prompt still works.
fn save(editor: &mut Editor<Prompt, FileHistory>, path: &Path) {
    let _ = path.parent().map(fs::create_dir_all);
    let _ = editor.save_history(path);
}

/// The questions of the editor about a line.
struct Prompt {
    words: Words,
}

impl Completer for Prompt {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.words.complete(line.get(..at).unwrap_or(line));
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match goes_on(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for Prompt {
    type Hint = String;
}

impl Highlighter for Prompt {}

impl Helper for Prompt {}
