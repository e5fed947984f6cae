//! The sample response of each problem code, from its page in `docs/errors/`.

use serde_json::Value;

use super::Code;

/// The code and the text of each page in `docs/errors/`.
static ERROR_PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

impl Code {
    /// Returns the problem document that the code's page shows: the first JSON block. `None` if there is no
    /// such page.
    pub fn sample(self) -> Option<Value> {
        let page = { ERROR_PAGES.iter() }.find(|(code, _)| *code == self.as_str());
        let (_, rest) = page?.1.split_once("```json\n")?;
        let (sample, _) = rest.split_once("```")?;
        serde_json::from_str(sample).ok()
    }
}
