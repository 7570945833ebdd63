//! A command, split into words.

/// A command: its first words, and clauses separated by commas, as in `ask p0 p1, partial, deadline 30ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The whole line.
    pub text: &'a str,
    /// The words before the first comma.
    pub words: Vec<&'a str>,
    clauses: Vec<Vec<&'a str>>,
}

impl<'a> Command<'a> {
    /// Splits a line into words and clauses.
    pub fn new(text: &'a str) -> Self {
        let mut clauses = text.split(',').map(|clause| clause.split_whitespace().collect::<Vec<_>>());
        let words = clauses.next().unwrap_or_default();
        Self { text, words, clauses: clauses.collect() }
    }

    /// Returns the words after `name` in the clause that begins with it.
    pub fn clause(&self, name: &str) -> Option<&[&'a str]> {
        let clause = self.clauses.iter().find(|clause| clause.first() == Some(&name))?;
        Some(&clause[1..])
    }

    /// Returns the single word after `name` in its clause, if there is such a clause.
    ///
    /// # Errors
    /// If the clause has no word after `name`, or several words.
    pub fn value(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.clause(name) {
            None => Ok(None),
            Some([value]) => Ok(Some(value)),
            Some(_) => Err(format!("{name:?} is followed by one word")),
        }
    }

    /// Whether there is a clause `name`.
    ///
    /// # Errors
    /// If words follow in the clause.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        match self.clause(name) {
            None => Ok(false),
            Some([]) => Ok(true),
            Some(_) => Err(format!("nothing follows {name:?}")),
        }
    }

    /// Refuses clauses that do not begin with one of `names`, and clauses that occur twice. Otherwise a misspelled clause
    /// would be ignored.
    ///
    /// # Errors
    /// An error that names the clause.
    pub fn clauses_are(&self, names: &[&str]) -> Result<(), String> {
        for (index, clause) in self.clauses.iter().enumerate() {
            let name = clause.first().copied().unwrap_or_default();
            if !names.contains(&name) {
                return Err(format!("unknown clause {:?} of {:?}", clause.join(" "), self.words.join(" ")));
            }
            if self.clauses[..index].iter().any(|other| other.first() == Some(&name)) {
                return Err(format!("clause {name:?} is there twice"));
            }
        }
        Ok(())
    }

    /// Returns the error for a command that the language of an area does not have. It lists the forms with the same first
    /// word or, if there are none, all forms.
    pub fn unknown(&self, language: &[(&str, &str)]) -> String {
        let first = self.words.first().copied().unwrap_or_default();
        let forms = || language.iter().map(|(form, _)| *form);
        let alike: Vec<&str> = forms().filter(|form| form.split_whitespace().next() == Some(first)).collect();
        let known = if alike.is_empty() { forms().collect() } else { alike };
        format!("unknown command {:?}; there is {}", self.text, known.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_clauses_are_distinguished() {
        let command = Command::new("ask p0 p1, partial, deadline 30ms");
        assert_eq!(command.words, ["ask", "p0", "p1"]);
        assert_eq!(command.value("deadline"), Ok(Some("30ms")));
        assert_eq!((command.flag("partial"), command.flag("early")), (Ok(true), Ok(false)));
        assert!(command.flag("deadline").is_err() && command.value("partial").is_err());
        assert_eq!(command.clauses_are(&["partial", "deadline"]), Ok(()));
    }

    #[test]
    fn misspelled_clauses_are_refused() {
        let refused = Command::new("ask p0, partail").clauses_are(&["partial"]).unwrap_err();
        assert_eq!(refused, "unknown clause \"partail\" of \"ask p0\"");
        assert!(Command::new("ask p0, partial, partial").clauses_are(&["partial"]).is_err());
    }

    #[test]
    fn an_unknown_command_is_answered_with_those_that_begin_alike() {
        let language = [("ask PARTITIONS", ""), ("at TIME", ""), ("ask nobody", "")];
        let unknown = Command::new("ask").unknown(&language);
        assert_eq!(unknown, "unknown command \"ask\"; there is ask PARTITIONS | ask nobody");
        assert!(Command::new("shout").unknown(&language).ends_with("ask PARTITIONS | at TIME | ask nobody"));
    }
}
