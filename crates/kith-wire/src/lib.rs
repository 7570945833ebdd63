//! Kith: `kith-wire`.
