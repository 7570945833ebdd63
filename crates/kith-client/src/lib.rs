//! Kith: `kith-client`.
