//! Keeps web pages away from a process. A browser sends requests for any page that its user looks at, also to addresses that
//! only the user can reach. The page's own address is in `Origin`. A page whose name was made to point at this process (DNS
//! rebinding) is of the same origin for the browser, but its name is in `Host`.
//!
//! [`check`] is the one decision for all ports that speak HTTP; [`admit`] asks it and writes a refusal to the audit log.

use crate::server::{connections::OpenConnection, security::audit};
use axum::http::{HeaderMap, HeaderName, Request, Uri, Version, header};
use kith_types::ErrorCode;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// The headers in which browsers say where a request comes from, and what it is for.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// A host whose pages may send requests, and under whose name this process may be asked (setting `accepted-hosts`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AcceptedHost(Pattern);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// Every host.
    Any,
    Host(Host),
    /// All names below this one.
    Below(String),
    /// Pages of this origin only, such as `https://console.example`.
    Origin(String),
}

/// A host as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    /// In lower case, without a dot at its end.
    Name(String),
}

impl FromStr for AcceptedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no host: expected a name, an IP address, *.DOMAIN, an origin such as https://console.example, or *"
            )
        };
        let pattern = if text == "*" {
            Pattern::Any
        } else if let Some((scheme, authority)) = text.split_once("://") {
            Host::with_port(authority).ok_or_else(wrong)?;
            Pattern::Origin(format!("{scheme}://{authority}").to_ascii_lowercase())
        } else if let Some(below) = text.strip_prefix("*.") {
            Pattern::Below(name(below).ok_or_else(wrong)?)
        } else {
            Pattern::Host(Host::without_port(text).ok_or_else(wrong)?)
        };
        Ok(Self(pattern))
    }
}

impl TryFrom<String> for AcceptedHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AcceptedHost> for String {
    fn from(host: AcceptedHost) -> Self {
        host.to_string()
    }
}

impl fmt::Display for AcceptedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::Any => f.write_str("*"),
            Pattern::Host(Host::Ip(ip)) => ip.fmt(f),
            Pattern::Host(Host::Name(name)) => f.write_str(name),
            Pattern::Below(name) => write!(f, "*.{name}"),
            Pattern::Origin(origin) => f.write_str(origin),
        }
    }
}

impl Host {
    /// The host of `HOST` or `HOST:PORT`.
    fn with_port(authority: &str) -> Option<Self> {
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(rest) = authority.strip_prefix('[') {
            let (ip, port) = rest.split_once(']')?;
            let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            return has_port.then(|| Some(Self::Ip(ip.parse::<IpAddr>().ok()?.to_canonical())))?;
        }
        match authority.split_once(':') {
            Some((host, port)) if is_port(port) => Self::without_port(host),
            Some(_) => None,
            None => Self::without_port(authority),
        }
    }

    fn without_port(text: &str) -> Option<Self> {
        match text.parse::<IpAddr>() {
            Ok(ip) => Some(Self::Ip(ip.to_canonical())),
            Err(_) => name(text).map(Self::Name),
        }
    }

    /// Whether the host is this machine for whoever asks, or the address at which this process was reached.
    fn is_own(&self, own: Option<IpAddr>) -> bool {
        match self {
            Self::Ip(ip) => ip.is_loopback() || own.is_some_and(|own| own.to_canonical() == *ip),
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    fn is_accepted(&self, accepted: &[AcceptedHost], own: Option<IpAddr>) -> bool {
        let matches = |pattern: &Pattern| match (pattern, self) {
            (Pattern::Any, _) => true,
            (Pattern::Host(host), _) => host == self,
            (Pattern::Below(domain), Self::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|first| first.ends_with('.'))
            }
            (Pattern::Below(_) | Pattern::Origin(_), _) => false,
        };
        self.is_own(own) || accepted.iter().any(|host| matches(&host.0))
    }
}

/// A name of a host in lower case, without a dot at its end.
fn name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_some = !name.is_empty() && !name.starts_with('.');
    (is_some && name.bytes().all(is_name)).then(|| name.to_ascii_lowercase())
}

/// The origin of a request, as the request states it. A header that occurs twice, or is no text, counts as an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source<'a> {
    /// The host that is asked; `None` if it does not have to be checked, or an old client does not say it.
    pub host: Option<&'a str>,
    /// The origin of the page that sent the request; `None` if no page sent it, or the browser does not say it.
    pub origin: Option<&'a str>,
    /// Whether the browser says that a page of another site has sent the request in the background.
    pub is_cross_site: bool,
}

impl<'a> Source<'a> {
    /// The statements of the head of a request. The host is only looked at if `checks_host`.
    fn new(uri: &'a Uri, headers: &'a HeaderMap, checks_host: bool) -> Self {
        let host =
            uri.authority().map(axum::http::uri::Authority::as_str).or_else(|| one(headers, &header::HOST));
        let is = |name: &HeaderName, value: &str| one(headers, name) == Some(value);
        Self {
            host: host.filter(|_| checks_host),
            origin: one(headers, &header::ORIGIN),
            // Somebody who follows a link to this process sees the answer; the page with the link does not. A frame of a page
            // is loaded without anybody's doing.
            is_cross_site: is(&FETCH_SITE, "cross-site")
                && !(is(&FETCH_MODE, "navigate") && is(&FETCH_DEST, "document")),
        }
    }
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(first.to_str().ok().filter(|_| values.next().is_none()).unwrap_or_default())
}

/// Why a request is refused. The texts are cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// The process does not have this name.
    #[error("this process is not known as {0:?}: use its IP address, or add the name to `accepted-hosts`")]
    Host(String),
    /// A page of this origin has sent the request.
    #[error("a web page of the origin {0:?} may not send requests here: add its host to `accepted-hosts`")]
    Origin(String),
    /// A page of another site has sent the request.
    #[error("a web page of another site may not send requests here: add its host to `accepted-hosts`")]
    Site,
}

/// Decides whether a request may be served that reached this process at the address `own`.
///
/// # Errors
/// [`Foreign`] if it was sent by a page of a host that is neither this machine nor accepted, or names such a host as the one
/// that is asked.
pub fn check(accepted: &[AcceptedHost], source: &Source<'_>, own: Option<IpAddr>) -> Result<(), Foreign> {
    let is_accepted = |host: Option<Host>| host.is_some_and(|host| host.is_accepted(accepted, own));
    let is_any = accepted.iter().any(|host| host.0 == Pattern::Any);
    if let Some(host) = source.host
        && !is_any
        && !is_accepted(Host::with_port(host))
    {
        return Err(Foreign::Host(cut(host)));
    }
    match source.origin {
        _ if is_any => Ok(()),
        Some(origin) => {
            let lower = origin.to_ascii_lowercase();
            let authority = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
            let is_listed = accepted.iter().any(|host| host.0 == Pattern::Origin(lower.clone()));
            match is_listed || is_accepted(authority.and_then(Host::with_port)) {
                true => Ok(()),
                false => Err(Foreign::Origin(cut(origin))),
            }
        }
        None if source.is_cross_site => Err(Foreign::Site),
        None => Ok(()),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Where a connection ends in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    /// The address at which the peer reached this process.
    pub own: Option<IpAddr>,
    /// Whether the peer has checked the name of this process by its certificate, so that no other name leads here.
    pub is_verified: bool,
}

/// Checks a request of a connection, and writes a refusal to the audit log. Of HTTP/2, the host is not checked, because browsers
/// use it only over TLS.
///
/// # Errors
/// As [`check`].
pub fn admit<B>(
    connected: &OpenConnection,
    request: &Request<B>,
    peer: Option<SocketAddr>,
) -> Result<(), Foreign> {
    let site = connected.site();
    let checks_host = !site.is_verified && request.version() != Version::HTTP_2;
    let source = Source::new(request.uri(), request.headers(), checks_host);
    check(connected.accepted_hosts(), &source, site.own).inspect_err(|foreign| {
        audit::refused(&audit::RefusedCall {
            subject: "a web page",
            method: &format!("{} {}", request.method(), request.uri().path()),
            store: "",
            code: ErrorCode::PermissionDenied,
            reason: &foreign.to_string(),
            peer,
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)));

    fn accepted(hosts: &[&str]) -> Vec<AcceptedHost> {
        hosts.iter().map(|host| host.parse().expect("a host")).collect()
    }

    fn host(hosts: &[&str], host: &str) -> bool {
        check(&accepted(hosts), &Source { host: Some(host), ..Source::default() }, OWN).is_ok()
    }

    fn origin(hosts: &[&str], origin: &str) -> bool {
        let source = Source { origin: Some(origin), host: Some("localhost:7182"), ..Source::default() };
        check(&accepted(hosts), &source, OWN).is_ok()
    }

    #[test]
    fn this_machine_is_never_foreign() {
        let own =
            ["localhost", "LOCALHOST.:80", "a.localhost:7182", "127.0.0.1:7182", "127.9.9.9", "[::1]:80"];
        for name in own.into_iter().chain(["10.0.0.7:7182", "[::ffff:10.0.0.7]"]) {
            assert!(host(&[], name) && origin(&[], &format!("http://{name}")), "{name}");
        }
        assert_eq!(check(&[], &Source::default(), None), Ok(()), "no browser");
    }

    #[test]
    fn other_hosts_are_foreign_unless_they_are_listed() {
        let foreign = [
            "evil.example",
            "evil.example:7182",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "10.0.0.8",
            "0.0.0.0:7182",
            "[fe80::1]",
            "",
            ":80",
            "localhost:x",
            "user@localhost",
            "localhost evil",
        ];
        for name in foreign {
            assert!(!host(&["console.example"], name), "{name}");
            assert!(!origin(&["console.example"], &format!("http://{name}")), "{name}");
        }
        for name in ["null", "file://", "localhost", "chrome-extension://abcdef", "ftp://localhost"] {
            assert!(!origin(&[], name), "{name}");
        }
        let listed = ["console.example", "*.kith.svc", "10.0.0.8", "https://page.example:8443"];
        for name in
            ["console.example:80", "Console.Example.", "r0.kith.svc", "a.b.kith.svc:7", "10.0.0.8:7182"]
        {
            assert!(host(&listed, name) && origin(&listed, &format!("https://{name}")), "{name}");
        }
        assert!(origin(&listed, "https://page.example:8443") && !origin(&listed, "https://page.example"));
        assert!(
            !host(&listed, "page.example:8443") && !host(&listed, "kith.svc") && !host(&listed, "xkith.svc")
        );
        assert!(host(&["*"], "anything") && origin(&["*"], "null"));
    }

    #[test]
    fn a_page_that_does_not_say_its_origin_is_known_by_its_site() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let headers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")))
                .collect();
            check(&[], &Source::new(&Uri::from_static("/gremlin"), &headers, true), None)
        };
        assert_eq!(of(&[("host", "localhost"), ("sec-fetch-site", "cross-site")]), Err(Foreign::Site));
        for (mode, dest, expected) in [
            ("navigate", "document", Ok(())),
            ("navigate", "iframe", Err(Foreign::Site)),
            ("navigate", "object", Err(Foreign::Site)),
            ("no-cors", "image", Err(Foreign::Site)),
            ("no-cors", "document", Err(Foreign::Site)),
        ] {
            let headers =
                [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            assert_eq!(of(&headers), expected, "{mode} {dest}");
        }
        assert_eq!(of(&[("sec-fetch-site", "same-origin"), ("host", "localhost")]), Ok(()));
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, "localhost".parse().expect("a value"));
        twice.append(header::HOST, "localhost".parse().expect("a value"));
        let root = Uri::from_static("/");
        assert_eq!(Source::new(&root, &twice, true).host, Some(""), "which of both would be meant?");
        let absolute = Uri::from_static("http://evil.example/");
        assert_eq!(Source::new(&absolute, &HeaderMap::new(), true).host, Some("evil.example"));
    }

    #[test]
    fn what_is_no_host_is_no_setting() {
        for text in ["", "*.", "a b", "https://", "http://x:y", "a:80", "*x"] {
            assert!(text.parse::<AcceptedHost>().is_err(), "{text}");
        }
        for text in ["*", "*.a.b", "a", "10.0.0.8", "::1", "https://a:8443"] {
            assert_eq!(text.parse::<AcceptedHost>().expect("a host").to_string(), text);
        }
    }
}
