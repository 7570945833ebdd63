//! The audit log: one line for each call that is refused because of its caller or of the store that it names, and for each
//! that skips the checks of a store. It helps to detect attacks.

use kith_types::ErrorCode;
use kith_types::clock::since_1970;
use parking_lot::Mutex;
use std::net::SocketAddr;

/// The most lines per second. A caller that is refused in a loop must not fill a disk. The next line counts the lines that
/// were left out.
const LINES_PER_SECOND: u32 = 20;
/// The longest text from a caller that a line repeats, in characters.
const CHARS_MAX: usize = 200;

/// A call that was refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedCall<'a> {
    /// The caller, by its name in the access file or in its certificate.
    pub subject: &'a str,
    /// The method or operation.
    pub method: &'a str,
    /// The store that the request names; empty if it names none.
    pub store: &'a str,
    /// The stable code of the answer.
    pub code: ErrorCode,
    /// The message of the answer.
    pub reason: &'a str,
    /// The address of the caller.
    pub peer: Option<SocketAddr>,
}

/// A call that skips checks of a store, because its caller wants it so.
#[derive(Clone, Copy, Debug)]
pub struct ForcedCall<'a> {
    /// The caller, by its name in the access file or in its certificate.
    pub subject: &'a str,
    /// The method or operation.
    pub method: &'a str,
    /// The store.
    pub store: &'a str,
    /// The address of the caller.
    pub peer: Option<SocketAddr>,
}

/// Counts the lines of one second.
#[derive(Debug, Default)]
struct Budget {
    second: u64,
    lines: u32,
    left_out: u64,
}

static BUDGET: Mutex<Budget> = Mutex::new(Budget { second: 0, lines: 0, left_out: 0 });

/// Writes the line, unless this second already has too many, and counts the call.
pub fn refused(call: &RefusedCall<'_>) {
    let RefusedCall { subject, method, store, code, reason, peer } = *call;
    let code = code.name();
    metrics::counter!("kith_server_refused_total", "code" => code).increment(1);
    let second = since_1970().as_secs();
    let line = BUDGET.lock().take(second);
    if let Some(left_out) = line {
        let (subject, store, reason) = (cut(subject), cut(store), cut(reason));
        let peer = peer.map(tracing::field::display);
        tracing::warn!(audit = true, subject, method, store, code, reason, peer, left_out, "refused");
    }
}

/// Writes the line, unless this second already has too many.
pub fn forced(call: &ForcedCall<'_>) {
    let ForcedCall { subject, method, store, peer } = *call;
    let line = BUDGET.lock().take(since_1970().as_secs());
    if let Some(left_out) = line {
        let (subject, store, peer) = (cut(subject), cut(store), peer.map(tracing::field::display));
        tracing::warn!(audit = true, subject, method, store, peer, left_out, "forced");
    }
}

impl Budget {
    /// Takes the place of one line in this second. Returns how many lines were left out before it, or `None` if this one
    /// must be left out.
    fn take(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.lines) = (second, 0);
        }
        if self.lines == LINES_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines_and_the_next_one_says_how_many_were_left_out() {
        let mut budget = Budget::default();
        let lines = (0..100).filter(|_| budget.take(7).is_some()).count();
        assert_eq!(lines, LINES_PER_SECOND as usize);
        assert_eq!((budget.take(8), budget.take(8)), (Some(80), Some(0)));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("scores"), "scores");
        assert_eq!(cut(&"é".repeat(1_000)).chars().count(), CHARS_MAX);
    }
}
