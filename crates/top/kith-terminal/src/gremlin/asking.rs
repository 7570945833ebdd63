//! Traversals of one graph, asked one after the other: at a prompt, or line by line.

use super::{GremlinReply, explain, explained, traverse};
use crate::{
    failure::{ErrorReport, Exit},
    output::{self, Format},
};
use anyhow::Context;
use kith_client::Service;
use kith_query::line::{GremlinFields, GremlinLine, ReadOptions};
use std::{io::BufRead, sync::Arc};

/// Sends traversals to one graph, and returns their results as they are printed.
pub struct TraversalRunner {
    /// The service that answers.
    pub service: Arc<dyn Service>,
    /// The graph.
    pub graph: String,
    /// The options of each traversal.
    pub options: ReadOptions,
    /// The form of the results.
    pub format: Format,
}

impl TraversalRunner {
    fn line(&self, gremlin: &str, is_profiled: bool) -> GremlinLine {
        let (graph, gremlin) = (self.graph.clone(), gremlin.to_owned());
        let fields = GremlinFields { graph, gremlin, bindings: serde_json::Map::new() };
        let profile = self.options.profile || is_profiled;
        GremlinLine { fields, options: ReadOptions { profile, ..self.options.clone() } }
    }

    /// The results of a traversal as they are printed.
    ///
    /// # Errors
    /// If the traversal is wrong, or the cluster does not answer.
    pub async fn answer(&self, gremlin: &str, is_profiled: bool) -> anyhow::Result<String> {
        let reply = traverse(&*self.service, &self.line(gremlin, is_profiled)).await?;
        if self.format == Format::Table {
            reply.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        }
        Ok(match self.format {
            Format::Json => output::json_line(&reply),
            Format::Table => GremlinReply::text(&reply),
        })
    }

    /// The explanation of a traversal as it is printed.
    ///
    /// # Errors
    /// The errors of [`TraversalRunner::answer`].
    pub async fn explain(&self, gremlin: &str) -> anyhow::Result<String> {
        let reply = explain(&*self.service, &self.line(gremlin, false)).await?;
        Ok(match self.format {
            Format::Json => output::json_line(&reply),
            Format::Table => explained(&reply),
        })
    }

    /// Answers each line of `input`, which is a traversal. Empty lines are left out. A traversal that fails makes the exit
    /// code 3, and the next one is answered.
    ///
    /// # Errors
    /// If the input cannot be read or the output cannot be written.
    pub async fn answer_lines(&self, mut input: impl BufRead) -> anyhow::Result<Exit> {
        let mut exit = Exit::Done;
        let mark = input
            .fill_buf()
            .context("read standard input")
            .and_then(|head| kith_types::byte_order_mark(head).context("read standard input"))?;
        input.consume(mark);
        for line in input.lines() {
            let line = line.context("read standard input")?;
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            match self.answer(line, false).await {
                Ok(text) => output::print_bytes(text.as_bytes())?,
                Err(error) => {
                    output::fail(self.format, &ErrorReport::of(&error));
                    exit = Exit::Partial;
                }
            }
        }
        Ok(exit)
    }
}
