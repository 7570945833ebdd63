//! TLS of one connection as a function from bytes to bytes: what goes to the socket is encrypted on its way into the buffer of unsent
//! bytes, what comes from it is decrypted on its way into the frames' buffer. Sockets and waiting are none of its business.

use super::Lost;
use crate::security::TlsFailure;
use bytes::{Buf, BufMut, BytesMut};
use rustls::ClientConnection;
use std::io::{Read, Write};

/// One connection's TLS, its handshake over.
#[derive(Debug)]
pub(super) struct Cipher(ClientConnection);

impl Cipher {
    /// Goes on where the handshake ended.
    pub fn new(mut tls: ClientConnection) -> Self {
        // What is put in is taken out at once: the connection has bounds of its own.
        tls.set_buffer_limit(None);
        Self(tls)
    }

    /// Appends `plain`, encrypted, to `sealed`.
    pub fn seal(&mut self, plain: &[u8], sealed: &mut BytesMut) {
        self.0.writer().write_all(plain).expect("a buffer without a limit takes all");
        self.answer(sealed);
    }

    /// Takes all of `sealed` and appends what it says to `plain`. What TLS itself answers is appended to `unsent`.
    ///
    /// # Errors
    /// If the peer ends TLS, or it is none.
    pub fn open(
        &mut self,
        sealed: &mut BytesMut,
        plain: &mut BytesMut,
        unsent: &mut BytesMut,
    ) -> Result<(), Lost> {
        while !sealed.is_empty() {
            let taken = self.0.read_tls(&mut &sealed[..]).map_err(|error| Lost::new(error.to_string()))?;
            if taken == 0 {
                // The peer has said that nothing follows.
                sealed.clear();
            }
            sealed.advance(taken);
            let state = self.0.process_new_packets();
            let count = state
                .map_err(|error| Lost::new(TlsFailure::of_tls(&error).reason))?
                .plaintext_bytes_to_read();
            let before = plain.len();
            plain.resize(before + count, 0);
            let read = self.0.reader().read_exact(&mut plain[before..]);
            read.map_err(|error| Lost::new(error.to_string()))?;
        }
        self.answer(unsent);
        Ok(())
    }

    fn answer(&mut self, sealed: &mut BytesMut) {
        while self.0.wants_write() {
            self.0.write_tls(&mut sealed.writer()).expect("a growing buffer has room");
        }
    }
}
