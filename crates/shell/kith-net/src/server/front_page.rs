//! The page `/` of every process: what the process is, its addresses, and the other HTTP paths.

use crate::server::Addresses;
use axum::{
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};

/// The other paths of the HTTP port, with their meaning.
const PATHS: [(&str, &str); 3] = [
    ("/healthz", "whether the process runs"),
    ("/readyz", "whether it answers queries"),
    ("/metrics", "its metrics, for Prometheus"),
];
/// The address of the documentation.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "#readme");

/// The facts about a process that its front page shows.
#[derive(Clone, Debug)]
pub struct FrontPage {
    /// Its role and id, such as `router 0`.
    pub name: String,
    /// Its work, as the end of a sentence that begins with "It".
    pub does: &'static str,
    /// Whether clients send requests to it, and not only other processes of the cluster.
    pub answers_clients: bool,
    /// The addresses on which it listens.
    pub at: Addresses,
}

impl FrontPage {
    /// Returns the page: as HTML with links if `headers` accept HTML, otherwise as plain text.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accepted.contains("text/html") {
            let page = self.lines(|target| format!("<a href=\"{target}\">{target}</a>"));
            let page = format!("<!doctype html>\n<title>Kith: {}</title>\n<pre>\n{page}</pre>\n", self.name);
            return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
        }
        self.lines(str::to_owned).into_response()
    }

    fn lines(&self, link: impl Fn(&str) -> String) -> String {
        let Self { name, does, answers_clients, at } = self;
        let mut page = format!("Kith {}, {name}. It {does}.\n\n", env!("CARGO_PKG_VERSION"));
        let grpc = at.grpc.to_string();
        let what = match answers_clients {
            true => format!("queries, over gRPC and frames: --router {grpc}"),
            false => "gRPC, for nodes and routers".to_owned(),
        };
        page.push_str(&format!("{grpc:<22}{what}\n"));
        if let Some(resp) = at.resp {
            let command = format!("redis-cli -h {} -p {} get STORE:KEY", resp.ip(), resp.port());
            page.push_str(&format!("{:<22}Redis clients: {command}\n", resp.to_string()));
        }
        if let Some(gremlin) = at.gremlin {
            let line = format!("{:<22}Gremlin drivers: ws://{gremlin}/gremlin\n", gremlin.to_string());
            page.push_str(&line);
        }
        for (path, what) in PATHS {
            let padding = " ".repeat(22 - path.len());
            page.push_str(&format!("{}{padding}{what}\n", link(path)));
        }
        page.push_str(&format!("\nDocumentation: {}\n", link(DOCS)));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> FrontPage {
        let addr = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let (resp, gremlin) = (Some(addr(7379)), Some(addr(7182)));
        let at = Addresses { grpc: addr(7000), http: addr(7080), resp, gremlin };
        FrontPage { name: "router 0".to_owned(), does: "answers queries", answers_clients: true, at }
    }

    #[test]
    fn a_terminal_is_shown_every_port_and_path() {
        let text = page().lines(str::to_owned);
        let (router, gremlin) = ("--router 127.0.0.1:7000", "ws://127.0.0.1:7182/gremlin");
        for expected in ["router 0. It answers queries.", router, "-p 7379", gremlin, "/metrics", DOCS] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_browser_gets_links() {
        let accepts = HeaderMap::from_iter([(header::ACCEPT, "text/html,*/*".parse().unwrap())]);
        let answer = page().answer(&accepts);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(
            page().answer(&HeaderMap::new()).headers()[header::CONTENT_TYPE] != "text/html; charset=utf-8"
        );
    }
}
