//! Tests commands that arrive in pieces, and malformed bytes.

use super::{Decoder, Limits, MalformedCommand, Replies, Version};
use proptest::prelude::*;

type Commands = Vec<Vec<Vec<u8>>>;

/// Decodes bytes that arrive in these pieces, as a connection does.
fn decoded(pieces: &[&[u8]], limits: Limits) -> (Commands, Option<MalformedCommand>) {
    let mut decoder = Decoder::new(limits);
    let (mut buffer, mut commands) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.decode(&buffer) {
                Ok(Some(command)) => {
                    commands.push((0..command.len()).map(|at| command.get(at).unwrap().to_vec()).collect());
                }
                Ok(None) => break,
                Err(malformed) => return (commands, Some(malformed)),
            }
            buffer.drain(..decoder.take());
        }
    }
    (commands, None)
}

fn encoded(command: &[Vec<u8>]) -> Vec<u8> {
    let mut request = Replies::default();
    request.array(command.len());
    command.iter().for_each(|argument| request.bulk(argument));
    request.bytes().to_vec()
}

fn of(bytes: &[u8]) -> (Commands, Option<MalformedCommand>) {
    decoded(&[bytes], Limits::USUAL)
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn commands_are_arrays_or_lines_of_words() {
    let two = b"*2\r\n$3\r\nGET\r\n$3\r\na:1\r\nPING\r\n  echo  x\t \n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n";
    let expected = vec![
        words(&["GET", "a:1"]),
        words(&["PING"]),
        words(&["echo", "x"]),
        vec![],
        vec![],
        vec![],
        words(&[""]),
    ];
    assert_eq!(of(two), (expected, None));
}

#[test]
fn what_is_no_command_is_reported_in_the_words_of_redis() {
    for (bytes, expected) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\rx", "invalid multibulk length"),
        (b"*11111111111111111111111111111111111", "too big mbulk count string"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n\r\n", "expected '$', got '\\r'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$1048577\r\n", "invalid bulk length"),
        (b"*1\r\n$+1\r\n", "invalid bulk length"),
        (b"*1\r\n$11111111111111111111111111111111111", "too big bulk count string"),
        (b"*1\r\n$1\r\nabc\r\n", "expected CRLF after an argument"),
    ] {
        let (commands, malformed) = of(bytes);
        let text = malformed.unwrap_or_else(|| panic!("{}", bytes.escape_ascii())).to_string();
        assert_eq!((commands, text), (vec![], format!("Protocol error: {expected}")));
    }
    let long = [b'x'; (64 << 10) + 1];
    assert_eq!(of(&long).1, Some(MalformedCommand::Inline));
    assert_eq!(of(&[&long[..], b"\r\n"].concat()).1, Some(MalformedCommand::Inline));
}

#[test]
fn a_connection_that_has_to_authenticate_may_send_little() {
    let few = |bytes: &[u8]| decoded(&[bytes], Limits::UNAUTHENTICATED);
    assert_eq!(few(b"*11\r\n").1, Some(MalformedCommand::CountUnauthenticated));
    assert_eq!(few(b"*1\r\n$16385\r\n").1, Some(MalformedCommand::LengthUnauthenticated));
    assert_eq!(few(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n").0, [words(&["AUTH", "x"])]);
}

#[test]
fn a_command_is_bounded_as_a_whole() {
    let limits = Limits { command_bytes: 100, ..Limits::USUAL };
    let argument = [b"$40\r\n", &[b'x'; 40][..], b"\r\n"].concat();
    let bytes = [b"*3\r\n", &argument[..], &argument[..], &argument[..]].concat();
    assert_eq!(decoded(&[&bytes], limits), (vec![], Some(MalformedCommand::Command)));
}

#[test]
fn a_command_is_found_again_until_it_is_taken() {
    let mut decoder = Decoder::new(Limits::USUAL);
    let bytes = b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n";
    for _ in 0..3 {
        assert_eq!(decoder.decode(bytes).unwrap().unwrap().name(), b"PING");
    }
    let taken = decoder.take();
    assert_eq!(decoder.decode(&bytes[taken..]).unwrap().unwrap().name(), b"QUIT");
}

#[test]
fn each_version_has_its_null_and_its_maps() {
    let replies = |version| {
        let mut replies = Replies::new(version);
        replies.map(1);
        replies.bulk(b"");
        replies.null();
        replies.integer(i64::MIN);
        replies.error("ERR two\r\nlines");
        String::from_utf8(replies.bytes().to_vec()).unwrap()
    };
    let rest = ":-9223372036854775808\r\n-ERR two  lines\r\n";
    assert_eq!(replies(Version::Two), format!("*2\r\n$0\r\n\r\n$-1\r\n{rest}"));
    assert_eq!(replies(Version::Three), format!("%1\r\n$0\r\n\r\n_\r\n{rest}"));
}

fn commands() -> impl Strategy<Value = Commands> {
    let argument = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop::collection::vec(argument, 0..6), 0..8)
}

/// Generates bytes that often resemble the protocol.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"*".to_vec()),
        Just(b"$".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"-".to_vec()),
        "[0-9]{1,3}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn commands_come_back_wherever_they_are_cut(commands in commands()) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encoded(command)).collect();
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            prop_assert_eq!(&decoded(&[head, tail], Limits::USUAL), &(commands.clone(), None), "cut at {}", cut);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(decoded(&single, Limits::USUAL), (commands, None));
    }

    /// The commands and the error do not depend on how the bytes arrive.
    #[test]
    fn any_bytes_are_commands_or_an_error(bytes in noise()) {
        let whole = of(&bytes);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(decoded(&single, Limits::USUAL), whole);
    }
}
