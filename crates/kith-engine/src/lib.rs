//! Kith: `kith-engine`.
