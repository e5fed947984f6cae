//! The header `Accept`.

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

#[cfg(test)]
mod tests {
    use super::*;

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
