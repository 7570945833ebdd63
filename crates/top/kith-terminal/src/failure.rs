//! Failures as users see them: a stable code, what happened, and what to do about it. The codes are a contract:
//! `docs/errors.md`.

use console::Style;
use kith_client::QueryError;
use kith_query::line::LineError;
#[cfg(feature = "figures")]
use kith_sim::figures;
use kith_types::ErrorCode;
use kith_wire::LookupError;
use serde::Serialize;
use std::process::ExitCode;
use thiserror::Error;

/// The outcome of a command, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything succeeded.
    Done,
    /// The command failed.
    Failed,
    /// The command line is not valid.
    Usage,
    /// A part of the command failed, or an answer lacks partitions.
    Partial,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
        })
    }
}

/// A failure that this crate reports itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Failure {
    /// The stable error code.
    pub code: ErrorCode,
    /// A description of the error and its cause.
    pub message: String,
    /// Advice for the user.
    pub help: String,
}

impl Failure {
    /// Returns a failure with the given code, message and help.
    pub fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }

    /// Returns the failure for a request that cannot be parsed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        LineError::bad_request(message).into()
    }

    /// Returns the failure for flags that contradict each other or are not valid.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message, help)
    }

    /// Returns the failure for a flag that requires `--direct`, because only a fast client can choose `what`.
    pub fn not_direct(what: &str) -> Self {
        Self::usage(
            format!("{what} belong to the router: a client cannot choose them"),
            "add --direct, or start the router with other settings (--config)",
        )
    }
}

#[cfg(feature = "figures")]
impl From<figures::WriteError> for Failure {
    fn from(error: figures::WriteError) -> Self {
        let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
        let help = "check the folder, its permissions and the free space";
        Self::new(ErrorCode::CannotWrite, format!("{error}{cause}"), help)
    }
}

impl From<LineError> for Failure {
    fn from(LineError { code, message, help }: LineError) -> Self {
        Self { code, message, help }
    }
}

impl From<kith_build::Failure> for Failure {
    fn from(failure: kith_build::Failure) -> Self {
        let kith_build::Failure { code, message, help, wrong: _ } = failure;
        Self { code, message, help }
    }
}

/// Converts the failure of a build, and prints the wrong rows and lines as they are in the files.
pub fn report_failure(failure: kith_build::Failure) -> Failure {
    for wrong in &failure.wrong {
        eprintln!("{wrong}");
    }
    failure.into()
}

impl From<&QueryError> for Failure {
    fn from(error: &QueryError) -> Self {
        Self { code: error.code(), message: error.to_string(), help: error.help() }
    }
}

/// The report of a command that failed. All errors have this form in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    error: ErrorBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ErrorBody {
    #[serde(serialize_with = "name")]
    code: ErrorCode,
    message: String,
    help: String,
}

impl From<Failure> for ErrorReport {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, help } = failure;
        Self { error: ErrorBody { code, message, help } }
    }
}

impl ErrorReport {
    /// Returns the report of an error: with the code and help of the first cause that has them, and with the messages of all
    /// causes.
    pub fn of(error: &anyhow::Error) -> Self {
        let message = error.chain().fold(String::new(), |text, cause| match cause.to_string() {
            cause if text.contains(&cause) => text,
            cause if text.is_empty() => cause,
            cause => text + ": " + &cause,
        });
        let (code, help) = known(error).unwrap_or_else(|| {
            (ErrorCode::Internal, "this is a defect of Kith: please report it with the message".to_owned())
        });
        Self { error: ErrorBody { code, message, help } }
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.error.message
    }

    /// Returns the report as text for people. If `colored`, the labels are coloured.
    pub fn text(&self, colored: bool) -> String {
        let ErrorBody { code, message, help } = &self.error;
        let error = Style::new().red().bold().force_styling(colored);
        let hint = Style::new().cyan().bold().force_styling(colored);
        let help = match help.as_str() {
            "" => String::new(),
            help => format!("\n{}: {help}", hint.apply_to("help")),
        };
        format!("{}: {message}{help}", error.apply_to(format_args!("error[{code}]")))
    }

    /// Returns the outcome of a command that fails with this error.
    pub fn exit(&self) -> Exit {
        if self.error.code.exit_code() == 2 { Exit::Usage } else { Exit::Failed }
    }
}

fn name<S: serde::Serializer>(code: &ErrorCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(code.name())
}

fn known(error: &anyhow::Error) -> Option<(ErrorCode, String)> {
    error.chain().find_map(|cause| {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            Some((failure.code, failure.help.clone()))
        } else if let Some(error) = cause.downcast_ref::<LineError>() {
            Some((error.code, error.help.clone()))
        } else if let Some(error) = cause.downcast_ref::<QueryError>() {
            Some((error.code(), error.help()))
        } else if let Some(error) = cause.downcast_ref::<LookupError>() {
            Some((error.code(), error.help()))
        } else {
            let failure = cause.downcast_ref::<kith_build::Failure>()?;
            Some((failure.code, failure.help.clone()))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn the_help_of_the_cause_is_reported_with_the_whole_message() {
        let error = Err::<(), _>(Failure::new(ErrorCode::CannotWrite, "no space left", "free some"))
            .context("publish graph v");
        let report = ErrorReport::of(&error.unwrap_err());
        assert_eq!(
            report.text(false),
            "error[cannot_write]: publish graph v: no space left\nhelp: free some"
        );
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn colours_are_put_around_what_a_message_begins_with() {
        let report = ErrorReport::from(Failure::new(ErrorCode::CannotWrite, "no space left", "free some"));
        assert_eq!(
            report.text(true),
            "\u{1b}[31m\u{1b}[1merror[cannot_write]\u{1b}[0m: no space left\n\u{1b}[36m\u{1b}[1mhelp\u{1b}[0m: free some"
        );
    }

    #[test]
    fn what_the_context_says_already_is_reported_once() {
        let error = Err::<(), _>(Failure::new(ErrorCode::CannotWrite, "no space left", ""))
            .context("no space left on node 3");
        assert_eq!(ErrorReport::of(&error.unwrap_err()).message(), "no space left on node 3");
    }

    #[test]
    fn usage_errors_end_with_their_own_code() {
        let error = anyhow::Error::new(Failure::usage("a with b", "leave out b"));
        assert_eq!(ErrorReport::of(&error).exit(), Exit::Usage);
    }

    #[test]
    fn errors_of_queries_and_of_names_have_their_own_code() {
        let unknown = || LookupError::UnknownGraph { name: "v".to_owned(), known: vec!["w".to_owned()] };
        for error in [anyhow::Error::new(unknown()), anyhow::Error::new(QueryError::from(unknown()))] {
            let expected = "error[unknown_graph]: there is no graph \"v\"\nhelp: graphs: w";
            assert_eq!(ErrorReport::of(&error).text(false), expected);
        }
    }

    #[test]
    fn what_nobody_foresaw_is_internal() {
        let report = ErrorReport::of(&anyhow::anyhow!("odd"));
        assert!(report.text(false).starts_with("error[internal]: odd\n"), "{}", report.text(false));
    }
}
