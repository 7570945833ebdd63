//! The words that complete a traversal: steps, labels of edges and keys of properties.

use crate::reply::graphs::GraphReply;
use kith_client::{RouterClient, Service};
use kith_gremlin::text;

/// The commands of the prompt.
pub(super) const COMMANDS: [&str; 4] = [":explain", ":help", ":profile", ":quit"];

/// The names that texts about one graph can use.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Labels and keys, sorted.
    names: Vec<String>,
}

impl Words {
    /// The labels and keys of a graph. Completion is a help: what cannot be found out is left out.
    pub async fn of(router: &RouterClient, graph: &str) -> Self {
        let Ok(topology) = router.topology_with_types(|name| name == graph).await else {
            return Self::default();
        };
        let joined = topology.graphs().find(|known| known.name == graph);
        let joined = joined.and_then(|known| known.definition.properties.clone());
        let store = topology.stores.iter().find(|store| Some(&store.name) == joined.as_ref()).cloned();
        let graphs = GraphReply::all(topology);
        let mut names = match graphs.into_iter().find(|known| known.name() == graph) {
            Some(GraphReply::Loaded(loaded)) => {
                let of_component = |component: crate::reply::graphs::ComponentReply| {
                    std::iter::once(component.name).chain(component.columns)
                };
                loaded.components.into_iter().flat_map(of_component).chain(["member".to_owned()]).collect()
            }
            Some(GraphReply::Live(live)) => live
                .types
                .into_iter()
                .flat_map(|kind| std::iter::once(kind.name).chain(kind.fields))
                .collect(),
            None => Vec::new(),
        };
        if let Some(store) = store {
            let id = store.components.iter().find_map(|component| component.schema.as_deref()?.parse().ok());
            if let Some(id) = id
                && let Ok(schema) = router.schema(&store.name, store.version, id).await
            {
                names.extend(schema.fields().iter().map(|field| field.name().to_owned()));
            }
        }
        Self::new(names)
    }

    fn new(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self { names }
    }

    /// Returns the words that can stand in place of the word before the cursor, and where that word begins.
    pub(super) fn complete(&self, before: &str) -> (usize, Vec<String>) {
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let start = before.trim_end_matches(is_of_word).len();
        let (head, word) = before.split_at(start);
        let matching = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            names.filter(|name| name.starts_with(word) && *name != word).map(str::to_owned).collect()
        };
        if head == ":" {
            let mut commands = COMMANDS.iter().map(|command| &command[1..]);
            return (start, matching(&mut commands));
        }
        if is_within_text(head) {
            return (start, matching(&mut self.names.iter().map(String::as_str)));
        }
        let terminals = ["explain()", "iterate()", "next()", "toList()"];
        match head.trim_end().chars().next_back() {
            // After a dot, and where a traversal without a source may begin.
            Some('.') => (start, matching(&mut text::STEPS.iter().copied().chain(terminals))),
            Some('(' | ',') => (start, matching(&mut text::STEPS.iter().copied())),
            None => (start, matching(&mut std::iter::once("g."))),
            _ => (start, Vec::new()),
        }
    }
}

/// Whether a text ends within a string, of single or double quotes.
fn is_within_text(text: &str) -> bool {
    brackets(text).1
}

/// Whether a traversal goes on in the next line: a bracket is open, or a dot ends the line.
pub(super) fn goes_on(text: &str) -> bool {
    let (open, is_within_text) = brackets(text);
    let is_command = text.trim_start().starts_with(':') && !text.contains('(');
    !is_within_text && !is_command && (0 < open || text.trim_end().ends_with('.'))
}

/// Returns the number of brackets that are open at the end of a text, and whether it ends within a string.
fn brackets(text: &str) -> (i64, bool) {
    let (mut open, mut quote, mut is_escaped) = (0_i64, None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(closing), c) if c == closing => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => open += 1,
            (None, ')' | ']' | '}') => open -= 1,
            (None, _) => {}
        }
    }
    (open, quote.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(before: &str) -> Vec<String> {
        Words::new(vec!["follows".to_owned(), "friends".to_owned()]).complete(before).1
    }

    #[test]
    fn words_are_completed_by_their_place() {
        assert_eq!(completed("g.V(1).outE"), Vec::<String>::new(), "it is whole");
        assert_eq!(completed("g.V(1).groupC"), ["groupCount"]);
        assert_eq!(completed("g.V(1).where(outV"), Vec::<String>::new());
        assert_eq!(completed("g.V(1).where(simpleP"), ["simplePath"]);
        assert_eq!(completed("g.V(1).out('f"), ["follows", "friends"]);
        assert_eq!(completed("g.V(1).out(\"fr"), ["friends"]);
        assert_eq!(completed("g.V(1).out('friends').toL"), ["toLower", "toList()"]);
        assert_eq!(completed(":pro"), ["profile"]);
        assert_eq!(completed(""), ["g."]);
        let (start, _) = Words::default().complete("g.V().valu");
        assert_eq!(start, "g.V().".len());
    }

    #[test]
    fn a_traversal_goes_on_until_its_brackets_close() {
        for (text, expected) in [
            ("g.V(1)", false),
            ("g.V(1).where(", true),
            ("g.V(1).", true),
            ("g.V(1).has('a', '(')", false),
            ("g.V(1).has('a', 'it\\'s (').out(", true),
            ("g.inject([1, {", true),
            ("g.V(1))", false),
            ("g.V('open", false),
            (":help", false),
            (":profile g.V(", true),
        ] {
            assert_eq!(goes_on(text), expected, "{text}");
        }
    }
}
