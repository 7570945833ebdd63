//! The result of `profile()`.

use super::Value;
use std::fmt::{self, Display, Formatter};

/// The time and the counts of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Metrics {
    pub id: String,
    pub name: String,
    pub nanos: i64,
    /// Counts by name, such as `traverserCount` and `elementCount`.
    pub counts: Vec<(String, i64)>,
    /// Further findings by name, such as the groups that a hop asked.
    pub annotations: Vec<(String, Value)>,
    /// The metrics of nested traversals.
    pub nested: Vec<Metrics>,
}

/// The time of a traversal and the metrics of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct TraversalMetrics {
    pub nanos: i64,
    pub steps: Vec<Metrics>,
}

/// The count of elements, each as often as its bulk says.
pub const ELEMENT_COUNT: &str = "elementCount";
/// The count of traversers.
pub const TRAVERSER_COUNT: &str = "traverserCount";
/// The share of a step in the time of its traversal, in percent. It has a column of its own in the table.
pub const PERCENT_OF_TIME: &str = "percentDur";

/// The width of names. With the numbers, a row has 78 columns, so that it fits a terminal.
const NAME_WIDTH: usize = 34;
const NUMBERS_WIDTH: usize = 44;

impl Metrics {
    fn count(&self, name: &str) -> String {
        let count = self.counts.iter().find(|(counted, _)| counted == name);
        count.map_or_else(|| "-".to_owned(), |(_, count)| count.to_string())
    }

    /// Its row of the table, and those of its annotations and nested metrics, which are indented by two more columns.
    fn rows(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        let percent = self.annotations.iter().find(|(name, _)| name == PERCENT_OF_TIME);
        let percent = percent.map_or_else(String::new, |(_, value)| match value {
            Value::Double(value) => format!("{value:.2}"),
            value => value.to_string(),
        });
        let name = format!("{:1$}{2}", "", 2 * depth, self.name);
        let counts = (self.count(ELEMENT_COUNT), self.count(TRAVERSER_COUNT));
        row(f, &name, counts, &millis(self.nanos), &percent)?;
        for (name, value) in self.annotations.iter().filter(|(name, _)| name != PERCENT_OF_TIME) {
            write!(f, "\n{:1$}{name}={value}", "", 2 * depth + 4)?;
        }
        self.nested.iter().try_for_each(|nested| nested.rows(f, depth + 1))
    }
}

impl Display for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")?;
        heading(f)?;
        self.rows(f, 0)
    }
}

impl Display for TraversalMetrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Traversal Metrics")?;
        heading(f)?;
        self.steps.iter().try_for_each(|step| step.rows(f, 0))?;
        let total = format!("{:>NAME_WIDTH$}", ">TOTAL");
        row(f, &total, ("-".to_owned(), "-".to_owned()), &millis(self.nanos), "-")
    }
}

fn heading(f: &mut Formatter<'_>) -> fmt::Result {
    row(f, "Step", ("Count".to_owned(), "Traversers".to_owned()), "Time (ms)", "% Dur")?;
    write!(f, "\n{}", "=".repeat(NAME_WIDTH + NUMBERS_WIDTH))
}

fn row(
    f: &mut Formatter<'_>,
    name: &str,
    (count, traversers): (String, String),
    millis: &str,
    percent: &str,
) -> fmt::Result {
    // The numbers of a long name are below it, under their headings.
    let long = if NAME_WIDTH < name.chars().count() { format!("\n{name}") } else { String::new() };
    let name = if long.is_empty() { name } else { "" };
    write!(f, "{long}\n{name:<NAME_WIDTH$} {count:>10} {traversers:>11} {millis:>11} {percent:>8}")
}

#[allow(clippy::cast_precision_loss, reason = "three decimals of a duration are printed")]
fn millis(nanos: i64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_table() {
        let hop = Metrics {
            id: "1.0.0()".to_owned(),
            name: "VertexStep(OUT,vertex)".to_owned(),
            nanos: 1_500_000,
            counts: vec![(ELEMENT_COUNT.to_owned(), 7), (TRAVERSER_COUNT.to_owned(), 5)],
            annotations: vec![
                (PERCENT_OF_TIME.to_owned(), Value::Double(75.0)),
                ("groups".to_owned(), Value::Int(1)),
            ],
            nested: vec![],
        };
        let outer = Metrics { name: "Filter".to_owned(), nested: vec![hop], ..Metrics::default() };
        let text = TraversalMetrics { nanos: 2_000_000, steps: vec![outer] }.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[1]), "Step Count Traversers Time (ms) % Dur");
        assert_eq!(words(lines[3]), "Filter - - 0.000");
        assert_eq!(words(lines[4]), "VertexStep(OUT,vertex) 7 5 1.500 75.00");
        assert!(lines[4].starts_with("  V"), "nested: {}", lines[4]);
        assert_eq!(lines[5].trim(), "groups=1");
        assert_eq!(words(lines[6]), ">TOTAL - - 2.000 -");
    }
}
