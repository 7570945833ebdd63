//! Points at what is wrong in a traversal.

use kith_gremlin::{text, value::Map};

/// Points at the fault in a text that is no traversal, below the line that contains it. `None` if the text can be read.
/// The cluster checks the rest.
pub(super) fn pointed(gremlin: &str) -> Option<String> {
    let bindings = Map::new();
    let now = chrono::Utc::now().fixed_offset();
    let inputs = text::Inputs { bindings: &bindings, now, entropy: 0 };
    let error = text::parse(gremlin, &inputs).err()?;
    let line = gremlin.lines().nth(error.line.saturating_sub(1)).unwrap_or_default();
    // Tabs stay, so that the caret is below its character.
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let before: String =
        line.chars().map(blank).chain(std::iter::repeat(' ')).take(error.column - 1).collect();
    Some(format!("{line}\n{before}^ {}\n", error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_what_is_wrong() {
        let text = "g.V(1).otu()\n       ^ unknown step \"otu\"; did you mean \"out\"?\n";
        assert_eq!(pointed("g.V(1).otu()").as_deref(), Some(text));
        let second = pointed("g.V(1).\n\tfoo()").unwrap();
        assert!(second.starts_with("\tfoo()\n\t^ "), "{second:?}");
        assert_eq!(pointed("g.V(1).out()"), None);
    }
}
