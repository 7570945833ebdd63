//! Kith: `kith-sim`.
