//! TLS of one connection, as a function from bytes to bytes. Outgoing bytes are encrypted on their way into the buffer of
//! unsent bytes; incoming bytes are decrypted on their way into the buffer of frames. The cipher itself does no I/O.

use super::ConnectionLoss;
use crate::security::TlsFailure;
use bytes::{Buf, BufMut, BytesMut};
use rustls::ClientConnection;
use std::io::{Read, Write};

/// The TLS state of one connection after its handshake.
#[derive(Debug)]
pub(super) struct Cipher(ClientConnection);

impl Cipher {
    /// Continues from the end of the handshake.
    pub fn new(mut tls: ClientConnection) -> Self {
        // No limit is needed here: written bytes are taken out at once, and the connection bounds them itself.
        tls.set_buffer_limit(None);
        Self(tls)
    }

    /// Appends `plain`, encrypted, to `sealed`.
    pub fn seal(&mut self, plain: &[u8], sealed: &mut BytesMut) {
        self.0.writer().write_all(plain).expect("a buffer without a limit accepts every write");
        self.answer(sealed);
    }

    /// Consumes all of `sealed` and appends the decrypted bytes to `plain`. Bytes that TLS itself sends in reply are
    /// appended to `unsent`.
    ///
    /// # Errors
    /// [`ConnectionLoss`] if the peer sends a fatal alert, or bytes that are not valid TLS.
    pub fn open(
        &mut self,
        sealed: &mut BytesMut,
        plain: &mut BytesMut,
        unsent: &mut BytesMut,
    ) -> Result<(), ConnectionLoss> {
        while !sealed.is_empty() {
            let taken =
                self.0.read_tls(&mut &sealed[..]).map_err(|error| ConnectionLoss::new(error.to_string()))?;
            if taken == 0 {
                // The peer has ended TLS, so nothing valid can follow.
                sealed.clear();
            }
            sealed.advance(taken);
            let state = self.0.process_new_packets();
            let count = state
                .map_err(|error| ConnectionLoss::new(TlsFailure::of_tls(&error).reason))?
                .plaintext_bytes_to_read();
            let before = plain.len();
            plain.resize(before + count, 0);
            let read = self.0.reader().read_exact(&mut plain[before..]);
            read.map_err(|error| ConnectionLoss::new(error.to_string()))?;
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
