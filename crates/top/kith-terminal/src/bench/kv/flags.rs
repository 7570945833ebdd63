//! The flags of `kith bench kv`.

use super::draw::{EXPONENT_DEFAULT, Popularity};
use crate::{
    failure::Failure,
    names::{positive, store_name},
};
use clap::Args;
use kith_client::BATCH_KEYS_MAX;
use kith_query::line::KeyEncoding;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct KvBenchFlags {
    /// The store to read
    #[arg(value_parser = store_name)]
    pub store: String,
    /// How keys are drawn
    #[arg(long, value_enum, default_value_t)]
    pub distribution: Popularity,
    /// Exponent of the zipfian distribution: how steeply popularity falls with rank [default: 0.99]
    #[arg(long, value_name = "S")]
    exponent: Option<f64>,
    /// Requests per second, one rate after another
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "100,300,1000", value_parser = positive)]
    pub rate: Vec<f64>,
    /// Seconds at each rate
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = positive)]
    pub seconds: f64,
    /// Keys per request
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=BATCH_KEYS_MAX as i64))]
    pub keys: u32,
    /// Draw from the keys of a file, one per line [default: ids from 0, as many as the store has records]
    #[arg(long, value_name = "FILE")]
    pub keys_from: Option<PathBuf>,
    /// How string or byte keys are written [default: text for strings, base64 for bytes]
    #[arg(long, value_enum, value_name = "ENCODING", requires = "keys_from")]
    pub key_encoding: Option<KeyEncoding>,
    /// Count keys that are not found as wrong: every key is known to exist
    #[arg(long)]
    pub check: bool,
    /// Seed: equal seeds send equal requests at equal times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A folder for the numbers as CSV and a drawing of them as SVG
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl KvBenchFlags {
    /// The exponent of the distribution.
    ///
    /// # Errors
    /// If the flag does not apply or its value is invalid.
    pub fn exponent(&self) -> Result<f64, Failure> {
        match self.exponent {
            None => Ok(EXPONENT_DEFAULT),
            Some(_) if self.distribution == Popularity::Uniform => {
                let help = "add --distribution zipfian, or leave it out";
                Err(Failure::usage("--exponent does not apply here: all keys are equally likely", help))
            }
            Some(exponent) if exponent.is_finite() && 0.0 <= exponent => Ok(exponent),
            Some(exponent) => {
                let message = format!("--exponent {exponent} is not a number of 0 or more");
                Err(Failure::usage(message, "YCSB uses 0.99; 0 makes all keys equally likely"))
            }
        }
    }
}
