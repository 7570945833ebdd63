//! Tests that commands get the same replies in whatever pieces their bytes arrive, and that only whole replies are sent.

use super::*;

/// Commands of every kind, with keys that exist, are absent, fail or are not valid.
fn commands() -> impl Strategy<Value = Vec<Vec<String>>> {
    let key = prop_oneof![
        (0u64..30).prop_map(|key| format!("ids:{key}")),
        "[a-z]{0,12}".prop_map(|key| format!("texts:{key}")),
        Just("people:5".to_owned()),
        Just("nothing".to_owned()),
    ];
    let command = prop_oneof![
        key.clone().prop_map(|key| vec!["GET".to_owned(), key]),
        prop::collection::vec(key, 1..5).prop_map(|keys| [vec!["MGET".to_owned()], keys].concat()),
        Just(vec!["PING".to_owned()]),
        Just(vec!["HELLO".to_owned(), "3".to_owned()]),
        Just(vec!["RESET".to_owned()]),
        "[a-z]{1,5}".prop_map(|word| vec!["ECHO".to_owned(), word]),
        Just(vec!["SET".to_owned(), "ids:1".to_owned(), "x".to_owned()]),
    ];
    prop::collection::vec(command, 1..20)
}

fn encoded(commands: &[Vec<String>]) -> Vec<u8> {
    let mut bytes = kith_wire::resp::Replies::default();
    for command in commands {
        bytes.array(command.len());
        command.iter().for_each(|argument| bytes.bulk(argument.as_bytes()));
    }
    bytes.bytes().to_vec()
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        1 => Just(b"*".to_vec()),
        1 => Just(b"$".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => "[0-9]{1,3}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn exchanged(bytes: &[u8], piece_bytes: usize) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pieces: Vec<&[u8]> = bytes.chunks(piece_bytes.max(1)).collect();
    runtime.block_on(async { Conversation::start().exchange(&pieces).await })
}

/// Whether the bytes are a sequence of whole replies.
fn are_replies(mut bytes: &[u8]) -> bool {
    let mut left = 0u64;
    while left != 0 || !bytes.is_empty() {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return false };
        let (line, rest) = (&bytes[1..end], &bytes[end + 2..]);
        let number = std::str::from_utf8(line).ok().and_then(|line| line.parse::<i64>().ok());
        left = left.saturating_sub(1);
        bytes = match (bytes[0], number) {
            (b'+' | b'-' | b'_', _) | (b':', Some(_)) | (b'$', Some(-1)) => rest,
            (b'*', Some(count)) => {
                left += count as u64;
                rest
            }
            (b'%', Some(count)) => {
                left += 2 * count as u64;
                rest
            }
            (b'$', Some(length)) if length as usize + 2 <= rest.len() => &rest[length as usize + 2..],
            _ => return false,
        };
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn replies_do_not_depend_on_how_commands_are_cut(commands in commands(), piece in 1usize..40) {
        let bytes = encoded(&commands);
        let whole = exchanged(&bytes, bytes.len());
        prop_assert!(are_replies(&whole));
        prop_assert_eq!(exchanged(&bytes, piece), whole);
    }

    #[test]
    fn any_bytes_are_answered_with_replies_or_not_at_all(bytes in noise(), piece in 1usize..40) {
        prop_assert!(are_replies(&exchanged(&bytes, piece)));
    }
}
