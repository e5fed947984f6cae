//! The headers `Accept` and `Accept-Encoding`.

use axum::http::{HeaderMap, header};

/// Returns whether `Accept` lists this media type by name. Wildcards and quality values are ignored.
pub fn accepts_media_type(request: &HeaderMap, media_type: &str) -> bool {
    let values = request.get_all(header::ACCEPT).iter();
    let mut ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    ranges.any(|range| {
        let listed = range.split(';').next().unwrap_or_default();
        listed.trim().eq_ignore_ascii_case(media_type)
    })
}

/// Returns whether `Accept-Encoding` lists this coding with a weight above 0.
pub fn accepts_encoding(request: &HeaderMap, coding: &str) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|listed| {
        let mut parts = listed.split(';').map(str::trim);
        let is_listed = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        is_listed
            && weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_is_used_only_if_accepted() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip, deflate, br, zstd", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("identity", false),
            ("xgzip", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(accepts_encoding(&headers, "gzip"), expected, "{value}");
        }
    }

    #[test]
    fn media_type_is_for_clients_that_list_it() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,*/*;q=0.8", true),
            ("application/json, Text/HTML;q=0.5", true),
            ("*/*", false),
            ("application/json", false),
            ("text/htmlx", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(
                accepts_media_type(&headers, "text/html"),
                expected,
                "{accept}"
            );
        }
        assert!(!accepts_media_type(&HeaderMap::new(), "text/html"));
    }
}
