//! How messages are coded in gRPC: as tonic does, with less memory for each request.

use prost::Message;
use std::marker::PhantomData;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// The first room for an arriving message. tonic's default of 8 KiB would be most of the memory of a request whose message
/// has not arrived, and most messages are shorter than this.
const ARRIVING_BYTES: usize = 512;
/// How many bytes tonic encodes before it passes them on: its default.
const YIELD_BYTES: usize = 32 << 10;

/// The codec of all generated clients and servers.
#[derive(Debug)]
pub struct MessageCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for MessageCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for MessageCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(ARRIVING_BYTES, YIELD_BYTES))
    }
}
