//! Bounds of what callers have written into the metadata: a store's record is one value there, which is read and written as a whole.

use kith_versions::PushId;
use kith_wire::documents::ComponentDocument;
use std::time::Duration;
use tonic::{Code, Status};

/// The longest id of a push: a job's name and a number. It stays in the record and in its history.
const PUSH_ID_BYTES_MAX: usize = 128;
/// The longest name of an owner, or of who asks.
pub(crate) const WHO_BYTES_MAX: usize = 128;
/// A push waits so long for a node that is away, unless it says otherwise, before it does without it or fails.
const NODE_WAIT: Duration = Duration::from_secs(60);
/// And no longer, whatever it says: the store takes no other push meanwhile.
const NODE_WAIT_MAX: Duration = Duration::from_secs(60 * 60);
/// The largest definition, as JSON: a schema of thousands of fields.
const DEFINITION_BYTES_MAX: usize = 256 << 10;
/// The largest list of components, as JSON. etcd takes 1.5 MiB in one write.
const COMPONENTS_BYTES_MAX: usize = 512 << 10;

/// Refuses ids that are long or odd, and lists of components that no record has room for.
pub(super) fn check_push(PushId(id): &PushId, components: &[ComponentDocument]) -> Result<(), Status> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    if !(1..=PUSH_ID_BYTES_MAX).contains(&id.len()) || !id.bytes().all(is_known) {
        let start: String = id.chars().take(PUSH_ID_BYTES_MAX).collect();
        let message = format!("{start:?} cannot be the id of a push");
        let help = format!("an id is 1 to {PUSH_ID_BYTES_MAX} letters, digits, '.', '_', ':' or '-'");
        return Err(kith_wire::status(Code::InvalidArgument, "bad_request", message, help));
    }
    let bytes = serde_json::to_vec(components).map_or(usize::MAX, |json| json.len());
    at_most("the components of a push", bytes, COMPONENTS_BYTES_MAX)
}

/// Refuses definitions that no record has room for.
pub(super) fn check_definition_bytes(definition: &[u8]) -> Result<(), Status> {
    at_most("a definition", definition.len(), DEFINITION_BYTES_MAX)
}

/// Refuses owners whose name is too long.
pub(super) fn check_owner(owner: Option<&str>) -> Result<(), Status> {
    at_most("the name of an owner", owner.map_or(0, str::len), WHO_BYTES_MAX)
}

/// How long a push waits for nodes that are away, which asks for so many milliseconds; `None`: it does not say.
///
/// # Errors
/// `out_of_range`: longer than any push may.
pub(crate) fn node_wait(asked_ms: Option<u64>) -> Result<Duration, Status> {
    match asked_ms.map(Duration::from_millis) {
        None => Ok(NODE_WAIT),
        Some(wait) if wait <= NODE_WAIT_MAX => Ok(wait),
        Some(wait) => {
            let message = format!("a push cannot wait {} s for nodes that are down", wait.as_secs());
            let help = format!(
                "nothing was pushed; wait at most {} s, or leave nodes out: --allow-missing",
                NODE_WAIT_MAX.as_secs()
            );
            Err(kith_wire::status(Code::InvalidArgument, "out_of_range", message, help))
        }
    }
}

/// What a caller calls itself, as far as there is room for it.
pub(crate) fn cut_who(who: &str) -> &str {
    let end = (0..=who.len().min(WHO_BYTES_MAX)).rev().find(|end| who.is_char_boundary(*end));
    &who[..end.unwrap_or_default()]
}

fn at_most(what: &str, bytes: usize, max: usize) -> Result<(), Status> {
    if bytes <= max {
        return Ok(());
    }
    let message = format!("{what} has {bytes} bytes");
    Err(kith_wire::status(Code::InvalidArgument, "bad_request", message, format!("use at most {max} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_pushes_are_short_and_plain() {
        for good in ["p1", "push-0123456789abcdef", "spark:job_7.2", &"x".repeat(128)] {
            check_push(&PushId(good.to_owned()), &[]).unwrap();
        }
        for bad in ["", "a b", "a/b", "../x", "a\nb", "é", &"x".repeat(129), &"x".repeat(600_000)] {
            let refused = check_push(&PushId(bad.to_owned()), &[]).unwrap_err();
            assert_eq!(kith_wire::detail_of(&refused).code, "bad_request");
            assert!(refused.message().len() < 1_000, "the message does not repeat it all");
        }
    }

    #[test]
    fn nodes_are_waited_for_an_hour_at_most() {
        assert_eq!(node_wait(None).unwrap(), NODE_WAIT);
        for wait in [Duration::ZERO, Duration::from_millis(1), NODE_WAIT_MAX] {
            assert_eq!(node_wait(Some(wait.as_millis() as u64)).unwrap(), wait);
        }
        for beyond in [NODE_WAIT_MAX.as_millis() as u64 + 1, u64::MAX] {
            let refused = node_wait(Some(beyond)).unwrap_err();
            assert_eq!(kith_wire::detail_of(&refused).code, "out_of_range");
        }
    }

    #[test]
    fn what_goes_into_a_record_has_a_bound() {
        assert!(check_definition_bytes(&vec![b' '; DEFINITION_BYTES_MAX + 1]).is_err());
        assert!(check_owner(Some(&"x".repeat(WHO_BYTES_MAX + 1))).is_err());
        check_owner(Some("ada")).unwrap();
        assert_eq!(cut_who("ada"), "ada");
        assert_eq!(cut_who(&"é".repeat(500)), "é".repeat(64));
    }
}
