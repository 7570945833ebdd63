//! Kith: `kith-engine`.

pub mod load;
