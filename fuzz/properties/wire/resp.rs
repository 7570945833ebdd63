//! Commands of Redis clients.

use crate::properties::{Seed, take};
use kith_wire::resp::{Decoder, Limits, MalformedCommand, Replies};

type Commands = Vec<Vec<Vec<u8>>>;

/// The longest inline command.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// Input: the number of a set of limits, a place to split the bytes at, then what a connection receives.
pub fn check(mut input: &[u8]) {
    let limits = match take(&mut input) % 3 {
        0 => Limits::USUAL,
        1 => Limits::UNAUTHENTICATED,
        _ => Limits { arguments: 3, argument_bytes: 20, command_bytes: 50, is_unauthenticated: false },
    };
    let cut = usize::from(take(&mut input)).min(input.len());
    let (commands, error) = received(&[input], limits);
    for command in &commands {
        let longest = limits.argument_bytes.max(INLINE_BYTES_MAX);
        assert!(command.iter().all(|argument| argument.len() <= longest));
        assert!(command.len() <= limits.arguments.max(INLINE_BYTES_MAX));
    }
    let (head, tail) = input.split_at(cut);
    assert_eq!(received(&[head, tail], limits), (commands.clone(), error.clone()), "cut at {cut}");
    let single: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(received(&single, limits), (commands.clone(), error), "byte by byte");
    let encoded: Vec<u8> = commands.iter().flat_map(|command| encoded(command)).collect();
    let unbounded = Limits { arguments: usize::MAX, argument_bytes: usize::MAX, ..Limits::USUAL };
    assert_eq!(received(&[&encoded], unbounded), (commands, None), "encoded again");
}

/// The commands in `pieces`, and the error that ended the connection.
fn received(pieces: &[&[u8]], limits: Limits) -> (Commands, Option<MalformedCommand>) {
    let mut decoder = Decoder::new(limits);
    let (mut buffer, mut commands) = (Vec::new(), Commands::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        let mut taken = 0;
        loop {
            match decoder.decode(&buffer[taken..]) {
                Ok(Some(command)) => {
                    assert_eq!(command.rest().len(), command.len().saturating_sub(1));
                    commands.push(
                        (0..command.len()).filter_map(|at| command.get(at)).map(<[u8]>::to_vec).collect(),
                    );
                }
                Ok(None) => break,
                Err(malformed) => return (commands, Some(malformed)),
            }
            taken += decoder.take();
        }
        buffer.drain(..taken);
    }
    (commands, None)
}

fn encoded(command: &[Vec<u8>]) -> Vec<u8> {
    let mut request = Replies::default();
    request.array(command.len());
    command.iter().for_each(|argument| request.bulk(argument));
    request.bytes().to_vec()
}

pub fn seeds() -> Vec<Seed> {
    let command =
        |words: &[&str]| encoded(&words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
    let sent = |limits: u8, bytes: &[u8]| [&[limits, 7][..], bytes].concat();
    vec![
        ("get", sent(0, &command(&["GET", "people:1005"]))),
        ("several", sent(0, &[command(&["MGET", "a:1", "a:2"]), command(&[]), command(&["PING"])].concat())),
        ("lines", sent(0, b"PING\r\n  echo  x\t \n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n")),
        ("auth", sent(1, &command(&["AUTH", "token"]))),
        ("limits", sent(2, &command(&["GET", "01234567890123456789", "x"]))),
        ("too-many", sent(1, b"*11\r\n")),
        ("count-is-no-number", sent(0, b"*x\r\n")),
        ("count-without-end", sent(0, b"*11111111111111111111111111111111111")),
        ("length-below-zero", sent(0, b"*1\r\n$-1\r\n")),
        ("no-line-end", sent(0, b"*1\r\n$1\r\nabc\r\n")),
    ]
}
