//! Decides which warnings are written. A loop that fails repeats its warning, perhaps for days. It is written once, then
//! counted each minute, until it has not come for a minute.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The interval at which a message that continues is counted, and the time without the message after which it is over.
const INTERVAL: Duration = Duration::from_secs(60);
/// The number of different messages of one place in the code that are distinguished. Beyond that they count as one,
/// because a message may contain numbers that differ each time.
const APART_MAX: usize = 30;
/// The number of characters of a message that are repeated.
const CHARS_MAX: usize = 300;

/// The place of an event in the code: file and line.
type Place = (&'static str, u32);

/// The messages that came in the last minute.
#[derive(Debug, Default)]
pub(super) struct Thinner {
    lines: HashMap<Place, HashMap<Option<String>, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The message as it came first.
    text: String,
    first: Instant,
    last: Instant,
    reported: Instant,
    /// The number of times that it was left out since it was last reported, and in all.
    unreported: u64,
    all: u64,
}

/// A message that was left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RepeatedMessage {
    pub text: String,
    /// The number of times that it was left out: since it was last reported, or in all if it is over.
    pub times: u64,
    /// The number of seconds in which it was left out that often.
    pub seconds: u64,
    pub is_over: bool,
}

impl Thinner {
    /// Whether a message is written. Otherwise it is counted.
    pub fn admit(&mut self, line: Place, text: &str, now: Instant) -> bool {
        let entries = self.lines.entry(line).or_default();
        let text = cut(text);
        let mut key = Some(text.clone());
        if APART_MAX <= entries.len() && !entries.contains_key(&key) {
            key = None;
        }
        if let Some(entry) = entries.get_mut(&key) {
            entry.last = now;
            entry.unreported += 1;
            entry.all += 1;
            return false;
        }
        entries.insert(key, Entry { text, first: now, last: now, reported: now, unreported: 0, all: 0 });
        true
    }

    /// Returns the messages that are due for a report now.
    pub fn due(&mut self, now: Instant) -> Vec<RepeatedMessage> {
        let mut due = Vec::new();
        for entries in self.lines.values_mut() {
            entries.retain(|_, entry| entry.is_current(now, &mut due));
        }
        self.lines.retain(|_, entries| !entries.is_empty());
        due
    }
}

impl Entry {
    fn is_current(&mut self, now: Instant, due: &mut Vec<RepeatedMessage>) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        let is_over = INTERVAL <= since(self.last);
        if is_over && 0 < self.all {
            let seconds = self.last.saturating_duration_since(self.first).as_secs();
            due.push(RepeatedMessage { text: self.text.clone(), times: self.all, seconds, is_over });
        } else if 0 < self.unreported && INTERVAL <= since(self.reported) {
            let seconds = since(self.reported).as_secs();
            due.push(RepeatedMessage { text: self.text.clone(), times: self.unreported, seconds, is_over });
            (self.reported, self.unreported) = (now, 0);
        }
        !is_over
    }
}

fn cut(text: &str) -> String {
    text.char_indices().nth(CHARS_MAX).map_or(text, |(end, _)| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = ("open.rs", 7);

    #[test]
    fn a_message_that_repeats_is_written_once_then_counted_and_then_over() {
        let (mut thinner, start) = (Thinner::default(), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        // Twice a second for two and a half minutes, as while a database is away.
        let written: Vec<u64> = (0..300)
            .filter(|half| thinner.admit(HERE, "it is away graph=a", at(*half as f64 / 2.0)))
            .collect();
        assert_eq!(written, [0]);
        let repeated = |text: &str, times, seconds, is_over| RepeatedMessage {
            text: text.to_owned(),
            times,
            seconds,
            is_over,
        };
        assert_eq!(thinner.due(at(150.0)), [repeated("it is away graph=a", 299, 150, false)]);
        assert_eq!(thinner.due(at(170.0)), []);
        assert_eq!(thinner.due(at(210.0)), [repeated("it is away graph=a", 299, 149, true)]);
        // Once more later: it is written again.
        assert!(thinner.admit(HERE, "it is away graph=a", at(300.0)));
        assert!(thinner.due(at(400.0)).is_empty() && thinner.lines.is_empty());
    }

    #[test]
    fn messages_of_other_objects_and_places_are_others() {
        let (mut thinner, now) = (Thinner::default(), Instant::now());
        assert!(
            thinner.admit(HERE, "it is away graph=a", now) && thinner.admit(HERE, "it is away graph=b", now)
        );
        assert!(thinner.admit(("other.rs", 7), "it is away graph=a", now));
        assert!(!thinner.admit(HERE, "it is away graph=b", now));
    }

    #[test]
    fn messages_whose_numbers_always_differ_are_bounded() {
        let (mut thinner, now) = (Thinner::default(), Instant::now());
        let written =
            (0..1_000).filter(|number| thinner.admit(HERE, &format!("late after={number}"), now)).count();
        assert_eq!(written, APART_MAX + 1);
        let due = thinner.due(now + INTERVAL);
        assert_eq!(due.iter().map(|repeated| repeated.times).collect::<Vec<_>>(), [1_000 - written as u64]);
        let long = "é".repeat(1_000);
        assert!(thinner.admit(HERE, &long, now) && !thinner.admit(HERE, &long, now));
    }
}
