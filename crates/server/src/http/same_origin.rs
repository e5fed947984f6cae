//! Recognizes requests that a page of this service sent, such as the API explorer.
//!
//! A web page can neither set nor remove the headers `Origin` and `Sec-Fetch-Site`. A page that makes its
//! own host name resolve to this service (DNS rebinding) has the same origin for its browser, but
//! [`super::allowed_hosts`] has rejected its requests before.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use super::problem::{Code, Problem};

/// Sent by browsers only, and not over plain HTTP to other machines.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns whether a browser sent the request.
pub fn is_from_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(SEC_FETCH_SITE)
}

/// Rejects a request that a page of another site sent, for endpoints that authenticate by cookie.
///
/// A browser says in `Sec-Fetch-Site` which page sent a request. A request that changes something must say that a page of this
/// service did. One that only reads may also come without a page: from an address bar, or not from a browser.
pub fn check_same_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    let is_allowed = match (sites.next(), sites.next()) {
        (Some(site), None) => site == "same-origin" || (method.is_safe() && site == "none"),
        (None, _) => method.is_safe() && !headers.contains_key(header::ORIGIN),
        (Some(_), Some(_)) => false,
    };
    if is_allowed {
        return Ok(());
    }
    let detail = "a staff session can be used by the pages of this service only; a request that changes something needs \
                  the header Sec-Fetch-Site: same-origin";
    Err(Problem::new(Code::CrossSiteRequest, detail))
}

/// The origins of this service's own pages.
#[derive(Debug, Clone)]
pub struct OwnOrigin {
    /// The origin of the public URL.
    public: String,
}

impl OwnOrigin {
    pub fn new(public_url: &str) -> Self {
        let origin = Url::parse(public_url).map(|url| url.origin());
        Self {
            public: origin.map_or_else(|_| String::new(), |origin| origin.ascii_serialization()),
        }
    }

    /// Returns whether the request was sent by a page from the public URL or from the request's own host.
    /// Every header of the browser that is present must say so.
    pub fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        let all =
            |name, is_own: &dyn Fn(&HeaderValue) -> bool| headers.get_all(name).iter().all(is_own);
        is_from_browser(headers)
            && all(SEC_FETCH_SITE, &|site| site == "same-origin")
            && all(header::ORIGIN, &|origin| {
                origin == self.public.as_str() || is_host(origin, headers)
            })
    }
}

/// Returns whether an origin is the host that the request names. The scheme is `http`, because the service
/// itself does not speak TLS; the origin behind a proxy that does is that of the public URL.
fn is_host(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let origin = origin.as_bytes().strip_prefix(b"http://");
    origin.is_some_and(|origin| !origin.is_empty() && Some(origin) == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(headers: &[(&str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        });
        let headers: HeaderMap = headers.collect();
        OwnOrigin::new("https://billing.example.com").is_same_origin(&headers)
    }

    #[test]
    fn cross_site_requests_are_rejected() {
        let is_allowed = |method: Method, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            });
            check_same_origin(&method, &headers.collect()).is_ok()
        };
        let site = |value| ("sec-fetch-site", value);
        for (headers, reads, writes) in [
            (vec![site("same-origin")], true, true),
            (vec![site("none")], true, false),
            (vec![], true, false),
            (vec![site("same-site")], false, false),
            (vec![site("cross-site")], false, false),
            (vec![site("same-origin"), site("cross-site")], false, false),
            (vec![("origin", "https://a.example")], false, false),
        ] {
            assert_eq!(is_allowed(Method::GET, &headers), reads, "{headers:?}");
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert_eq!(is_allowed(method, &headers), writes, "{headers:?}");
            }
        }
    }

    #[test]
    fn own_pages_are_recognized_by_origin_and_fetch_metadata() {
        let (host, site) = (
            ("host", "localhost:8080"),
            ("sec-fetch-site", "same-origin"),
        );
        for headers in [
            vec![host, site],
            vec![host, ("origin", "http://localhost:8080")],
            vec![host, site, ("origin", "http://localhost:8080")],
            vec![host, site, ("origin", "https://billing.example.com")],
        ] {
            assert!(is_own(&headers), "{headers:?}");
        }
    }

    #[test]
    fn other_pages_are_not_own_pages() {
        let host = ("host", "localhost:8080");
        for headers in [
            vec![host],
            vec![("origin", "http://")],
            vec![("host", ""), ("origin", "http://")],
            vec![host, ("origin", "null")],
            vec![host, ("origin", "http://localhost")],
            vec![host, ("origin", "http://localhost:3000")],
            vec![host, ("origin", "https://localhost:8080")],
            vec![host, ("origin", "http://localhost:8080.evil.example")],
            vec![host, ("origin", "http://billing.example.com")],
            vec![host, ("origin", "https://billing.example.com.evil.example")],
            vec![host, ("sec-fetch-site", "same-site")],
            vec![host, ("sec-fetch-site", "cross-site")],
            vec![host, ("sec-fetch-site", "none")],
            // Each header must say so.
            vec![
                host,
                ("sec-fetch-site", "same-site"),
                ("origin", "http://localhost:8080"),
            ],
            vec![
                host,
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://localhost:3000"),
            ],
            vec![
                host,
                ("origin", "http://localhost:8080"),
                ("origin", "http://localhost:3000"),
            ],
        ] {
            assert!(!is_own(&headers), "{headers:?}");
        }
    }
}
