//! The machine-readable part of an API's error response.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

/// Where Stripe and JSON:API have codes and names of fields.
const POINTERS: [&str; 5] = [
    "/error/code",
    "/error/param",
    "/errors/0/code",
    "/errors/0/source/pointer",
    "/errors/0/source/parameter",
];
/// Names of permissions that an API key lacks. Stripe has them only in the text.
const PERMISSION_PREFIX: &str = "rak_";
const MAX_CODE_LENGTH: usize = 64;

/// The codes, fields and permissions that an error response names, such as `url_invalid`. Free text is left out, because it
/// can contain personal data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiErrorCodes(Vec<String>);

impl ApiErrorCodes {
    /// Reads the body of an error response. A body that is not JSON has no codes.
    pub(super) fn parse(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
        let mut codes: Vec<String> = POINTERS
            .into_iter()
            .filter_map(text)
            .filter(|code| is_code(code))
            .map(str::to_owned)
            .collect();
        let message = text("/error/message").unwrap_or_default();
        let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let permission = words.find(|word| word.starts_with(PERMISSION_PREFIX) && is_code(word));
        codes.extend(permission.map(str::to_owned));
        Self(codes)
    }

    /// Returns whether the response names a code or field.
    pub fn contain(&self, code: &str) -> bool {
        self.0.iter().any(|named| named == code)
    }
}

fn is_code(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./[]".contains(c);
    (1..=MAX_CODE_LENGTH).contains(&text.len()) && text.chars().all(is_part)
}

impl Display for ApiErrorCodes {
    /// Writes `: code, code`, or nothing.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codes_have_no_free_text() {
        for (body, expected) in [
            (
                json!({"error": {"code": "url_invalid", "param": "url", "message": "Not a valid URL"}}),
                ": url_invalid, url",
            ),
            (
                json!({"error": {"message": "Having the 'rak_webhook_write' permission would allow this"}}),
                ": rak_webhook_write",
            ),
            (
                json!({"errors": [{"detail": "for ada@example.com", "source": {"pointer": "/data/attributes/url"}}]}),
                ": /data/attributes/url",
            ),
            (
                json!({"error": {"code": "for ada@example.com", "param": ""}}),
                "",
            ),
            (json!({"error": "no"}), ""),
        ] {
            let codes = ApiErrorCodes::parse(body.to_string().as_bytes());
            assert_eq!(codes.to_string(), expected, "{body}");
        }
        assert_eq!(ApiErrorCodes::parse(b"<html>"), ApiErrorCodes::default());
    }
}
