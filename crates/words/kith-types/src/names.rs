//! The rules for names of stores, components and pushes. Each name is a folder, the prefix of an object and a metadata key,
//! so it is checked wherever one is decoded.

use thiserror::Error;

/// The longest name of a store. It is a folder name, a metadata key and a metrics label.
pub const STORE_NAME_CHARS_MAX: usize = 63;
/// The longest name of a component.
pub const COMPONENT_NAME_CHARS_MAX: usize = 64;
/// The longest label or key of an open graph, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;

/// The text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a {what} cannot be called {name:?}: a name is {rule}")]
pub struct InvalidName {
    /// The thing that it should name.
    pub what: &'static str,
    /// The text, possibly shortened.
    pub name: String,
    /// The rule for such names.
    pub rule: &'static str,
}

/// Checks the name of a store or graph: `[a-z0-9][a-z0-9._-]{0,62}`.
///
/// # Errors
/// [`InvalidName`] if the name is invalid.
pub fn check_store_name(name: &str) -> Result<(), InvalidName> {
    check_segment("store", name)
}

/// Checks the name of the folder of a built version, with the rule for store names.
///
/// # Errors
/// [`InvalidName`] if the name is invalid.
pub fn check_folder_name(name: &str) -> Result<(), InvalidName> {
    check_segment("folder", name)
}

/// Checks the name of a component (an edge type, an entity kind, `members` or `values`): `[A-Za-z0-9_-]{1,64}`.
///
/// # Errors
/// [`InvalidName`] if the name is invalid.
pub fn check_component_name(name: &str) -> Result<(), InvalidName> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=COMPONENT_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(valid) {
        return Ok(());
    }
    let rule = "1 to 64 letters, digits, '_' or '-'";
    Err(InvalidName { what: "component", name: shortened(name), rule })
}

/// Checks a label of an open graph: the name of a type that a write may add. Labels that begin with `~` are reserved for the
/// inverses of other labels.
///
/// # Errors
/// [`InvalidName`] if the label is invalid.
pub fn check_label(label: &str) -> Result<(), InvalidName> {
    if is_short_text(label) && !label.starts_with('~') {
        return Ok(());
    }
    let rule = "a text of 1 to 255 bytes without control characters that does not begin with '~'";
    Err(InvalidName { what: "type of an open graph", name: shortened(label), rule })
}

/// Checks a key of an object or association in an open graph.
///
/// # Errors
/// [`InvalidName`] if the key is invalid.
pub fn check_key(key: &str) -> Result<(), InvalidName> {
    if is_short_text(key) {
        return Ok(());
    }
    let rule = "a text of 1 to 255 bytes without control characters";
    Err(InvalidName { what: "key of an open type", name: shortened(key), rule })
}

/// Returns a part of a file name for a name of any length: the name itself if it is a component name. Otherwise, bytes that such
/// names do not have are written as `%` and two hexadecimal digits, and the text may be cut.
pub fn file_part(name: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let part = |byte: u8| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().take(COMPONENT_NAME_CHARS_MAX).map(part).collect()
}

fn is_short_text(text: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn check_segment(what: &'static str, name: &str) -> Result<(), InvalidName> {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| first(byte) || matches!(byte, b'.' | b'_' | b'-');
    let starts_well = name.bytes().next().is_some_and(first);
    if starts_well && name.len() <= STORE_NAME_CHARS_MAX && name.bytes().all(inner) {
        return Ok(());
    }
    let rule = "1 to 63 lower-case letters, digits, '.', '_' or '-', the first a letter or digit";
    Err(InvalidName { what, name: shortened(name), rule })
}

/// The beginning of an invalid name, enough to recognise it. The name may have any length.
fn shortened(name: &str) -> String {
    name.chars().take(2 * STORE_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_safe_as_folders_are_taken() {
        for good in ["v", "kith-village", "0", "a.b_c-d", &"x".repeat(63)] {
            assert_eq!((check_store_name(good), check_folder_name(good)), (Ok(()), Ok(())), "{good}");
        }
        for bad in
            ["", "V", ".", "..", ".hidden", "-v", "_v", "../x", "a/b", "a\\b", "a\0", "é", &"x".repeat(64)]
        {
            assert!(check_store_name(bad).is_err() && check_folder_name(bad).is_err(), "{bad}");
        }
        for good in ["values", "Follows_2", "-", &"x".repeat(64)] {
            assert_eq!(check_component_name(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a.b", "../secrets/values", "/deep", "a/b", "a\0", "é", &"x".repeat(65)] {
            assert!(check_component_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_name_makes_a_part_of_a_file_name() {
        assert_eq!(file_part("Follows_2"), "Follows_2");
        assert_eq!(file_part("../é"), "%2E%2E%2F%C3%A9");
        assert_eq!(file_part(&"/".repeat(255)).len(), 3 * COMPONENT_NAME_CHARS_MAX);
    }

    #[test]
    fn labels_and_keys_are_short_texts() {
        for good in ["knows", "é 1.[\"", "a~", &"x".repeat(255)] {
            assert_eq!((check_label(good), check_key(good)), (Ok(()), Ok(())), "{good}");
        }
        for bad in ["", "a\n", "\u{7f}", &"x".repeat(256), &"é".repeat(128)] {
            assert!(check_label(bad).is_err() && check_key(bad).is_err(), "{bad}");
        }
        assert_eq!((check_label("~a").is_ok(), check_key("~a").is_ok()), (false, true));
    }

    #[test]
    fn what_is_said_of_a_wrong_name_is_bounded() {
        let error = check_store_name(&"/".repeat(1 << 20)).unwrap_err().to_string();
        assert!(error.len() < 300, "{}", error.len());
    }
}
