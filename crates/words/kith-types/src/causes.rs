//! Errors with their causes, as one line of text.

use std::error::Error;

/// The message of an error, followed by those of its causes: `open manifest: permission denied`. A cause that the text
/// already contains is left out.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Step(&'static str, Option<Box<Step>>);

    impl fmt::Display for Step {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Step {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &dyn Error)
        }
    }

    #[test]
    fn causes_follow_the_message_and_are_reported_once() {
        let denied = || Some(Box::new(Step("permission denied", None)));
        let file = Some(Box::new(Step("read manifest.json", denied())));
        assert_eq!(with_causes(&Step("fetch", file)), "fetch: read manifest.json: permission denied");
        assert_eq!(with_causes(&Step("read: permission denied", denied())), "read: permission denied");
    }
}
