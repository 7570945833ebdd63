//! Counts the HTTP/2 frames that a peer sends: the streams that it opens, and frames that ask for nothing. h2 keeps state and
//! an unsent answer for each stream, whether or not the peer reads, and answers pings and settings without end.

use std::time::Duration;

/// How many streams an unauthenticated peer may open: a request that sends a token, and a few that come with it.
const STRANGER_STREAMS_MAX: u64 = 8;
/// The length of the HTTP/2 preface, which begins with `PRI * HTTP/2.0`.
const PREFACE_BYTES: usize = 24;
/// The length of a frame's head: three bytes of length, then kind, flags and stream.
const HEAD_BYTES: usize = 9;

/// How many idle frames a peer may send at once: it may cancel all requests of several connections when their time is over.
const IDLE_AT_ONCE: u64 = 4_096;
/// How many idle frames a peer may send each second for long.
const IDLE_PER_SECOND: u64 = 1_000;

/// The kinds of frames that matter here.
mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const CONTINUATION: u8 = 9;
}

/// The flag of a SETTINGS or PING frame that acknowledges one of ours, and of a DATA frame that ends its stream.
const ACK_OR_END: u8 = 1;

/// The state of a parser of HTTP/2 frames, and what it has counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    /// Missing bytes of the preface, or of the payload of the frame that has begun.
    left: usize,
    head: [u8; HEAD_BYTES],
    /// How many bytes of `head` have arrived.
    filled: usize,
    streams: u64,
    idle: u64,
}

impl Frames {
    /// Returns the state before the first byte.
    pub fn new() -> Self {
        Self { left: PREFACE_BYTES, head: [0; HEAD_BYTES], filled: 0, streams: 0, idle: 0 }
    }

    /// How many bytes may be read next of an unauthenticated peer. They never go beyond the frame that has begun. Zero if the
    /// peer has opened more streams than it may.
    pub fn allowance(&self) -> usize {
        match self.left {
            _ if STRANGER_STREAMS_MAX < self.streams => 0,
            0 => HEAD_BYTES - self.filled,
            left => left,
        }
    }

    /// The streams that the peer has opened so far; trailers count as well.
    pub fn streams(&self) -> u64 {
        self.streams
    }

    /// The frames so far that neither ask for anything nor make anything arrive: cancelled streams, pings, settings and empty
    /// pieces. Window updates are not counted, because a peer sends them as answers arrive.
    pub fn idle(&self) -> u64 {
        self.idle
    }

    /// Counts bytes that were read.
    pub fn reads(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if 0 < self.left {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.filled));
            self.head[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            bytes = rest;
            if self.filled == HEAD_BYTES {
                self.begins();
            }
        }
    }

    /// Counts the frame whose head has arrived.
    fn begins(&mut self) {
        let [high, middle, low, kind, flags, ..] = self.head;
        self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.filled = 0;
        let has_flag = flags & ACK_OR_END != 0;
        let is_idle = match kind {
            kind::DATA => self.left == 0 && !has_flag,
            kind::SETTINGS | kind::PING => !has_flag,
            kind::PRIORITY | kind::RST_STREAM | kind::GOAWAY => true,
            unknown => kind::CONTINUATION <= unknown,
        };
        self.streams += u64::from(kind == kind::HEADERS);
        self.idle += u64::from(is_idle);
    }
}

/// How many idle frames a peer may still send. Each write of this process earns one more, because a peer may ping after each
/// piece of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    frames: u64,
    /// The frames and writes that were counted at the last check.
    seen: (u64, u64),
}

impl Allowance {
    /// The allowance of a new connection.
    pub fn new() -> Self {
        Self { frames: IDLE_AT_ONCE, seen: (0, 0) }
    }

    /// Whether anything has happened that [`Allowance::pays`] must count.
    pub fn is_due(&self, idle: u64) -> bool {
        self.seen.0 < idle
    }

    /// Pays for the idle frames up to now; `idle` and `writes` are the numbers since the connection began, and `after` is the
    /// time since the last call that returned `true`. Returns `false` if the peer has sent too many.
    pub fn pays(&mut self, idle: u64, writes: u64, after: Duration) -> bool {
        let earned =
            u64::try_from(after.as_millis()).unwrap_or(u64::MAX).saturating_mul(IDLE_PER_SECOND) / 1_000;
        let earned = earned.saturating_add(writes - self.seen.1);
        let frames = self.frames.saturating_add(earned).min(IDLE_AT_ONCE);
        let sent = idle - self.seen.0;
        self.seen = (idle, writes);
        self.frames = frames.saturating_sub(sent);
        sent <= frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let mut frame = (payload as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.resize(HEAD_BYTES + payload, 1);
        frame
    }

    fn begun(frames: &[(u8, usize)]) -> Vec<u8> {
        let frames = frames.iter().flat_map(|(kind, payload)| frame(*kind, 0, *payload));
        [1; PREFACE_BYTES].into_iter().chain(frames).collect()
    }

    /// How many of these bytes are read from an unauthenticated peer, in pieces of at most `piece` bytes.
    fn read(bytes: &[u8], piece: usize) -> usize {
        let (mut frames, mut read) = (Frames::new(), 0);
        while read < bytes.len() && 0 < frames.allowance() {
            let end = (read + frames.allowance().min(piece)).min(bytes.len());
            frames.reads(&bytes[read..end]);
            read = end;
        }
        read
    }

    #[test]
    fn nothing_is_read_after_the_head_of_the_frame_that_opens_one_stream_too_many() {
        let bytes = begun(&[(kind::HEADERS, 6); 1_500]);
        let allowed = PREFACE_BYTES + STRANGER_STREAMS_MAX as usize * (HEAD_BYTES + 6) + HEAD_BYTES;
        assert_eq!(read(&bytes, usize::MAX), allowed);
        assert_eq!(read(&bytes[..allowed - HEAD_BYTES], usize::MAX), allowed - HEAD_BYTES);
    }

    #[test]
    fn frames_that_ask_for_nothing_are_distinguished_from_others() {
        let idle = |kind, flags, payload| {
            let mut frames = Frames::new();
            frames.reads(&[0; PREFACE_BYTES]);
            frames.reads(&frame(kind, flags, payload));
            frames.idle() == 1
        };
        for (kind, flags, payload) in [
            (0, 0, 0),
            (2, 0, 5),
            (3, 0, 4),
            (4, 0, 0),
            (4, 0, 6),
            (6, 0, 8),
            (7, 0, 8),
            (9, 4, 1),
            (77, 0, 3),
        ] {
            assert!(idle(kind, flags, payload), "{kind} {flags} {payload}");
        }
        for (kind, flags, payload) in
            [(0, 0, 1), (0, 1, 0), (1, 4, 9), (1, 5, 9), (4, 1, 0), (6, 1, 8), (8, 0, 4)]
        {
            assert!(!idle(kind, flags, payload), "{kind} {flags} {payload}");
        }
    }

    #[test]
    fn a_peer_may_cancel_much_at_once_and_ping_as_answers_arrive_but_not_without_end() {
        let second = Duration::from_secs(1);
        let mut allowance = Allowance::new();
        assert!(allowance.pays(IDLE_AT_ONCE, 0, Duration::ZERO));
        assert!(!allowance.pays(IDLE_AT_ONCE + 1, 0, Duration::ZERO));
        let mut steady = Allowance::new();
        assert!((1..1_000).all(|count| steady.pays(count * IDLE_PER_SECOND, 0, second)));
        let mut pings = Allowance::new();
        assert!((1..100_000).all(|count| pings.pays(count, count, Duration::ZERO)));
        let mut flood = Allowance::new();
        let ends = (1..).find(|count| !flood.pays(count * 2 * IDLE_PER_SECOND, *count, second));
        assert_eq!(ends, Some(4), "a burst, and what each second adds to it");
    }

    proptest! {
        #[test]
        fn streams_are_counted_however_their_bytes_come(
            frames in prop::collection::vec((0u8..10, 0usize..40), 0..40), piece in 1usize..60
        ) {
            let bytes = begun(&frames);
            let mut opened = 0;
            let fit = frames.iter().take_while(|(kind, _)| {
                opened += u64::from(*kind == kind::HEADERS);
                opened <= STRANGER_STREAMS_MAX
            });
            let fit = fit.count();
            let whole = begun(&frames[..fit]).len();
            let expected = if fit == frames.len() { whole } else { whole + HEAD_BYTES };
            prop_assert_eq!(read(&bytes, piece), expected);
            let (mut at_once, mut in_pieces) = (Frames::new(), Frames::new());
            at_once.reads(&bytes);
            bytes.chunks(piece).for_each(|piece| in_pieces.reads(piece));
            let counted = |frames: Frames| (frames.streams(), frames.idle());
            prop_assert_eq!(counted(at_once), counted(in_pieces));
            let headers = frames.iter().filter(|(kind, _)| *kind == kind::HEADERS).count();
            prop_assert_eq!(at_once.streams(), headers as u64);
        }
    }
}
