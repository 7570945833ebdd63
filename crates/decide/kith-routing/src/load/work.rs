//! Classes of similar requests. Only durations within a class are compared to tell whether a request is late.

use kith_types::FanOutKind;

/// The work that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// Lists and sets of a graph.
    #[default]
    Graph,
    /// Values by key.
    Values,
    /// Results that nodes compute over values.
    Computed,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The work that it asks for.
    pub asked: RequestKind,
    /// The kind of fan-out that it belongs to.
    pub kind: FanOutKind,
}

impl Work {
    /// Returns the work of a graph query.
    pub fn graph(kind: FanOutKind) -> Self {
        Self { asked: RequestKind::Graph, kind }
    }

    /// Returns the work of a read of values.
    pub fn values(kind: FanOutKind) -> Self {
        Self { asked: RequestKind::Values, kind }
    }
}

/// The largest number of keys in each class of requests; the last class has no bound. The bounds are a factor of four apart,
/// so that within a class the largest request takes only a few times as long as the smallest.
const CLASS_KEYS_MAX: [usize; KeyClass::COUNT - 1] = [1, 8, 32, 128, 512, 2_048];

/// The size class of a request, by its number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyClass(u8);

impl KeyClass {
    /// The number of classes.
    pub const COUNT: usize = 7;

    /// Returns the class of a request with `keys` keys.
    pub fn of(keys: usize) -> Self {
        let larger = CLASS_KEYS_MAX.iter().position(|most| keys <= *most);
        Self(larger.unwrap_or(CLASS_KEYS_MAX.len()) as u8)
    }

    /// The index of the class, from small to large.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Every class, from small to large.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_with_keys() {
        let of = |keys: usize| KeyClass::of(keys).index();
        assert_eq!(
            [of(0), of(1), of(2), of(8), of(9), of(512), of(513), of(2_049), of(100_000)],
            [0, 0, 1, 1, 2, 4, 5, 6, 6]
        );
        assert_eq!(KeyClass::all().count(), KeyClass::COUNT);
    }
}
