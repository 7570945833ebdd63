//! The templates of `format`, such as `%{name} is %{_} years old`.

use regex::Regex;
use std::{fmt::Write, sync::Arc, sync::LazyLock};

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    // A second percent sign before a variable makes it plain text. The pattern has to take it in, as it cannot look back.
    Regex::new(r"(?P<before>^|[^%])%\{(?P<name>.*?)\}").expect("the pattern is well-formed")
});

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text that stays as it is.
    Plain(Arc<str>),
    /// `%{name}`: a property of the element, or what has this label.
    Variable(Arc<str>),
    /// `%{_}`: the value of the next `by`.
    Modulated,
}

/// A template, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its parts in their order.
    pub parts: Vec<Part>,
}

impl Template {
    /// Reads a template. Every text is one.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let plain = |text: &str, parts: &mut Vec<Part>| {
            if !text.is_empty() {
                parts.push(Part::Plain(text.into()));
            }
        };
        let mut rest = text;
        while let Some(found) = VARIABLE.captures(rest) {
            let (before, whole) = (found.name("before"), found.get(0));
            let (Some(before), Some(whole)) = (before, whole) else { break };
            plain(&rest[..before.end()], &mut parts);
            parts.push(match &found["name"] {
                "_" => Part::Modulated,
                name => Part::Variable(name.into()),
            });
            rest = &rest[whole.end()..];
        }
        plain(rest, &mut parts);
        Self { parts }
    }

    /// The text, with the values of the variables and modulated parts in their order.
    pub fn render(&self, values: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
        let mut values = values.into_iter();
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Plain(plain) => text.push_str(plain),
                Part::Variable(_) | Part::Modulated => {
                    if let Some(value) = values.next() {
                        // Writing to a string does not fail.
                        let _ = write!(text, "{value}");
                    }
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let shown = |part: &Part| match part {
            Part::Plain(text) => text.to_string(),
            Part::Variable(name) => format!("<{name}>"),
            Part::Modulated => "<>".to_owned(),
        };
        Template::parse(text).parts.iter().map(shown).collect()
    }

    #[test]
    fn templates_have_variables() {
        let cases: [(&str, &[&str]); 9] = [
            ("Hello world", &["Hello world"]),
            ("", &[]),
            ("%{name} is %{_} years old", &["<name>", " is ", "<>", " years old"]),
            ("%{a}%{b}", &["<a>", "<b>"]),
            ("100%%{a}", &["100%%{a}"]),
            ("%%{a} %{b}", &["%%{a} ", "<b>"]),
            ("%{a", &["%{a"]),
            ("%{}", &["<>"]),
            ("é%{é}é", &["é", "<é>", "é"]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text}");
        }
        assert_eq!(Template::parse("%{}").parts, [Part::Variable("".into())]);
    }

    #[test]
    fn values_take_the_places_of_variables() {
        let template = Template::parse("%{name} knows %{_}!");
        assert_eq!(template.render(["marko", "josh"]), "marko knows josh!");
    }
}
