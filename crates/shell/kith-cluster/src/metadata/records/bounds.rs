//! Bounds on what callers can make the metadata hold. A store's record is one value, which is read and written as a whole.

use kith_topology::versions::PushId;
use kith_types::ErrorCode;
use kith_wire::documents::{ComponentDocument, DefinitionDocument, HoldsDocument};
use tonic::Status;

/// The longest id of a push. It has room for a job's name and a number. It stays in the record and in its history.
pub const PUSH_ID_BYTES_MAX: usize = 128;
/// The longest name of an owner or a user.
pub const WHO_BYTES_MAX: usize = 128;
/// The longest reason in the history for a failed push.
pub const REASON_BYTES_MAX: usize = 1 << 10;
/// The longest name of a key field.
const KEY_FIELD_BYTES_MAX: usize = 1 << 10;
/// The largest definition, in bytes of JSON. It has room for a schema of thousands of fields.
const DEFINITION_BYTES_MAX: usize = 256 << 10;
/// The largest list of components, in bytes of JSON.
const COMPONENTS_BYTES_MAX: usize = 512 << 10;
/// The largest record with which a push may begin. etcd accepts 1.5 MiB in one write. The rest is for what must always fit:
/// a full history, and the list of nodes that lack the version.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Parses the id of a push that a caller chose.
///
/// # Errors
/// `bad_request` if the id is too long or has other characters.
pub fn push_id(id: &str) -> Result<PushId, Status> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    if (1..=PUSH_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_known) {
        return Ok(PushId(id.to_owned()));
    }
    let message = format!("{:?} cannot be the id of a push", plain(id, PUSH_ID_BYTES_MAX));
    let help = format!("an id is 1 to {PUSH_ID_BYTES_MAX} letters, digits, '.', '_', ':' or '-'");
    Err(kith_wire::status(ErrorCode::BadRequest, message, help))
}

/// Refuses lists of components that are empty or too large for a record.
pub fn check_components(components: &[ComponentDocument]) -> Result<(), Status> {
    if components.is_empty() {
        let help = "nothing was pushed; name the components that make the version";
        return Err(kith_wire::status(ErrorCode::BadRequest, "a push without components", help));
    }
    let bytes = serde_json::to_vec(components).map_or(usize::MAX, |json| json.len());
    at_most("the components of a push", bytes, COMPONENTS_BYTES_MAX)
}

/// Refuses a push that would make the record of its store too large.
pub fn check_record(store: &str, bytes: usize) -> Result<(), Status> {
    if bytes <= RECORD_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the record of store {store:?} would have {bytes} bytes, and a push begins with at most {RECORD_BYTES_MAX}"
    );
    let help = "nothing was pushed; keep fewer versions (`kith store alter --retain`, `kith store release`), or push fewer components";
    Err(kith_wire::status(ErrorCode::RecordTooLarge, message, help))
}

/// Refuses definitions that are too large for a record.
pub fn check_definition_bytes(definition: &[u8]) -> Result<(), Status> {
    at_most("a definition", definition.len(), DEFINITION_BYTES_MAX)
}

/// Refuses texts of a definition that are too long or contain control characters.
pub fn check_texts(definition: &DefinitionDocument) -> Result<(), Status> {
    check_owner(definition.owner.as_deref())?;
    match &definition.holds {
        HoldsDocument::Values { key_field: Some(field), .. } => {
            check_text("the name of a key field", field, KEY_FIELD_BYTES_MAX)
        }
        _ => Ok(()),
    }
}

/// Refuses owners whose name is too long or contains control characters.
pub fn check_owner(owner: Option<&str>) -> Result<(), Status> {
    owner.map_or(Ok(()), |owner| check_text("the name of an owner", owner, WHO_BYTES_MAX))
}

fn check_text(what: &str, text: &str, max: usize) -> Result<(), Status> {
    if text.contains(char::is_control) {
        let (message, help) = (format!("{what} has control characters"), "leave them out");
        return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
    }
    at_most(what, text.len(), max)
}

/// Cuts a caller's name to the length that a record may have.
pub fn cut_who(who: &str) -> String {
    plain(who, WHO_BYTES_MAX)
}

/// Cuts a text to `max` bytes and replaces its control characters by spaces.
pub fn plain(text: &str, max: usize) -> String {
    const CUT: char = '…';
    let is_cut = max < text.len();
    let room = if is_cut { max - CUT.len_utf8() } else { max };
    let fits = |(start, c): &(usize, char)| start + c.len_utf8() <= room;
    let kept = text.char_indices().take_while(fits).map(|(_, c)| if c.is_control() { ' ' } else { c });
    kept.chain(is_cut.then_some(CUT)).collect()
}

fn at_most(what: &str, bytes: usize, max: usize) -> Result<(), Status> {
    if bytes <= max {
        return Ok(());
    }
    let message = format!("{what} has {bytes} bytes");
    Err(kith_wire::status(ErrorCode::BadRequest, message, format!("use at most {max} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_pushes_are_short_and_plain() {
        for good in ["p1", "push-0123456789abcdef", "spark:job_7.2", &"x".repeat(128)] {
            assert_eq!(push_id(good).unwrap(), PushId::from(good));
        }
        for bad in [
            "",
            "a b",
            "a/b",
            "../x",
            "a\nb",
            "a\0b",
            "\u{1b}[2J",
            "é",
            &"x".repeat(129),
            &"x".repeat(600_000),
        ] {
            let refused = push_id(bad).unwrap_err();
            assert_eq!(kith_wire::code_of(&refused), ErrorCode::BadRequest);
            assert!(refused.message().len() < 1_000, "the message does not repeat it all");
        }
    }

    #[test]
    fn what_goes_into_a_record_has_a_bound() {
        assert!(check_definition_bytes(&vec![b' '; DEFINITION_BYTES_MAX + 1]).is_err());
        assert!(check_owner(Some(&"x".repeat(WHO_BYTES_MAX + 1))).is_err());
        check_owner(Some("ada")).unwrap();
        assert_eq!(cut_who("ada"), "ada");
        assert_eq!(cut_who(&"é".repeat(500)), "é".repeat(62) + "…");
        assert_eq!(cut_who("ada\n\u{1b}[2J"), "ada  [2J");
        let holds = |key_field: &str| HoldsDocument::Values {
            key: "id".to_owned(),
            value: "text".to_owned(),
            key_field: Some(key_field.to_owned()),
        };
        check_texts(&DefinitionDocument::new(holds("member"))).unwrap();
        for bad in ["a\nb", &"x".repeat(KEY_FIELD_BYTES_MAX + 1)] {
            assert!(check_texts(&DefinitionDocument::new(holds(bad))).is_err());
            assert!(check_owner(Some(bad)).is_err());
        }
        assert!(check_components(&[]).is_err());
        let refused = check_record("people", RECORD_BYTES_MAX + 1).unwrap_err();
        assert_eq!(kith_wire::code_of(&refused), ErrorCode::RecordTooLarge);
        assert!(refused.message().contains("\"people\""), "{refused}");
    }
}
