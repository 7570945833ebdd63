//! Counts the HTTP/2 streams that an unauthenticated peer opens, frame by frame. h2 keeps state and an unsent answer for
//! each stream, whether or not the peer reads.

/// How many streams an unauthenticated peer may open: a request that sends a token, and a few that come with it.
const STREAMS_MAX: u32 = 8;
/// The length of the HTTP/2 preface, which begins with `PRI * HTTP/2.0`.
const PREFACE_BYTES: usize = 24;
/// The length of a frame's head: three bytes of length, then kind, flags and stream.
const HEAD_BYTES: usize = 9;
/// The kind of frames that open streams.
const HEADERS: u8 = 1;

/// The state of a parser of HTTP/2 frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// Missing bytes of the preface, or of the payload of the frame that has begun.
    left: usize,
    head: [u8; HEAD_BYTES],
    /// How many bytes of `head` have arrived.
    filled: usize,
    streams: u32,
}

impl Opening {
    /// Returns the state before the first byte.
    pub fn new() -> Self {
        Self { left: PREFACE_BYTES, head: [0; HEAD_BYTES], filled: 0, streams: 0 }
    }

    /// How many bytes may be read next. They never go beyond the frame that has begun. Zero if the peer has opened more
    /// streams than it may.
    pub fn allowance(&self) -> usize {
        match self.left {
            _ if STREAMS_MAX < self.streams => 0,
            0 => HEAD_BYTES - self.filled,
            left => left,
        }
    }

    /// Counts bytes that were read; at most as many as the allowance permits.
    pub fn reads(&mut self, bytes: &[u8]) {
        if 0 < self.left {
            self.left = self.left.saturating_sub(bytes.len());
            return;
        }
        for byte in bytes.iter().take(HEAD_BYTES - self.filled) {
            self.head[self.filled] = *byte;
            self.filled += 1;
        }
        if self.filled == HEAD_BYTES {
            let [high, middle, low, kind, ..] = self.head;
            self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
            self.streams += u32::from(kind == HEADERS);
            self.filled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let mut frame = (payload as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.resize(HEAD_BYTES + payload, 1);
        frame
    }

    fn begun(frames: &[(u8, usize)]) -> Vec<u8> {
        let frames = frames.iter().flat_map(|(kind, payload)| frame(*kind, *payload));
        [1; PREFACE_BYTES].into_iter().chain(frames).collect()
    }

    /// How many of these bytes are read, in pieces of at most `piece` bytes.
    fn read(bytes: &[u8], piece: usize) -> usize {
        let (mut opening, mut read) = (Opening::new(), 0);
        while read < bytes.len() && 0 < opening.allowance() {
            let end = (read + opening.allowance().min(piece)).min(bytes.len());
            opening.reads(&bytes[read..end]);
            read = end;
        }
        read
    }

    #[test]
    fn nothing_is_read_after_the_head_of_the_frame_that_opens_one_stream_too_many() {
        let bytes = begun(&[(HEADERS, 6); 1_500]);
        let allowed = PREFACE_BYTES + STREAMS_MAX as usize * (HEAD_BYTES + 6) + HEAD_BYTES;
        assert_eq!(read(&bytes, usize::MAX), allowed);
        assert_eq!(read(&bytes[..allowed - HEAD_BYTES], usize::MAX), allowed - HEAD_BYTES);
    }

    proptest! {
        #[test]
        fn streams_are_counted_however_their_bytes_come(
            frames in prop::collection::vec((0u8..10, 0usize..40), 0..40), piece in 1usize..60
        ) {
            let bytes = begun(&frames);
            let mut opened = 0;
            let fit = frames.iter().take_while(|(kind, _)| {
                opened += u32::from(*kind == HEADERS);
                opened <= STREAMS_MAX
            });
            let fit = fit.count();
            let whole = begun(&frames[..fit]).len();
            let expected = if fit == frames.len() { whole } else { whole + HEAD_BYTES };
            prop_assert_eq!(read(&bytes, piece), expected);
        }
    }
}
