//! Which requests are alike: only such are compared when one of them seems late.

use kith_types::FanOutKind;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// Lists and sets of a graph.
    #[default]
    Graph,
    /// Values by key.
    Values,
    /// What nodes compute of values.
    Computed,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// What is asked for.
    pub asked: RequestKind,
    /// The kind of fan-out that it is part of.
    pub kind: FanOutKind,
}

impl Work {
    /// Of a graph query.
    pub fn graph(kind: FanOutKind) -> Self {
        Self { asked: RequestKind::Graph, kind }
    }

    /// Of a read of values.
    pub fn values(kind: FanOutKind) -> Self {
        Self { asked: RequestKind::Values, kind }
    }
}

/// The most keys of each class of requests but the last, which has no bound: a factor of four
/// apart, so that within a class the largest takes a few times what the least takes.
const CLASS_KEYS_MAX: [usize; KeyClass::COUNT - 1] = [1, 8, 32, 128, 512, 2_048];

/// How large a request is, by its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyClass(u8);

impl KeyClass {
    /// How many classes there are.
    pub const COUNT: usize = 7;

    /// The class of a request with so many keys.
    pub fn of(keys: usize) -> Self {
        let larger = CLASS_KEYS_MAX.iter().position(|most| keys <= *most);
        Self(larger.unwrap_or(CLASS_KEYS_MAX.len()) as u8)
    }

    /// Its place among the classes, from small to large.
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
