//! The scripts of `examples/` that guides link to.

use axum::Router;

use super::asset::Asset;

/// The name and the text of each script.
const SCRIPTS: [(&str, &str); 4] = [
    (
        "import-subscribers.py",
        include_str!("../../../../examples/import-subscribers.py"),
    ),
    (
        "my-subscription.mjs",
        include_str!("../../../../examples/my-subscription.mjs"),
    ),
    (
        "nightly-sync.py",
        include_str!("../../../../examples/nightly-sync.py"),
    ),
    (
        "refund-webhook.mjs",
        include_str!("../../../../examples/refund-webhook.mjs"),
    ),
];

/// Where pages of `docs/` find the scripts, and where they are served.
pub(super) const FOLDERS: (&str, &str) = ("../../examples/", "/docs/examples/");

/// Returns a route for each script.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let (_, folder) = FOLDERS;
    let mut router = Router::new();
    for (name, text) in SCRIPTS {
        let script = Asset::new("text/plain; charset=utf-8", text);
        router = router.route(&format!("{folder}{name}"), script.route());
    }
    router
}
