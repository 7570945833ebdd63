//! Kith: `kith-server`.
