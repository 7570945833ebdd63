//! Decides when a silent peer that owes an answer counts as frozen: its process has stopped, but its sockets are still
//! open.
//!
//! It has no clock; the caller checks once a second.

/// Checks without a byte from a peer that owes an answer, until the peer is asked whether it is alive.
const LOOKS_UNTIL_ASKED: u32 = 2;
/// Checks without a byte until the peer is given up.
const LOOKS_UNTIL_FROZEN: u32 = 7;

/// The action that follows a peer's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing.
    Wait,
    /// Ask the peer whether it is alive. A live peer answers at once, however long its requests take.
    Ask,
    /// Give the connection up: the peer is frozen.
    GiveUp,
}

/// The number of checks since the last byte arrived, while an answer was owed.
#[derive(Debug, Default)]
pub(super) struct Silence(u32);

impl Silence {
    /// Resets the count, because bytes arrived.
    pub fn broken(&mut self) {
        self.0 = 0;
    }

    /// Counts another check; `is_owed` says whether the peer owes an answer.
    pub fn look(&mut self, is_owed: bool) -> Look {
        if !is_owed {
            self.0 = 0;
            return Look::Wait;
        }
        self.0 += 1;
        match self.0 {
            LOOKS_UNTIL_ASKED => Look::Ask,
            LOOKS_UNTIL_FROZEN.. => Look::GiveUp,
            _ => Look::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_does_not_say_that_it_is_there_is_given_up() {
        let mut silence = Silence::default();
        let looks: Vec<Look> = (0..7).map(|_| silence.look(true)).collect();
        let waits = [Look::Wait; 4];
        assert_eq!(looks, [&[Look::Wait, Look::Ask][..], &waits, &[Look::GiveUp]].concat());
    }

    #[test]
    fn one_who_says_so_is_waited_for_however_long_it_takes() {
        let mut silence = Silence::default();
        let mut asked = 0;
        for _ in 0..1_000 {
            match silence.look(true) {
                Look::Wait => {}
                Look::Ask => {
                    asked += 1;
                    silence.broken();
                }
                Look::GiveUp => panic!("it was there"),
            }
        }
        assert_eq!(asked, 500);
    }

    #[test]
    fn one_who_owes_nothing_may_be_silent() {
        let mut silence = Silence::default();
        for _ in 0..3 {
            assert!((0..6).all(|_| silence.look(true) != Look::GiveUp));
            assert!((0..100).all(|_| silence.look(false) == Look::Wait));
        }
    }
}
