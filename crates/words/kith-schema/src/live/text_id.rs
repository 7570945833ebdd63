//! Ids of objects that are texts.

use std::{fmt, sync::Arc};
use thiserror::Error;

/// The maximum length of an id that is a text, in bytes.
pub const TEXT_ID_BYTES_MAX: usize = 256;

/// The id that the creator of an object gave it, if that is not just its number: a text of 1 to [`TEXT_ID_BYTES_MAX`] bytes. Two
/// ids are the same if their texts are. A number is computed from the text, and takes its place wherever ids are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextId {
    form: TextIdForm,
    text: Arc<str>,
}

/// The form in which an id is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextIdForm {
    /// As a text.
    Text,
    /// As a UUID. The text is its canonical one.
    Uuid,
    /// As a whole number that has no 64 bits, or is negative. The text has its digits.
    Number,
}

impl TextIdForm {
    /// The number that stands for the form in records and messages. No form has 0.
    pub fn number(self) -> u8 {
        match self {
            TextIdForm::Text => 1,
            TextIdForm::Uuid => 2,
            TextIdForm::Number => 3,
        }
    }

    /// The form with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        [TextIdForm::Text, TextIdForm::Uuid, TextIdForm::Number]
            .into_iter()
            .find(|form| form.number() == number)
    }
}

/// A text is too long or too short for an id.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("an id has 1 to {TEXT_ID_BYTES_MAX} bytes, not {bytes}")]
pub struct NotATextId {
    /// The length of the text.
    pub bytes: usize,
}

impl TextId {
    /// Creates an id.
    ///
    /// # Errors
    /// The text has too many bytes, or none.
    pub fn new(form: TextIdForm, text: &str) -> Result<Self, NotATextId> {
        match text.len() {
            1..=TEXT_ID_BYTES_MAX => Ok(Self { form, text: text.into() }),
            bytes => Err(NotATextId { bytes }),
        }
    }

    /// The form in which the id is shown.
    pub fn form(&self) -> TextIdForm {
        self.form
    }

    /// The text, which is what makes two ids different.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number whose usual digits the text has. It is another way to write the same id.
    pub fn digits(&self) -> Option<u64> {
        self.text.parse::<u64>().ok().filter(|number| number.to_string() == *self.text)
    }
}

impl fmt::Display for TextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_digits_are_a_number() {
        let digits = |text: &str| TextId::new(TextIdForm::Text, text).unwrap().digits();
        assert_eq!(digits("0"), Some(0));
        assert_eq!(digits("18446744073709551615"), Some(u64::MAX));
        for text in ["18446744073709551616", "007", "+7", "-1", " 7", "7.0", "x"] {
            assert_eq!(digits(text), None, "{text:?}");
        }
    }

    #[test]
    fn lengths_are_counted_in_bytes() {
        let new = |text: &str| TextId::new(TextIdForm::Text, text);
        assert_eq!(new("").unwrap_err().to_string(), "an id has 1 to 256 bytes, not 0");
        assert!(new(&"ä".repeat(128)).is_ok());
        assert_eq!(new(&"ä".repeat(129)), Err(NotATextId { bytes: 258 }));
    }
}
