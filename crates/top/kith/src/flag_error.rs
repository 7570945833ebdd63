//! Error messages for values of flags that the parsers of the standard library refuse: they name the value and what was
//! expected instead. All other errors keep the wording of clap.

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    error::Error,
    net::AddrParseError,
    num::{IntErrorKind, ParseFloatError, ParseIntError},
};

/// Returns the same error, worded in the user's terms.
pub fn explain<C: CommandFactory>(error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    let expected = error.source().and_then(expected);
    let named = text(ContextKind::InvalidValue).zip(text(ContextKind::InvalidArg));
    let (Some(expected), Some((value, argument))) = (expected, named) else { return error };
    let message = format!(
        "invalid value '{value}' for '{argument}': {expected}\n\nFor more information, try '--help'.\n"
    );
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(&C::command())
}

fn expected(source: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        return Some(match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            IntErrorKind::NegOverflow => "the number is too small",
            IntErrorKind::Zero => "expected a number of 1 or more",
            _ => "expected a whole number in decimal digits, such as 42",
        });
    }
    if source.is::<ParseFloatError>() {
        return Some("expected a number, such as 0.5");
    }
    source.is::<AddrParseError>().then_some("expected an IP address and a port, such as 127.0.0.1:7000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn error(line: &str) -> String {
        let error = Cli::try_parse_from(line.split(' ')).expect_err(line);
        explain::<Cli>(error).to_string()
    }

    #[test]
    fn a_wrong_number_is_reported_with_what_was_expected() {
        let message = error("kith store swap s one");
        assert_eq!(
            message,
            "error: invalid value 'one' for '<VERSION>': expected a whole number in decimal digits, such as 42\n\n\
             For more information, try '--help'.\n"
        );
        assert!(
            error("kith store swap s 99999999999999999999")
                .contains("'99999999999999999999' for '<VERSION>': the number is too large")
        );
        assert!(
            error("kith graph connections 1 -g v --deadline-ms 0").contains("expected a number of 1 or more")
        );
        assert!(error("kith graph connections 1x -g v").contains("'1x' for '<ID>': expected a whole number"));
    }

    #[test]
    fn what_clap_tells_well_is_left_as_it_is() {
        let message = error("kith dev --groups 65");
        assert!(message.contains("65 is not in 1..=64"), "{message}");
        assert!(error("kith graph reticulate 1 -g v").contains("unrecognized subcommand"));
    }
}
