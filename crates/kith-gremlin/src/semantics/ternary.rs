//! Truth with a third value, for comparisons that have no answer.

/// What a predicate says of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ternary {
    /// The predicate holds.
    True,
    /// The predicate does not hold.
    False,
    /// The predicate cannot be decided, such as `lt(1)` of a text. A filter lets only [`Ternary::True`] pass.
    Error,
}

impl Ternary {
    /// Both hold. False if either is false, even if the other cannot be decided.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Error, _) | (_, Self::Error) => Self::Error,
            (Self::True, Self::True) => Self::True,
        }
    }

    /// At least one holds. True if either is true, even if the other cannot be decided.
    pub fn or(self, other: Self) -> Self {
        !(!self).and(!other)
    }

    /// Whether a filter lets the value pass.
    pub fn is_true(self) -> bool {
        self == Self::True
    }
}

impl std::ops::Not for Ternary {
    type Output = Self;

    /// The opposite. What cannot be decided stays so.
    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Error => Self::Error,
        }
    }
}

impl From<bool> for Ternary {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl From<Option<bool>> for Ternary {
    /// `None` becomes [`Ternary::Error`].
    fn from(holds: Option<bool>) -> Self {
        holds.map_or(Self::Error, Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::Ternary::{self, Error, False, True};

    const ALL: [Ternary; 3] = [True, False, Error];

    #[test]
    fn and_follows_the_table_of_the_documentation() {
        let table = [
            (True, True, True),
            (True, False, False),
            (True, Error, Error),
            (False, True, False),
            (False, False, False),
            (False, Error, False),
            (Error, True, Error),
            (Error, False, False),
            (Error, Error, Error),
        ];
        for (a, b, both) in table {
            assert_eq!(a.and(b), both, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn or_follows_the_table_of_the_documentation() {
        let table = [
            (True, True, True),
            (True, False, True),
            (True, Error, True),
            (False, True, True),
            (False, False, False),
            (False, Error, Error),
            (Error, True, True),
            (Error, False, Error),
            (Error, Error, Error),
        ];
        for (a, b, either) in table {
            assert_eq!(a.or(b), either, "{a:?} or {b:?}");
        }
    }

    #[test]
    fn the_laws_of_logic_hold_except_that_of_the_excluded_third() {
        for a in ALL {
            assert_eq!(!!a, a);
            for b in ALL {
                assert_eq!(a.and(b), b.and(a));
                assert_eq!(!a.and(b), (!a).or(!b));
                for c in ALL {
                    assert_eq!(a.and(b.and(c)), a.and(b).and(c));
                    assert_eq!(a.and(b.or(c)), a.and(b).or(a.and(c)));
                }
            }
        }
        assert_eq!(Error.or(!Error), Error);
    }
}
